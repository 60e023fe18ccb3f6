"""Reads with NumPy, safetensors and PyTorch what `cargo test --release --test weights` wrote.

usage: COUPLET_WEIGHTS_DIR=DIR cargo test --release --test weights && python check_weights.py DIR
Needs numpy, safetensors and torch.
"""

import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import load_file, load_model

folder = pathlib.Path(sys.argv[1])
counted = np.arange(6).reshape(2, 3)
names = {"f32": "float32", "f64": "float64", "f16": "float16", "bool": "bool"}
names |= {f"{k}{b}": f"{'u' if k == 'u' else ''}int{b}" for k in "iu" for b in (8, 16, 32, 64)}


def check(name, arrays, is_bf16):
    assert len(arrays) == 12 + 3 + is_bf16, sorted(arrays)
    for short, dtype in names.items():
        array = np.asarray(arrays[short])
        assert array.dtype == dtype and (array == counted.astype(dtype)).all(), (name, short, array)
    assert (np.asarray(arrays["net/transposed"]) == counted.T).all()
    assert np.asarray(arrays["scalar"]) == 2.5 and np.asarray(arrays["scalar"]).shape == ()
    assert np.asarray(arrays["größe"]).shape == (0, 2)


with np.load(folder / "dtypes.npz", allow_pickle=False) as arrays:
    check("npz", dict(arrays), False)
with np.load(folder / "deflated.npz", allow_pickle=False) as arrays:
    assert sorted(arrays) == ["b", "w"] and arrays["b"].shape == (3,)
assert (np.load(folder / "one.npy") == counted).all()
tensors = load_file(folder / "dtypes.safetensors")
assert tensors["bf16"].dtype == torch.bfloat16 and (tensors["bf16"].float().numpy() == counted).all()
check("safetensors", tensors, True)

nn = torch.nn
net = nn.Sequential(
    nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3),
    nn.Conv2d(2, 6, 2, groups=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5),
)
missing, unexpected = load_model(net, folder / "convnet.safetensors", strict=True)
assert not missing and not unexpected, (missing, unexpected)
io = load_file(folder / "convnet_io.safetensors")
with torch.no_grad():
    y = net.eval()(io["x"])
assert net[1].num_batches_tracked == 3 and torch.allclose(y, io["y"], atol=1e-5), (y, io["y"])
print("all files read: numpy", np.__version__, "torch", torch.__version__)
