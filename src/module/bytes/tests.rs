//! Modules through bytes: round trips, and bytes that are refused.

#[allow(dead_code, reason = "the suite in tests/modules uses the rest of the list")]
#[path = "../../../tests/modules/list.rs"]
mod list;

use std::sync::Mutex;

use super::super::paths::existing_variables;
use super::*;
use crate::optim::{self, Optimizer};
use crate::prelude::*;
use crate::{Gradient, random};
use list::{Subject, bits, bits_of_all, every_module, seeded};

/// A generator that stays where it is while `f` runs.
fn without_drawing<R>(what: &str, f: impl FnOnce() -> R) -> R {
    let generator = Generator::seed(8);
    let result = random::with(&generator, f);
    assert_eq!(generator.state(), Generator::seed(8).state(), "{what} drew");
    result
}

/// A module that was called twice, so that counters differ from their first values.
fn used(make: &dyn Fn(DType) -> Box<dyn Subject>) -> Box<dyn Subject> {
    let subject = make(DType::F32);
    seeded(3, || subject.call().and_then(|_| subject.call())).unwrap();
    subject
}

/// Loads into a fresh and into a used module of each kind, and checks that a refusal leaves both as they were.
fn refused(make: &dyn Fn(DType) -> Box<dyn Subject>, bytes: &[u8]) -> Option<[String; 2]> {
    let messages = [make(DType::F32), used(make)].map(|target| {
        let state = |target: &dyn Subject| {
            let existing = existing_variables(Node::Module(target.module()));
            let values: Vec<_> = existing.iter().map(|(path, v)| (path.clone(), bits(&v.peek()))).collect();
            let mut waiting = Vec::new();
            walk(Node::Module(target.module()), |path, node| match node {
                Node::Empty(later) | Node::Growing(_, later) if later.waiting().is_some() => {
                    waiting.push(path.to_owned());
                }
                _ => {}
            });
            (values, waiting)
        };
        let before = state(&*target);
        let message = without_drawing("load_bytes", || target.module().load_bytes(bytes)).err()?.to_string();
        assert_eq!(state(&*target), before, "{message}");
        Some(message)
    });
    match messages {
        [Some(fresh), Some(used)] => Some([fresh, used]),
        _ => None,
    }
}

