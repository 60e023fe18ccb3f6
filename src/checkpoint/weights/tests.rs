use super::*;
use crate::checkpoint::testing::Folder;
use crate::checkpoint::{Raw, load_tensors, save_tensors};
use crate::module::Forward;
use crate::nn::{BatchNorm, Conv2D, Conv2DTranspose, DepthwiseConv2D, Embed, Linear, Sequential};

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F32).unwrap()
}

fn counted(shape: &[usize]) -> Tensor {
    let size = shape.iter().product::<usize>();
    Tensor::arange(0.0, size as f64, 1.0, DType::F32).unwrap().reshape(shape).unwrap()
}

fn values_of(module: &dyn Module) -> Vec<(String, Vec<f64>)> {
    let named = module.named_variables().unwrap().into_iter();
    named.map(|(path, v)| (path, v.value().cast(DType::F64).unwrap().to_vec().unwrap())).collect()
}

fn two_linears() -> Sequential {
    Sequential::new().push(Linear::new(3)).push(Linear::new(2))
}

/// The text of an error that must have changed nothing.
fn refused(path: &Path, module: &dyn Module, options: &LoadOptions) -> String {
    let before = module.named_variables().map(|_| values_of(module)).unwrap();
    let e = load_weights(path, module, options).unwrap_err().to_string();
    assert_eq!(values_of(module), before, "{e}");
    e
}

#[test]
fn weights_come_back_before_and_after_the_first_call_in_every_format() {
    let folder = Folder::new();
    let net = two_linears();
    let y = net.forward(&counted(&[2, 4])).unwrap().to_vec::<f32>().unwrap();
    for name in ["x.safetensors", "x.npz"] {
        let path = folder.path(name);
        save_weights(&path, &net, &SaveOptions::new()).unwrap();
        let fresh = two_linears();
        let report = load_weights(&path, &fresh, &LoadOptions::new()).unwrap();
        assert!(report.loaded.iter().all(|weight| weight.waiting) && report.loaded.len() == 4);
        assert_eq!(fresh.forward(&counted(&[2, 4])).unwrap().to_vec::<f32>().unwrap(), y);
        let built = two_linears();
        built.forward(&ones(&[1, 4])).unwrap();
        let report = load_weights(&path, &built, &LoadOptions::new()).unwrap();
        assert!(report.loaded.iter().all(|weight| !weight.waiting) && report.unmade.is_empty());
        assert_eq!(built.forward(&counted(&[2, 4])).unwrap().to_vec::<f32>().unwrap(), y);
        // What waits is written as well.
        let waiting = two_linears();
        load_weights(&path, &waiting, &LoadOptions::new()).unwrap();
        save_weights(folder.path(&format!("again-{name}")), &waiting, &SaveOptions::new()).unwrap();
        assert_eq!(load_tensors(folder.path(&format!("again-{name}"))).unwrap().len(), 4);
    }
    assert!(save_weights(folder.path("x.pt"), &net, &SaveOptions::new()).is_err());
    assert!(load_weights(folder.path("y"), &net, &LoadOptions::new()).is_err());
}

#[test]
fn everything_that_does_not_fit_is_listed_with_the_nearest_name_and_nothing_changes() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let net = two_linears();
    net.forward(&ones(&[1, 4])).unwrap();
    let raw = Stored::Raw(Raw { dtype: "F8_E4M3".into(), shape: [2].into(), bytes: vec![0; 2] });
    save_tensors(
        &path,
        [
            ("layers/0/w", Stored::Tensor(ones(&[4, 3]))),
            ("_layers/0/b", ones(&[3]).into()),
            ("_layers/1/w", ones(&[2, 3]).into()),
            ("_layers/1/b", raw),
            ("optimizer", ones(&[9]).into()),
        ],
    )
    .unwrap();
    let e = refused(&path, &net, &LoadOptions::new());
    for part in [
        "x.safetensors",
        "no value for _layers/0/w (nearest: layers/0/w)",
        "no variable for the key layers/0/w (nearest: _layers/0/w)",
        "no variable for the key optimizer",
        "_layers/1/w: the key _layers/1/w gives f32[2, 3], the variable is f32[3, 2]",
        "_layers/1/b: the key _layers/1/b holds F8_E4M3",
        "allow_missing(true)",
        "allow_unused(true)",
        "allow_mismatched(true)",
    ] {
        assert!(e.contains(part), "{part} in {e}");
    }
    assert!(!e.contains("no value for _layers/1"), "{e}");
    let options = LoadOptions::new().allow_missing(true).allow_unused(true);
    refused(&path, &net, &options);
    let report = load_weights(&path, &net, &options.allow_mismatched(true)).unwrap();
    assert_eq!(report.loaded.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["_layers/0/b"]);
    assert_eq!((report.missing.len(), report.unused.len(), report.mismatched.len()), (1, 2, 2));
    let text = report.to_string();
    assert!(text.starts_with("1 loaded\n1 missing\n  _layers/0/w (nearest: layers/0/w)\n2 unused"), "{text}");
    assert_eq!(net.named_variables().unwrap()[1].1.value().to_vec::<f32>().unwrap().len(), 3);
}

