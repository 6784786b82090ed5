"""Networks that small machines run, built with the public API."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.backend import Executor, Runtime

qnn = relay.qnn.op
C_API = {"interface-api": "c", "unpacked-api": True}


def build_c(mod, options=None, **more):
    """A module built to C sources with the C interface."""
    return relay.build(mod, target="c", executor=Executor("aot", {**C_API, **(options or {})}), runtime=Runtime("crt"), **more)


def module(params, body):
    return IRModule.from_expr(relay.Function(params, body))


def _weights(rng, *shape):
    return relay.const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype("float32"))


def mlp():
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=(1, 32), dtype="float32")
    hidden = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, _weights(rng, 48, 32)), _weights(rng, 48)))
    return module([x], relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(hidden, _weights(rng, 10, 48)), _weights(rng, 10))))


def cnn():
    rng = np.random.default_rng(2)
    x = relay.var("image", shape=(1, 1, 16, 16), dtype="float32")
    y = relay.nn.conv2d(x, _weights(rng, 8, 1, 3, 3), kernel_size=(3, 3), channels=8, padding=(1, 1))
    y = relay.nn.max_pool2d(relay.nn.relu(relay.nn.bias_add(y, _weights(rng, 8))), pool_size=(2, 2), strides=(2, 2))
    z = relay.nn.conv2d(y, _weights(rng, 8, 8, 3, 3), kernel_size=(3, 3), channels=8, padding=(1, 1))
    z = relay.nn.relu(relay.add(z, y))
    flat = relay.nn.batch_flatten(relay.nn.avg_pool2d(z, pool_size=(4, 4), strides=(4, 4)))
    return module([x], relay.nn.softmax(relay.nn.dense(flat, _weights(rng, 10, 32))))


def keyword_lstm(steps=6, features=20, hidden=32, words=12):
    """An LSTM over a few frames, unrolled, and a classifier."""
    rng = np.random.default_rng(3)
    x = relay.var("frames", shape=(steps, features), dtype="float32")
    w_x, w_h, bias = _weights(rng, 4 * hidden, features), _weights(rng, 4 * hidden, hidden), _weights(rng, 4 * hidden)
    frames = relay.split(x, steps, axis=0)
    h = c = relay.zeros((1, hidden), "float32")
    for t in range(steps):
        gates = relay.nn.bias_add(relay.add(relay.nn.dense(frames[t], w_x), relay.nn.dense(h, w_h)), bias)
        i, f, g, o = relay.split(gates, 4, axis=1)
        c = relay.add(relay.multiply(relay.sigmoid(f), c), relay.multiply(relay.sigmoid(i), relay.tanh(g)))
        h = relay.multiply(relay.sigmoid(o), relay.tanh(c))
    return module([x], relay.nn.softmax(relay.nn.dense(h, _weights(rng, words, hidden))))


def _f32(v):
    return relay.const(np.float32(v))


def _i32(v):
    return relay.const(np.int32(v))


class _Streaming:
    """A streaming convolutional network of int8: every layer keeps its last frames, which the caller hands in and gets back."""

    def __init__(self):
        self.rng, self.inputs, self.states = np.random.default_rng(4), [], []

    def int8(self, *shape):
        return relay.const(np.clip(np.round(self.rng.standard_normal(shape) * 30), -127, 127).astype("int8"))

    def remember(self, x, frames, channels):
        """The new frame(s) behind the last ones; what is kept becomes a result."""
        state = relay.var(f"state{len(self.states)}", shape=(1, frames, 1, channels), dtype="int8")
        self.inputs.append(state)
        joined = relay.concatenate([state, x], axis=1)
        total = frames + x_frames(x)
        self.states.append(relay.strided_slice(joined, [0, total - frames, 0, 0], [1, total, 1, channels]))
        return joined

    def conv(self, x, channels_in, channels, taps, stride=1, depthwise=False):
        weight = self.int8(taps, 1, channels, 1) if depthwise else self.int8(taps, 1, channels_in, channels)
        fan_in = taps if depthwise else taps * channels_in
        y = qnn.conv2d(x, weight, _i32(-128), _i32(0), _f32(0.04), _f32(0.01), kernel_size=(taps, 1), channels=channels, strides=(stride, 1),
                       groups=channels if depthwise else 1, data_layout="NHWC", kernel_layout="HWOI" if depthwise else "HWIO", out_dtype="int32")
        bias = relay.const(self.rng.integers(-2000, 2000, channels).astype("int32"))
        scale = relay.const((self.rng.uniform(0.8, 1.2, channels) / (30 * 40 * np.sqrt(fan_in))).astype("float32"))
        return qnn.requantize(relay.nn.bias_add(y, bias, axis=3), scale, _i32(0), _f32(0.04), _i32(-128), axis=3, rounding="TFLITE", out_dtype="int8")


def x_frames(x):
    """Frames of an expression with the shape (1, frames, 1, channels)."""
    from anchorleg.relay.transform import InferType

    typed = InferType()(IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x)))
    return int(typed["main"].ret_type.dims[1])


def wake_word(channels=96):
    """Three feature frames in, the probability of the wake word out; about 45 kB of weights."""
    net = _Streaming()
    audio = relay.var("audio", shape=(1, 3, 1, 40), dtype="int8")
    x = net.conv(net.remember(audio, 2, 40), 40, channels, 5, 3)
    for taps in (5, 9, 13, 21):
        x = net.conv(net.remember(x, taps - 1, channels), channels, channels, taps, depthwise=True)
        x = net.conv(x, channels, channels, 1)
    last = relay.reshape(net.remember(x, 4, channels), (1, 5 * channels))
    score = qnn.dense(last, net.int8(1, 5 * channels), _i32(-128), _i32(0), _f32(0.04), _f32(0.01), units=1, out_dtype="int32")
    score = qnn.requantize(score, _f32(0.0004), _i32(0), _f32(0.1), _i32(0), rounding="TFLITE", out_dtype="int8")
    probability = qnn.sigmoid(score, _f32(0.1), _i32(0), _f32(1 / 256), _i32(-128))
    return module([audio, *net.inputs], relay.Tuple([probability, *net.states]))


NETWORKS = {"mlp": mlp, "cnn": cnn, "keyword_lstm": keyword_lstm, "wake_word": wake_word}