#[test]
fn bytes_cut_anywhere_are_refused_and_change_nothing() {
    for make in every_module() {
        let bytes = used(&make).module().to_bytes().unwrap();
        let target = make(DType::F32);
        for length in 0..bytes.len() {
            assert!(target.module().load_bytes(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
        for length in [0, 9, bytes.len() - 1] {
            refused(&make, &bytes[..length]).expect("bytes are missing");
        }
        refused(&make, &[&bytes[..], &[0]].concat()).expect("there is one byte too many");
    }
}

#[test]
fn a_message_about_cut_bytes_names_the_path() {
    let linear = Linear::new(2);
    linear.forward(&Tensor::ones([1, 3], DType::F32).unwrap()).unwrap();
    let bytes = linear.to_bytes().unwrap();
    let message = Linear::new(2).load_bytes(&bytes[..bytes.len() - 1]).unwrap_err().to_string();
    assert!(message.contains(r#"the bytes end within "b": 7 of its 8 bytes are there"#), "{message}");
}

#[test]
fn a_damaged_byte_is_refused_or_loaded_but_never_half() {
    for make in every_module() {
        let bytes = used(&make).module().to_bytes().unwrap();
        let header = bytes.len().min(200);
        for at in 0..header {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let loaded = make(DType::F32).module().load_bytes(&damaged).is_ok();
            assert!(!loaded || at >= MAGIC.len() + 12, "byte {at}");
            if at % 37 == 0 && !loaded {
                refused(&make, &damaged);
            }
        }
    }
}

#[test]
fn a_later_version_is_refused_with_its_number() {
    let mut bytes = Flatten::new().to_bytes().unwrap();
    bytes[MAGIC.len()] = 7;
    let message = Flatten::new().load_bytes(&bytes).unwrap_err().to_string();
    assert!(message.contains("version 7") && message.contains("reads version 1"), "{message}");
}

#[test]
fn bytes_of_another_module_are_refused_in_the_name_of_both() {
    for source in every_module() {
        let source = used(&source);
        let bytes = source.module().to_bytes().unwrap();
        for make in every_module() {
            let (kind, target) = (source.module().kind(), make(DType::F32));
            if target.module().kind() == kind {
                continue;
            }
            let message = target.module().load_bytes(&bytes).unwrap_err().to_string();
            let both = format!("the bytes hold a {kind}, the module has a {}", target.module().kind());
            assert!(message.contains(&both), "{message}");
            assert!(
                existing_variables(Node::Module(make(DType::F32).module())).is_empty()
                    || refused(&make, &bytes).is_some()
            );
        }
    }
}

#[test]
fn another_shape_or_dtype_is_refused_in_the_name_of_the_variable() {
    for make in every_module() {
        let original = used(&make);
        let named = original.module().named_variables().unwrap();
        let bytes = original.module().to_bytes().unwrap();
        for (path, _) in &named {
            for change in ["shape", "dtype"] {
                let mut content = Content::read(&bytes).unwrap();
                let (_, value) = content.values.iter_mut().find(|(found, _)| found == path).unwrap();
                *value = match change {
                    "shape" => Tensor::zeros([&[3], &value.shape()[..]].concat(), value.dtype()).unwrap(),
                    _ => value.cast(DType::U8).unwrap(),
                };
                let changed = content.write().unwrap();
                let target = used(&make);
                let before = bits_of_all(target.module());
                let message = target.module().load_bytes(&changed).unwrap_err().to_string();
                assert!(message.contains(path), "{message}");
                assert_eq!(bits_of_all(target.module()), before);
                // A module that makes its variables at the first call finds out there, and may be called again.
                let fresh = make(DType::F32);
                if fresh.module().load_bytes(&changed).is_ok() {
                    let message = seeded(3, || fresh.call()).unwrap_err().to_string();
                    let name = path.rsplit('/').next().unwrap().trim_start_matches('_');
                    assert!(message.contains(name), "{path}: {message}");
                    fresh.module().load_bytes(&bytes).unwrap();
                    seeded(3, || fresh.call()).unwrap();
                }
            }
        }
    }
}

/// Tables that are made without an input.
#[derive(Module)]
struct Tables {
    scope: Scope,
    small: Embed,
    large: Embed,
}

fn tables(small: usize, large: usize) -> Tables {
    let scope = Scope::of::<Tables>();
    let _in = scope.enter();
    let (small, large) = (Embed::new(small).name("small"), Embed::new(large).name("large"));
    Tables { small, large, scope }
}

#[test]
fn a_part_that_does_not_fit_keeps_all_others_from_being_made() {
    let bytes = tables(3, 5).to_bytes().unwrap();
    let other = tables(3, 6);
    let message = without_drawing("load_bytes", || other.load_bytes(&bytes)).unwrap_err().to_string();
    assert!(message.contains("large"), "{message}");
    assert!(existing_variables(Node::Module(&other)).is_empty());
    other.load_bytes(&tables(3, 6).to_bytes().unwrap()).unwrap();
}

#[test]
fn what_only_one_side_has_is_listed() {
    let x = Tensor::ones([1, 3], DType::F32).unwrap();
    let net = |sizes: &[usize]| {
        let net = MLP::new(sizes.to_vec());
        net.forward(&x).unwrap();
        net
    };
    let message = net(&[2]).load_bytes(&net(&[2, 2]).to_bytes().unwrap()).unwrap_err().to_string();
    assert!(message.contains("_layers/1/w: only the bytes have it"), "{message}");
    let message = net(&[2, 2]).load_bytes(&net(&[2]).to_bytes().unwrap()).unwrap_err().to_string();
    assert!(message.contains("_layers/1/b: only the module has it"), "{message}");
}

#[derive(Module)]
struct Reader {
    scope: Scope,
    generator: Generator,
    #[module(state)]
    position: Mutex<(u64, String)>,
    linear: Linear,
}

fn reader(seed: u64, position: u64) -> Reader {
    let word = "word".repeat(position as usize);
    Reader {
        scope: Scope::of::<Reader>(),
        generator: Generator::seed(seed),
        position: Mutex::new((position, word)),
        linear: Linear::new(2),
    }
}

#[test]
fn plain_state_travels_in_bytes_and_copies() {
    let original = reader(3, 2);
    let _ = original.generator.split();
    let target = reader(1, 0);
    target.load_bytes(&original.to_bytes().unwrap()).unwrap();
    assert_eq!(target.generator.state(), original.generator.state());
    assert_eq!(*target.position.lock().unwrap(), (2, "wordword".to_owned()));
    let copy = original.duplicate().unwrap();
    assert_eq!(copy.to_bytes().unwrap(), original.to_bytes().unwrap());
    original.position.lock().unwrap().0 = 9;
    let _ = original.generator.split();
    assert_eq!(copy.to_bytes().unwrap(), target.to_bytes().unwrap());
}

#[test]
fn damaged_state_is_refused_with_its_path_and_leaves_the_rest_alone() {
    let mut content = Content::read(&reader(3, 2).to_bytes().unwrap()).unwrap();
    content.states.iter_mut().find(|(path, _)| path == "position").unwrap().1 = vec![255; 2];
    let target = reader(1, 5);
    let before = target.to_bytes().unwrap();
    let message = target.load_bytes(&content.write().unwrap()).unwrap_err().to_string();
    assert!(message.contains("position"), "{message}");
    assert_eq!(target.to_bytes().unwrap(), before);
}

#[test]
fn optimisers_continue_with_the_bits_they_would_have_had() {
    let optimisers: [fn() -> Box<dyn Optimizer>; 5] = [
        || Box::new(optim::SGD::new(Variable::from_tensor("rate", Tensor::from(0.1f32)))),
        || Box::new(optim::Momentum::new(0.1, 0.9)),
        || Box::new(optim::RMSProp::new(0.1).centered(true)),
        || Box::new(optim::Adam::new(0.1)),
        || Box::new(optim::AdamW::new(0.1, 0.01)),
    ];
    let gradient = [Some(Gradient::from(Tensor::from([0.5f32, -2.0])))];
    for make in optimisers {
        let optimiser = make();
        let parameter = [Variable::from_tensor("w", Tensor::from([1.0f32, 2.0]))];
        optimiser.apply(&gradient, &parameter).unwrap();
        optimiser.apply(&gradient, &parameter).unwrap();
        let (restored, other) = (make(), [parameter[0].duplicate()]);
        restored.load_bytes(&optimiser.to_bytes().unwrap()).unwrap();
        optimiser.apply(&gradient, &parameter).unwrap();
        restored.apply(&gradient, &other).unwrap();
        assert_eq!(bits(&other[0].value()), bits(&parameter[0].value()), "{}", optimiser.kind());
        assert_eq!(bits_of_all(restored.as_module()), bits_of_all(optimiser.as_module()));
    }
}

/// Version 1, written out by hand: what a release wrote must stay readable.
#[test]
fn version_1_reads_as_it_was_written() {
    let mut header = Vec::new();
    header.extend([1, 0]); // one module, at the empty path
    header.extend([6]);
    header.extend(b"Linear");
    header.extend([2]); // two variables
    header.extend([1, b'w', 3, b'f', b'3', b'2', 2, 3, 1]); // w: f32[3, 1]
    header.extend([1, b'b', 3, b'f', b'3', b'2', 1, 1]); // b: f32[1]
    header.extend([0]); // no state
    let mut bytes = b"COUPLET\0".to_vec();
    bytes.extend([1, 0, 0, 0]);
    bytes.extend([header.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(header);
    for number in [1.0f32, 2.0, 3.0, 0.5] {
        bytes.extend(number.to_le_bytes());
    }
    let linear = Linear::new(1);
    linear.load_bytes(&bytes).unwrap();
    let y = linear.forward(&Tensor::from([[1.0f32, 10.0, 100.0]])).unwrap();
    assert_eq!(y.item::<f32>().unwrap(), 321.5);
    assert_eq!(linear.to_bytes().unwrap(), bytes);
}
