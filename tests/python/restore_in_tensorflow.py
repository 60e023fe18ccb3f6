"""Restores in TensorFlow and Sonnet what `cargo test --release --test tensorflow_restores` wrote.

usage: COUPLET_TENSORFLOW_DIR=DIR cargo test --release --test tensorflow_restores && python restore_in_tensorflow.py DIR
Needs tensorflow, tf_keras, dm-sonnet, numpy and setuptools below 81.
"""

import os
import pathlib
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import sonnet as snt
import tensorflow as tf

folder = pathlib.Path(sys.argv[1])


class Conv(snt.Module):
    """The layers of the convolutional network, in a list as Sequential holds them."""

    def __init__(self):
        super().__init__()
        norm = snt.BatchNorm(True, True, decay_rate=0.9)
        self._layers = [snt.Conv2D(4, 3), norm, tf.nn.relu, snt.Flatten(), snt.Linear(2)]

    def __call__(self, x):
        for i, layer in enumerate(self._layers):
            x = layer(x, is_training=False) if i == 1 else layer(x)
        return x


def run_lstm(lstm, x):
    return snt.static_unroll(lstm, x, lstm.initial_state(x.shape[1]))[0]


networks = {
    "mlp": (snt.nets.MLP([8, 6, 3]), snt.optimizers.Adam(0.01), lambda net, x: net(x)),
    "conv": (Conv(), snt.optimizers.Momentum(0.01, 0.9), lambda net, x: net(x)),
    "lstm": (snt.LSTM(4), snt.optimizers.Adam(0.01), run_lstm),
}
for name, (net, optimizer, run) in networks.items():
    results = np.load(folder / name / "results.npz")
    step = tf.Variable(0, dtype=tf.int32)
    checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer, step=step)
    path = tf.train.latest_checkpoint(folder / name)
    assert path.endswith("ckpt-1"), path
    status = checkpoint.restore(path)
    y = run(net, tf.constant(results["x"]))  # makes the variables, which take the restored values
    before = [v.numpy() for v in net.trainable_variables]
    optimizer.apply([tf.zeros_like(v) for v in net.trainable_variables], net.trainable_variables)
    status.assert_consumed()
    assert step.numpy() == 3 and checkpoint.save_counter.numpy() == 1
    error = np.abs(y.numpy() - results["y"]).max()
    assert error < 1e-5, (name, error)
    moved = max(np.abs(a - v.numpy()).max() for a, v in zip(before, net.trainable_variables))
    assert moved > 0, "the optimiser goes on with its slots"
    print(f"{name}: {len(net.variables)} variables restored and consumed; results differ by at most {error:.1e}")
