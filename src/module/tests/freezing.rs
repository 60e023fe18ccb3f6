//! Freezing and thawing.

use super::*;

#[derive(Module)]
struct Net {
    scope: Scope,
    encoder: Vec<Linear>,
    decoder: Linear,
}

fn net() -> Net {
    let scope = Scope::of::<Net>();
    let _in = scope.enter();
    Net {
        encoder: vec![Linear::new(2).name("e0"), Linear::new(2).name("e1")],
        decoder: Linear::new(2).name("d"),
        scope,
    }
}

fn call(net: &Net) {
    net.encoder.iter().chain([&net.decoder]).for_each(|linear| drop(linear.forward(&x(1)).unwrap()));
}

#[test]
fn a_subtree_or_a_single_variable_is_frozen_and_thawed() {
    let net = net();
    call(&net);
    net.freeze("encoder").unwrap();
    net.freeze("decoder/b").unwrap();
    assert_eq!(names(&net.trainable_variables().unwrap()), ["net/d/w"]);
    assert_eq!(net.non_trainable_variables().unwrap().len(), 5);
    net.thaw("encoder/1").unwrap();
    assert_eq!(names(&net.trainable_variables().unwrap()), ["net/d/w", "net/e1/b", "net/e1/w"]);
    net.thaw("").unwrap();
    assert_eq!(net.trainable_variables().unwrap().len(), 6);
    assert!(net.variables().unwrap().iter().all(Variable::trainable), "what is trainable stays so");
}

#[test]
fn what_does_not_exist_yet_is_frozen_when_it_is_made() {
    let net = net();
    net.freeze("encoder").unwrap();
    net.freeze("decoder/w").unwrap();
    net.thaw("encoder/0").unwrap();
    call(&net);
    assert_eq!(names(&net.trainable_variables().unwrap()), ["net/d/b", "net/e0/b", "net/e0/w"]);
}

#[test]
fn an_unknown_path_is_answered_with_the_nearest_names() {
    let net = net();
    let message = net.freeze("encodr").unwrap_err().to_string();
    assert!(
        message.contains("\"encodr\"") && message.ends_with("a part of the module: encoder, decoder"),
        "{message}"
    );
    let message = net.freeze("encoder/0/q").unwrap_err().to_string();
    assert!(message.contains("a part of \"encoder/0\": w, b"), "{message}");
    let message = net.thaw("decoder/w/x").unwrap_err().to_string();
    assert!(message.contains("not made yet"), "{message}");
}
