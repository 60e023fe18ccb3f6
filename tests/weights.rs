//! Weights that travel: files of NumPy and PyTorch, read and written.
#![cfg(all(feature = "npz", feature = "safetensors"))]

use std::path::{Path, PathBuf};

use couplet::checkpoint::{
    LoadOptions, SaveOptions, Stored, StoredDType, load_tensors, load_weights, save_tensors, save_weights,
};
use couplet::nn::{Conv2DTranspose, DepthwiseConv2D};
use couplet::prelude::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn numbers(stored: &Stored) -> Vec<f64> {
    match stored {
        Stored::Tensor(x) => x.cast(DType::F64).unwrap().to_vec().unwrap(),
        other => panic!("no numbers: {other:?}"),
    }
}

#[test]
fn arrays_of_numpy_have_their_values() {
    let counted: Vec<f64> = (0..24).map(f64::from).collect();
    // The structure is listed, but not read; all else is.
    for name in ["plain.npz", "deflated.npz"] {
        let e = load_tensors(fixture("numpy").join(name)).unwrap_err().to_string();
        assert!(e.contains("tensor struct") && e.contains("unsupported_dtype"), "{e}");
    }
    for version in 1..=3 {
        let name = format!("version{version}");
        let tensors = load_tensors(fixture("numpy").join(format!("{name}.npy"))).unwrap();
        assert_eq!((tensors[&name].shape(), numbers(&tensors[&name])), (&[2, 3, 4][..], counted.clone()));
    }
    let folder = Folder::new("numpy");
    for name in ["plain.npz", "deflated.npz"] {
        #[derive(Module)]
        struct Arrays {
            scope: Scope,
            c_order: Variable,
            fortran_order: Variable,
            big_endian: Variable,
            big_fortran: Variable,
            scalar: Variable,
            half: Variable,
            r#bool: Variable,
            u64: Variable,
            empty: Variable,
        }
        let zeros = |shape: &[usize], dtype| Variable::from_tensor("v", Tensor::zeros(shape, dtype).unwrap());
        let arrays = Arrays {
            scope: Scope::of::<Arrays>(),
            c_order: zeros(&[2, 3, 4], DType::F32),
            fortran_order: zeros(&[2, 3, 4], DType::F64),
            big_endian: zeros(&[2, 3, 4], DType::I16),
            big_fortran: zeros(&[2, 3, 4], DType::F32),
            scalar: zeros(&[], DType::F64),
            half: zeros(&[2], DType::F16),
            r#bool: zeros(&[3], DType::Bool),
            u64: zeros(&[1], DType::U64),
            empty: zeros(&[0, 3], DType::U8),
        };
        let options = LoadOptions::new().skip("^(complex|bytes|text|time|struct)$");
        load_weights(fixture("numpy").join(name), &arrays, &options).unwrap();
        let path = folder.0.join(name);
        save_weights(&path, &arrays, &SaveOptions::new()).unwrap();
        let tensors = load_tensors(&path).unwrap();
        for key in ["c_order", "fortran_order", "big_endian", "big_fortran"] {
            assert_eq!(
                (tensors[key].shape(), numbers(&tensors[key])),
                (&[2, 3, 4][..], counted.clone()),
                "{key}"
            );
        }
        assert_eq!(numbers(&tensors["scalar"]), [2.5]);
        assert_eq!(numbers(&tensors["half"]), [1.5, -2.0]);
        assert_eq!(numbers(&tensors["bool"]), [1.0, 0.0, 1.0]);
        assert_eq!(arrays.u64.value().to_vec::<u64>().unwrap(), [u64::MAX]);
        assert_eq!(tensors["empty"].dtype(), StoredDType::Tensor(DType::U8));
    }
}

/// The network of `convnet.safetensors`, with the channels last.
#[derive(Module)]
struct ConvNet {
    scope: Scope,
    conv: Conv2D,
    norm: BatchNorm,
    up: Conv2DTranspose,
    each: DepthwiseConv2D,
    linear: Linear,
}

impl ConvNet {
    fn new() -> Self {
        ConvNet {
            scope: Scope::of::<Self>(),
            conv: Conv2D::new(4, 3).stride(2).padding(Padding::Valid),
            norm: BatchNorm::new(true, true).decay_rate(0.9),
            up: Conv2DTranspose::new(2, 3).padding(Padding::Valid),
            each: DepthwiseConv2D::new(2).channel_multiplier(3).padding(Padding::Valid),
            linear: Linear::new(5),
        }
    }

    /// Keys of PyTorch's network as paths of this one.
    fn options() -> LoadOptions {
        LoadOptions::new()
            .rename(r"^0\.", "conv.")
            .rename(r"^1\.running_mean$", "norm/moving_mean/average")
            .rename(r"^1\.running_var$", "norm/moving_variance/average")
            .rename(r"^1\.num_batches_tracked$", "norm/moving_mean/_counter")
            .rename(r"^1\.weight$", "norm/scale")
            .rename(r"^1\.bias$", "norm/offset")
            .rename(r"^3\.", "up.")
            .rename(r"^4\.", "each.")
            .rename(r"^7\.", "linear.")
            .rename(r"\.weight$", "/w")
            .rename(r"\.bias$", "/b")
            .also("/average$", "/_hidden")
            .also("moving_mean/_counter$", "moving_variance/_counter")
            .torch_layouts(true)
    }
}

