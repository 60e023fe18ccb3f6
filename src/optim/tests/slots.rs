//! Slots: whose they are, what they are called, and how they are restored and copied.

use super::*;
use crate::Module;

fn pair() -> [Variable; 2] {
    [variable("a", [1.0f32, 2.0]), variable("b", [3.0f32, 4.0])]
}

fn step(optimizer: &dyn Optimizer, parameters: &[Variable], seed: u64) {
    let generator = Generator::seed(seed);
    let updates: Vec<_> =
        parameters.iter().map(|p| dense(normal(&generator, p.shape(), p.dtype()))).collect();
    optimizer.apply(&updates, parameters).unwrap();
}

#[test]
fn paths_and_names_are_those_of_the_reference() {
    let cases: Vec<(Box<dyn Optimizer>, &[(&str, &str)])> = vec![
        (
            Box::new(Momentum::new(0.1, 0.9)),
            &[
                ("accumulated_momentum/0", "momentum/accumulated_momentum/a"),
                ("accumulated_momentum/1", "momentum/accumulated_momentum/b"),
            ],
        ),
        (
            Box::new(RMSProp::new(0.1).centered(true)),
            &[
                ("mom/0", "rms_prop/momentum/a"),
                ("mom/1", "rms_prop/momentum/b"),
                ("ms/0", "rms_prop/rms/a"),
                ("ms/1", "rms_prop/rms/b"),
                ("mg/0", "rms_prop/mg/a"),
                ("mg/1", "rms_prop/mg/b"),
            ],
        ),
        (
            Box::new(Adam::new(0.1)),
            &[
                ("step", "adam/t"),
                ("m/0", "adam/m/a"),
                ("m/1", "adam/m/b"),
                ("v/0", "adam/v/a"),
                ("v/1", "adam/v/b"),
            ],
        ),
    ];
    for (optimizer, expected) in cases {
        step(&*optimizer, &pair(), 1);
        let mut named: Vec<(String, String)> = optimizer
            .named_variables()
            .unwrap()
            .into_iter()
            .map(|(path, variable)| (path, variable.name().to_owned()))
            .collect();
        let mut expected: Vec<(String, String)> =
            expected.iter().map(|&(path, name)| (path.to_owned(), name.to_owned())).collect();
        named.sort();
        expected.sort();
        assert_eq!(named, expected);
        assert!(optimizer.variables().unwrap().iter().all(|variable| !variable.trainable()));
    }
    let fresh = Adam::default();
    assert_eq!(fresh.variables().unwrap()[0].name(), "adam/t");
}

#[test]
fn slots_follow_their_parameter_in_any_order() {
    for subject in subjects() {
        let (one, other) = ((subject.make)(), (subject.make)());
        let (p, q) = (pair(), pair());
        let updates = [dense([0.5f32, -1.0]), dense([2.0f32, 0.25])];
        for _ in 0..3 {
            one.apply(&updates, &p).unwrap();
        }
        let (swapped, turned) = ([q[1].clone(), q[0].clone()], [updates[1].clone(), updates[0].clone()]);
        other.apply(&updates, &q).unwrap();
        other.apply(&turned, &swapped).unwrap();
        other.apply(&updates, &q).unwrap();
        assert_eq!(bits(&p), bits(&q), "{one:?}");
    }
}

#[test]
fn a_parameter_without_an_update_and_a_frozen_one_stay_bit_equal_with_their_slots() {
    for subject in subjects() {
        let optimizer = (subject.make)();
        let p = [variable("a", [1.0f32, 2.0]), variable("b", [3.0f32]), variable("c", [5.0f32])];
        step(&*optimizer, &p, 1);
        let of = |name: &str| {
            let slots = state(&*optimizer).into_iter().filter(|slot| slot.name().ends_with(name));
            bits(&slots.collect::<Vec<_>>())
        };
        p[2].set_frozen(true);
        let before = (bits(&p[1..]), of("/b"), of("/c"));
        optimizer.apply(&[dense([1.0f32, 1.0]), None, dense([1.0f32])], &p).unwrap();
        assert_eq!((bits(&p[1..]), of("/b"), of("/c")), before, "{optimizer:?}");
        // Leaving frozen parameters out does not shift the slots of the others.
        let twin = (subject.make)();
        let q = [variable("a", [1.0f32, 2.0]), variable("b", [3.0f32]), variable("c", [5.0f32])];
        step(&*twin, &q, 1);
        twin.apply(&[dense([1.0f32, 1.0]), None, dense([0.0f32])], &q).unwrap();
        let last = [dense([0.5f32]), dense([1.0f32, 0.0])];
        optimizer.apply(&last, &[p[1].clone(), p[0].clone()]).unwrap();
        twin.apply(&last, &[q[1].clone(), q[0].clone()]).unwrap();
        assert_eq!(bits(&p[..2]), bits(&q[..2]), "{optimizer:?}");
    }
}

