//! Tables of layers.

use std::sync::Arc;

use super::*;
use crate::{GradientTape, Spec, summary};

#[derive(Module)]
struct Tower {
    scope: Scope,
    #[module(name = "_layers")]
    layers: Vec<Arc<dyn Forward>>,
    unused: Affine,
    gains: Vec<Variable>,
}

#[scoped]
impl Forward for Tower {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward(&x)?;
        }
        Ok(x)
    }
}

fn tower() -> Tower {
    let shared: Arc<dyn Forward> = Arc::new(Affine::new(3));
    let function = |x: &Tensor| x * 2.0;
    Tower {
        scope: Scope::of::<Tower>(),
        layers: vec![shared.clone(), shared, Arc::new(function), Arc::new(Affine::new(1000).name("last"))],
        unused: Affine::new(5),
        gains: vec![variable("g", &[7]).unwrap()],
    }
}

#[test]
fn the_table_has_a_row_for_each_module() {
    let tower = tower();
    // `_layers/0` runs twice on [None, 3]: 3 * 3 products for each row of the input and each run.
    let expected = "\
| Module    | Type   | Output         | Parameters   | Multiply-adds   | Bytes   |
|-----------+--------+----------------+--------------+-----------------+---------|
| tower     | Tower  | f32[None,1000] | 7            | 0               | 28      |
| _layers/0 | Affine | f32[None,3]    | 13           | 18              | 52      |
| _layers/3 | Affine | f32[None,1000] | 4,001        | 3,000           | 16,004  |
| unused    | Affine | -              | 0            | 0               | 0       |
| total     |        | f32[None,1000] | 4,021        | 3,018           | 16,084  |
4,019 of 4,021 parameters are trained";
    assert_eq!(summary(&tower, [None, Some(3)]).unwrap().to_string(), expected);
}

#[test]
fn a_summary_leaves_the_module_and_the_tape_alone() {
    let tape = GradientTape::new();
    let tower = tower();
    summary(&tower, [2, 3]).unwrap();
    assert_eq!(tower.variables().unwrap().len(), 1);
    tower.forward(&x(3)).unwrap();
    let calls =
        || tower.variables().unwrap().iter().find(|v| v.name().ends_with("calls")).map(value).unwrap();
    assert_eq!(calls(), [2.0]);
    let fixed = summary(&tower, [2, 3]).unwrap();
    assert_eq!(fixed.output, Spec::from([2, 1000]));
    assert_eq!(fixed.multiply_adds(), 2 * 3018);
    assert_eq!(calls(), [2.0]);
    drop(tape);
}

#[test]
fn variables_that_depend_on_an_open_dim_are_refused() {
    let message = summary(&Affine::new(2), [None, None]).unwrap_err().to_string();
    assert!(message.contains("affine/w depends on a dim that is open"), "{message}");
}

#[test]
fn an_input_that_does_not_fit_is_refused_with_the_path() {
    let message = summary(&Affine::new(2), [3]).unwrap_err().to_string();
    assert!(message.starts_with("in affine: affine: x has shape [3]"), "{message}");
}