#[scoped]
impl Forward for ConvNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm.forward_t(&self.conv.forward(x)?, false)?.relu()?;
        let x = self.each.forward(&self.up.forward(&x)?)?;
        self.linear.forward(&x.mean_axes([1, 2], false)?)
    }
}

#[test]
fn a_network_of_torch_gives_its_outputs() {
    let io = load_tensors(fixture("torch/convnet_io.safetensors")).unwrap();
    let (Stored::Tensor(x), expected) = (&io["x"], numbers(&io["y"])) else { panic!("{io:?}") };
    let net = ConvNet::new();
    net.forward(x).unwrap();
    let report = load_weights(fixture("torch/convnet.safetensors"), &net, &ConvNet::options()).unwrap();
    assert_eq!(report.loaded.len(), 16, "{report}");
    let turned: Vec<&str> =
        report.changed().map(|one| one.path.as_str()).filter(|path| path.ends_with('w')).collect();
    assert_eq!(turned, ["conv/w", "up/w", "each/w", "linear/w"]);
    let y = numbers(&net.forward(x).unwrap().into());
    assert_eq!(y.len(), expected.len());
    for (y, expected) in y.iter().zip(&expected) {
        assert!((y - expected).abs() < 1e-5, "{y} {expected}");
    }
}

/// Writes what `tests/python/check_weights.py` reads.
#[test]
fn files_for_other_programs_are_written() {
    let temporary = Folder::new("python");
    let folder = std::env::var_os("COUPLET_WEIGHTS_DIR").map_or_else(|| temporary.0.clone(), PathBuf::from);
    let io = load_tensors(fixture("torch/convnet_io.safetensors")).unwrap();
    let Stored::Tensor(x) = &io["x"] else { panic!("{io:?}") };
    let net = ConvNet::new();
    net.forward(x).unwrap();
    load_weights(fixture("torch/convnet.safetensors"), &net, &ConvNet::options()).unwrap();
    net.linear.named_variables().unwrap()[0]
        .1
        .assign(&Tensor::full([6, 5], 0.25, DType::F32).unwrap())
        .unwrap();
    net.linear.named_variables().unwrap()[1]
        .1
        .assign(&Tensor::arange(0.0, 5.0, 1.0, DType::F32).unwrap())
        .unwrap();
    let options = SaveOptions::new()
        .skip("_hidden$|moving_variance/_counter$")
        .rename("^conv/", "0.")
        .rename("^norm/", "1.")
        .rename("^up/", "3.")
        .rename("^each/", "4.")
        .rename("^linear/", "7.")
        .rename(r"\.(w|scale)$", ".weight")
        .rename(r"\.(b|offset)$", ".bias")
        .rename("moving_mean/average$", "running_mean")
        .rename("moving_variance/average$", "running_var")
        .rename("moving_mean/_counter$", "num_batches_tracked")
        .torch_layouts(true);
    save_weights(folder.join("convnet.safetensors"), &net, &options).unwrap();
    let y = net.forward(x).unwrap();
    let x = x.transpose(&[0, 3, 1, 2]).unwrap();
    save_tensors(folder.join("convnet_io.safetensors"), [("x", x), ("y", y)]).unwrap();

    let counted = Tensor::arange(0.0, 6.0, 1.0, DType::F32).unwrap().reshape([2, 3]).unwrap();
    let dtypes = DType::ALL.into_iter().filter(|&dtype| dtype != DType::BF16);
    let mut tensors: Vec<_> = dtypes.map(|dtype| (dtype.name(), counted.cast(dtype).unwrap())).collect();
    tensors.push(("net/transposed", counted.transpose(&[1, 0]).unwrap()));
    tensors.push(("scalar", Tensor::from(2.5f64)));
    tensors.push(("größe", Tensor::zeros([0, 2], DType::F32).unwrap()));
    save_tensors(folder.join("dtypes.npz"), tensors.clone()).unwrap();
    save_tensors(folder.join("one.npy"), [("one", counted.clone())]).unwrap();
    tensors.push(("bf16", counted.cast(DType::BF16).unwrap()));
    save_tensors(folder.join("dtypes.safetensors"), tensors).unwrap();
    let linear = Linear::new(3);
    linear.forward(&Tensor::ones([1, 2], DType::F32).unwrap()).unwrap();
    linear.named_variables().unwrap()[0].1.assign(&counted).unwrap();
    save_weights(folder.join("deflated.npz"), &linear, &SaveOptions::new().compress(true)).unwrap();
    assert!(load_tensors(folder.join("dtypes.safetensors")).unwrap().len() == 16);
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("couplet-weights-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
