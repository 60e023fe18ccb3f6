//! The printed form of modules, and tables of variables.

use super::*;
use crate::{Visit, format_variables};

#[derive(Module)]
struct Conv2D {
    scope: Scope,
    output_channels: usize,
    kernel_shape: usize,
    #[module(default = 1)]
    stride: usize,
    #[module(default = "SAME")]
    padding: &'static str,
    #[module(default = true)]
    with_bias: bool,
    #[module(default = "NHWC")]
    data_format: &'static str,
    #[module(hidden)]
    computed: usize,
    note: Option<String>,
    w: Once<Variable>,
}

fn conv() -> Conv2D {
    Conv2D {
        scope: Scope::of::<Conv2D>(),
        output_channels: 3,
        kernel_shape: 3,
        stride: 1,
        padding: "SAME",
        with_bias: true,
        data_format: "NHWC",
        computed: 7,
        note: None,
        w: Once::new(),
    }
}

#[test]
fn arguments_with_their_default_values_are_left_out() {
    assert_eq!(format!("{:?}", conv()), "Conv2D(output_channels=3, kernel_shape=3)");
    assert_eq!(format!("{:?}", Linear::new(3).name("x")), "Linear(output_size=3, name='x')");
    assert_eq!(format!("{:?}", Linear::new(3).with_bias(false)), "Linear(output_size=3, with_bias=false)");
    let noted = Conv2D { note: Some("it's".into()), ..conv() };
    assert_eq!(format!("{noted:?}"), r"Conv2D(output_channels=3, kernel_shape=3, note='it\'s')");
}

#[test]
fn a_long_form_has_one_argument_a_line() {
    let conv = Conv2D { stride: 2, padding: "VALID", with_bias: false, ..conv() }.name("abc");
    let expected = "\
Conv2D(
    output_channels=3,
    kernel_shape=3,
    stride=2,
    padding='VALID',
    with_bias=false,
    name='abc',
)";
    assert_eq!(format!("{conv:?}"), expected);
}

#[test]
fn generic_tuple_and_empty_modules_print() {
    #[derive(Module)]
    struct Generic<T>(T, Scope, std::marker::PhantomData<fn(T)>);
    #[derive(Module)]
    struct Empty {
        scope: Scope,
    }
    #[derive(Visit)]
    struct Config {
        rate: f64,
        dims: (usize, Vec<usize>),
    }
    let generic = Generic(
        Config { rate: 1.0, dims: (1, vec![2, 3]) },
        Scope::of::<Generic<u8>>(),
        std::marker::PhantomData,
    );
    assert_eq!(format!("{generic:?}"), "Generic(Config(rate=1.0, dims=(1, [2, 3])))");
    assert_eq!(generic.scope().name(), "generic");
    assert_eq!(format!("{:?}", Empty { scope: Scope::of::<Empty>() }), "Empty()");
}

#[test]
fn a_hand_written_debug_is_used_wherever_the_module_is_printed() {
    #[derive(Module)]
    #[module(no_debug)]
    struct Custom {
        scope: Scope,
    }
    impl std::fmt::Debug for Custom {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("<custom>")
        }
    }
    let custom = Custom { scope: Scope::of::<Custom>() };
    assert_eq!(vec![Some(custom)].describe().unwrap().to_string(), "[<custom>]");
}

/// The table of the reference for `MLP([4, 2])` on an input of shape `[2, 3]`.
#[test]
fn the_table_of_variables_is_that_of_the_reference() {
    #[derive(Module)]
    struct Mlp {
        scope: Scope,
        layers: Vec<Linear>,
    }
    let scope = Scope::new("mlp");
    let layers = {
        let _in = scope.enter();
        vec![Linear::new(4).name("linear_0"), Linear::new(2).name("linear_1")]
    };
    let mlp = Mlp { scope, layers };
    mlp.layers[1].forward(&mlp.layers[0].forward(&x(3)).unwrap()).unwrap();
    let expected = "\
| Variable       | Spec     | Trainable   | Device   |
|----------------+----------+-------------+----------|
| mlp/linear_0/w | f32[3,4] | True        | CPU      |
| mlp/linear_0/b | f32[4]   | True        | CPU      |
| mlp/linear_1/w | f32[4,2] | True        | CPU      |
| mlp/linear_1/b | f32[2]   | True        | CPU      |";
    assert_eq!(format_variables(&mlp.variables().unwrap()), expected);
}

#[test]
fn the_table_of_no_variables_is_its_header() {
    let expected = "\
| Variable   | Spec   | Trainable   | Device   |
|------------+--------+-------------+----------|";
    assert_eq!(format_variables(&[]), expected);
    let counter = [counter("count").unwrap()];
    assert!(format_variables(&counter).ends_with("| count      | f32[]  | False       | CPU      |"));
}