#[test]
fn damage_in_one_tensor_leaves_all_variables_alone() {
    let folder = Folder::new();
    let path = folder.path("x.npz");
    let net = two_linears();
    net.forward(&ones(&[1, 4])).unwrap();
    save_weights(&path, &net, &SaveOptions::new()).unwrap();
    let other = two_linears();
    other.forward(&ones(&[1, 4])).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.windows(6).rposition(|w| w == b"\x93NUMPY").unwrap();
    bytes[last + 130] ^= 1;
    let path = folder.file("y.npz", &bytes);
    let e = refused(&path, &other, &LoadOptions::new());
    assert!(e.contains("y.npz, tensor _layers/1/") && e.contains("tensor_checksum"), "{e}");
}

#[test]
fn renames_happen_in_order_and_two_keys_never_share_a_path() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    save_tensors(&path, [("module.fc1.kernel", ones(&[4, 2])), ("module.fc1.bias", ones(&[2]))]).unwrap();
    let net = Linear::new(2);
    let options =
        LoadOptions::new().rename(r"^module\.", "").rename(r"^fc(\d+)\.kernel$", "w$1").rename("w1", "w");
    let report = load_weights(&path, &net, &options.clone().rename(r"^fc1\.bias$", "b")).unwrap();
    assert_eq!(report.loaded[1].key, "module.fc1.kernel");
    let e = load_weights(&path, &net, &options.rename(r"^fc1\.bias$", "w")).unwrap_err().to_string();
    assert!(e.contains("both have the path \"w\""), "{e}");
    let e = load_weights(&path, &net, &LoadOptions::new().rename("(", "")).unwrap_err().to_string();
    assert!(e.contains("regular expression"), "{e}");

    net.forward(&ones(&[1, 4])).unwrap();
    let e = save_weights(&path, &net, &SaveOptions::new().rename(".", "x")).unwrap_err().to_string();
    assert!(e.contains("both have the key \"x\""), "{e}");
    save_weights(&path, &net, &SaveOptions::new().rename("^w$", "fc.weight").skip("^b$")).unwrap();
    assert_eq!(load_tensors(&path).unwrap().keys().collect::<Vec<_>>(), ["fc.weight"]);
}

#[test]
fn layouts_of_torch_are_turned_on_the_way_in_and_back_on_the_way_out() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let norm = || BatchNorm::new(true, true).data_format("channels_first");
    let (conv, up, each, linear, embed) = (
        Conv2D::new(2, 3),
        Conv2DTranspose::new(4, 3),
        DepthwiseConv2D::new(3).channel_multiplier(2),
        Linear::new(5),
        Embed::new(7).embed_dim(2),
    );
    let image = ones(&[1, 5, 5, 3]);
    conv.forward(&image).unwrap();
    up.forward(&image).unwrap();
    each.forward(&image).unwrap();
    linear.forward(&ones(&[1, 4])).unwrap();
    embed.forward(&Tensor::from([1i64])).unwrap();
    let norm = norm();
    norm.forward_t(&ones(&[2, 3, 4, 4]), true).unwrap();
    let cases: [(&dyn Module, &[(&str, &[usize])]); 6] = [
        (&conv, &[("w", &[2, 3, 3, 3]), ("b", &[2])]),
        (&up, &[("w", &[3, 4, 3, 3]), ("b", &[4])]),
        (&each, &[("w", &[6, 1, 3, 3]), ("b", &[6])]),
        (&linear, &[("w", &[5, 4]), ("b", &[5])]),
        (&embed, &[("embeddings", &[7, 2])]),
        (&norm, &[("scale", &[3]), ("moving_mean/average", &[3]), ("moving_mean/_counter", &[])]),
    ];
    for (module, shapes) in cases {
        save_weights(&path, module, &SaveOptions::new().torch_layouts(true)).unwrap();
        let stored = load_tensors(&path).unwrap();
        for (key, shape) in shapes {
            assert_eq!(stored[*key].shape(), *shape, "{key} of {}", module.kind());
        }
        let before = values_of(module);
        for (_, variable) in module.named_variables().unwrap() {
            variable.assign(&Tensor::zeros(variable.shape().clone(), variable.dtype()).unwrap()).unwrap();
        }
        load_weights(&path, module, &LoadOptions::new().torch_layouts(true)).unwrap();
        assert_eq!(values_of(module), before, "{}", module.kind());
    }
}