#[test]
fn parameters_left_alone_are_reported_once() {
    let owners = super::super::slots::Owners::default();
    let mut register = owners.lock();
    let p = pair();
    assert_eq!(register.unreported(&[&p[0], &p[1]]), ["a", "b"]);
    assert!(register.unreported(&[&p[0]]).is_empty());
}

#[test]
fn an_optimiser_restored_before_its_first_step_goes_on_bit_for_bit() {
    for subject in subjects() {
        let (one, other) = ((subject.make)(), (subject.make)());
        let p = pair();
        (0..3).for_each(|i| step(&*one, &p, i));
        let q = p.each_ref().map(Variable::duplicate);
        other.copy_weights_from(one.as_module()).unwrap();
        for i in 3..6 {
            step(&*one, &p, i);
            step(&*other, &q, i);
        }
        assert_eq!((bits(&p), bits(&state(&*one))), (bits(&q), bits(&state(&*other))), "{one:?}");
    }
}

#[test]
fn a_restored_slot_that_does_not_fit_is_refused_before_anything_is_made() {
    let (one, other) = (Adam::new(0.1), Adam::new(0.1));
    step(&one, &pair(), 1);
    other.copy_weights_from(&one).unwrap();
    let q = [variable("a", [1.0f32, 2.0]), variable("b", [[3.0f32, 4.0]])];
    let updates = [dense([1.0f32, 1.0]), dense([[1.0f32, 1.0]])];
    let message = other.apply(&updates, &q).unwrap_err().to_string();
    assert!(message.contains("m/1") && message.contains("parameter b"), "{message}");
    assert_eq!(other.variables().unwrap().len(), 1);
    assert_eq!(floats(&q[0].value()), [1.0, 2.0]);
}

#[derive(Module)]
struct Trainer {
    scope: crate::Scope,
    parameters: Vec<Variable>,
    optimizer: Adam,
}

#[test]
fn a_copied_optimiser_serves_the_copied_parameters_or_the_old_ones() {
    let original = Trainer {
        scope: crate::Scope::new("trainer"),
        parameters: pair().to_vec(),
        optimizer: Adam::new(0.1),
    };
    step(&original.optimizer, &original.parameters, 1);
    let with_model = original.duplicate().unwrap();
    let alone = original.optimizer.duplicate().unwrap();
    let before = original.parameters.iter().map(Variable::value).collect::<Vec<_>>();
    step(&original.optimizer, &original.parameters, 2);
    let expected = bits(&original.parameters);
    // In another order, to see that slots are found by identity.
    let turn = |p: &[Variable]| [p[1].clone(), p[0].clone()];
    let turned = |optimizer: &Adam, p: &[Variable]| {
        let generator = Generator::seed(2);
        let mut updates: Vec<_> = p.iter().map(|p| dense(normal(&generator, p.shape(), p.dtype()))).collect();
        updates.reverse();
        optimizer.apply(&updates, &turn(p)).unwrap();
    };
    turned(&with_model.optimizer, &with_model.parameters);
    assert_eq!(bits(&with_model.parameters), expected);
    original.parameters.iter().zip(&before).for_each(|(p, before)| p.assign(before).unwrap());
    turned(&alone, &original.parameters);
    assert_eq!(bits(&original.parameters), expected);
    assert_eq!(alone.variables().unwrap().len(), 5);
}

#[test]
fn tensors_read_before_a_step_keep_their_values() {
    let p = pair();
    let before = p[0].value();
    step(&SGD::new(0.1), &p, 1);
    assert_eq!(before.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn steps_of_one_optimiser_on_several_threads_are_all_counted() {
    let optimizer = Adam::new(0.1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let p = pair();
                (0..25).for_each(|i| step(&optimizer, &p, i));
            });
        }
    });
    let named = optimizer.named_variables().unwrap();
    let count = named.iter().find(|(path, _)| path == "step").unwrap();
    assert_eq!((count.1.value().item::<i64>().unwrap(), named.len()), (100, 1 + 2 * 8));
}
