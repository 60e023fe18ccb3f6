//! What all optimisers promise, on small variables.

mod errors;
mod numbers;
mod slots;

use super::*;
use crate::dtype::DType;
use crate::ops::IndexedSlices;
use crate::random::Generator;
use crate::tensor::{Shape, Tensor};

/// One step of the update rule of a paper for one number: `t` from 1, the gradient, the parameter and two or three slots.
type Formula = fn(i32, f64, &mut f64, &mut [f64; 3]);

/// An optimiser, and its rule written out.
struct Subject {
    make: fn() -> Box<dyn Optimizer>,
    formula: Formula,
}

fn subjects() -> Vec<Subject> {
    vec![
        Subject { make: || Box::new(SGD::new(0.1)), formula: |_, g, p, _| *p -= 0.1 * g },
        Subject {
            make: || Box::new(Momentum::new(0.1, 0.9)),
            formula: |_, g, p, [m, ..]| {
                *m = 0.9 * *m + g;
                *p -= 0.1 * *m;
            },
        },
        Subject {
            make: || Box::new(Momentum::new(0.1, 0.9).use_nesterov(true)),
            formula: |_, g, p, [m, ..]| {
                *m = 0.9 * *m + g;
                *p -= 0.1 * (0.9 * *m + g);
            },
        },
        Subject {
            make: || Box::new(RMSProp::new(0.1).momentum(0.5).epsilon(1e-3)),
            formula: |_, g, p, [mom, ms, _]| {
                *ms = 0.9 * *ms + 0.1 * g * g;
                *mom = 0.5 * *mom + 0.1 * g / (*ms + 1e-3).sqrt();
                *p -= *mom;
            },
        },
        Subject {
            make: || Box::new(RMSProp::new(0.1).decay(0.8).epsilon(1e-3).centered(true)),
            formula: |_, g, p, [_, ms, mg]| {
                *ms = 0.8 * *ms + 0.2 * g * g;
                *mg = 0.8 * *mg + 0.2 * g;
                *p -= 0.1 * g / (*ms - *mg * *mg + 1e-3).sqrt();
            },
        },
        Subject {
            make: || Box::new(Adam::new(0.1)),
            formula: |t, g, p, [m, v, _]| {
                *m = 0.9 * *m + 0.1 * g;
                *v = 0.999 * *v + 0.001 * g * g;
                let (m_hat, v_hat) = (*m / (1.0 - 0.9f64.powi(t)), *v / (1.0 - 0.999f64.powi(t)));
                *p -= 0.1 * m_hat / (v_hat.sqrt() + 1e-8);
            },
        },
        Subject {
            make: || Box::new(AdamW::new(0.1, 0.01).beta2(0.99).epsilon(1e-6)),
            formula: |t, g, p, [m, v, _]| {
                *p *= 1.0 - 0.1 * 0.01;
                *m = 0.9 * *m + 0.1 * g;
                *v = 0.99 * *v + 0.01 * g * g;
                let (m_hat, v_hat) = (*m / (1.0 - 0.9f64.powi(t)), *v / (1.0 - 0.99f64.powi(t)));
                *p -= 0.1 * m_hat / (v_hat.sqrt() + 1e-6);
            },
        },
    ]
}

fn variable(name: &str, value: impl Into<Tensor>) -> Variable {
    Variable::from_tensor(name, value.into())
}

fn dense(value: impl Into<Tensor>) -> Option<Gradient> {
    Some(Gradient::Dense(value.into()))
}

fn rows(values: impl Into<Tensor>, indices: &[i64], parameter: &Variable) -> Option<Gradient> {
    let (indices, dims) = (Tensor::from(indices), parameter.shape().clone());
    Some(IndexedSlices { values: values.into(), indices, dims }.into())
}

fn floats(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// The bits of all variables, in order.
fn bits(variables: &[Variable]) -> Vec<Vec<u64>> {
    variables.iter().map(|v| floats(&v.value()).into_iter().map(f64::to_bits).collect()).collect()
}

/// The variables of an optimiser, of which there may be none.
fn state(optimizer: &dyn Optimizer) -> Vec<Variable> {
    optimizer.named_variables().unwrap().into_iter().map(|(_, variable)| variable).collect()
}

fn normal(generator: &Generator, shape: &[usize], dtype: DType) -> Tensor {
    generator.normal(Shape::from(shape), 0.0, 1.0, dtype).unwrap()
}

#[test]
fn printed_forms_hide_defaults_and_state() {
    let rate = variable("rate", 0.1f32);
    let printed = [
        format!("{:?}", SGD::new(0.1)),
        format!("{:?}", Momentum::new(0.1, 0.9)),
        format!("{:?}", RMSProp::new(0.01).centered(true).decay(0.9)),
        format!("{:?}", Adam::default()),
        format!("{:?}", Adam::new(&rate).beta1(0.8).name("inner")),
        format!("{:?}", AdamW::new(schedule::CosineDecay::new(0.1, 10), 0.01)),
    ];
    let expected = [
        "SGD(learning_rate=0.1)",
        "Momentum(learning_rate=0.1, momentum=0.9)",
        "RMSProp(learning_rate=0.01, centered=true)",
        "Adam()",
        "Adam(learning_rate=Variable(rate), beta1=0.8, name='inner')",
        "AdamW(learning_rate=CosineDecay(initial=0.1, decay_steps=10), weight_decay=0.01)",
    ];
    assert_eq!(printed, expected);
}