#[test]
fn a_square_matrix_of_torch_is_transposed_before_the_first_call_and_reported() {
    let folder = Folder::new();
    let path = folder.path("x.npz");
    save_tensors(&path, [("w", counted(&[2, 2])), ("b", counted(&[2]))]).unwrap();
    let linear = Linear::new(2);
    let report = load_weights(&path, &linear, &LoadOptions::new().torch_layouts(true)).unwrap();
    assert_eq!(
        report.changed().map(|one| (one.path.as_str(), &one.layout)).collect::<Vec<_>>(),
        [("w", &Layout::Linear)]
    );
    // [1, 0] times the transpose of [[0, 1], [2, 3]], and [0, 1].
    let y = linear.forward(&Tensor::from([[1.0f32, 0.0]])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 3.0]);
}

#[test]
fn what_cannot_be_told_asks_for_a_rule_and_a_rule_goes_first() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    save_tensors(&path, [("w", counted(&[3, 1, 2, 2]))]).unwrap();
    let conv = DepthwiseConv2D::new(2).with_bias(false);
    let options = LoadOptions::new().torch_layouts(true);
    let e = load_weights(&path, &conv, &options).unwrap_err().to_string();
    assert!(e.contains("layout of w") && e.contains("multiplier") && e.contains("layout(pattern"), "{e}");
    assert!(!e.contains("no value"), "{e}");
    let options = options.layout("^w$", Layout::Depthwise { multiplier: 1 });
    load_weights(&path, &conv, &options).unwrap();
    let y = conv.forward(&ones(&[1, 2, 2, 3])).unwrap();
    // Without padding the first output of a channel is the sum of its kernel: 0 + 1 + 2 + 3, and 16 more each.
    assert_eq!(y.to_vec::<f32>().unwrap()[..3], [6.0, 22.0, 38.0]);
}

#[test]
fn floats_are_cast_where_asked_and_nothing_else_is() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let linear = Linear::new(2);
    linear.forward(&counted(&[1, 2])).unwrap();
    save_weights(&path, &linear, &SaveOptions::new().dtype(DType::BF16)).unwrap();
    let e = refused(&path, &linear, &LoadOptions::new());
    assert!(e.contains("gives bf16[2, 2], the variable is f32[2, 2]"), "{e}");
    load_weights(&path, &linear, &LoadOptions::new().dtype(DType::F32)).unwrap();
    assert!(load_weights(&path, &linear, &LoadOptions::new().dtype(DType::I32)).is_err());
}

#[test]
fn a_value_for_a_variable_that_needs_no_input_is_compared_before_anything_changes() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    save_tensors(&path, [("0/embeddings", ones(&[9, 2])), ("1/w", ones(&[4, 2]))]).unwrap();
    let parts = (Embed::new(7).embed_dim(2), Linear::new(2).with_bias(false));
    parts.1.forward(&ones(&[1, 4])).unwrap();
    #[derive(couplet_derive::Module)]
    struct Pair {
        scope: crate::scope::Scope,
        embed: Embed,
        linear: Linear,
    }
    let pair = Pair { scope: crate::scope::Scope::of::<Pair>(), embed: parts.0, linear: parts.1 };
    let before = pair.linear.named_variables().unwrap()[0].1.value().to_vec::<f32>().unwrap();
    let options = LoadOptions::new().rename("^0", "embed").rename("^1", "linear");
    let e = load_weights(&path, &pair, &options).unwrap_err().to_string();
    assert!(e.contains("[9, 2]"), "{e}");
    assert_eq!(pair.linear.named_variables().unwrap()[0].1.value().to_vec::<f32>().unwrap(), before);
    assert!(pair.embed.named_variables().unwrap()[0].1.shape()[..] == [7, 2]);
}
