"""Standard networks as ONNX models with seeded weights, built on the spot.

Weights are scaled so that activations stay in a normal range; batch normalisation, layer normalisation and GELU are
left as exporters write them, so that the compiler has to do its own simplification and fusion.
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Collects nodes and weights; each method that adds a layer returns the name of its result."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: list[Any], dtype: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, shape: tuple[int, ...], scale: float) -> str:
        return self.constant((self.random.standard_normal(shape) * scale).astype("float32"))

    def __call__(self, kind: str, *inputs: str, **attrs: Any) -> str:
        result = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=result, **attrs))
        return result

    def finish(self, result: str, shape: list[Any], opset: int = 17) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [output], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(model)
        return model

    # layers

    def conv(self, x: str, cin: int, cout: int, size: int, stride: int = 1, groups: int = 1, act: str = "", gain: float = 2.0) -> str:
        """A convolution with batch normalisation and an activation ("", "relu" or "relu6")."""
        fan_in = cin // groups * size * size
        w = self.normal((cout, cin // groups, size, size), np.sqrt(gain / fan_in))
        y = self("Conv", x, w, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4, group=groups)
        uniform, normal = self.random.uniform, self.random.standard_normal
        stats = [uniform(0.8, 1.2, cout), normal(cout) * 0.1, normal(cout) * 0.1, uniform(0.8, 1.2, cout)]
        y = self("BatchNormalization", y, *(self.constant(s.astype("float32")) for s in stats), epsilon=1e-5)
        if act == "relu6":
            return self("Clip", y, self.constant(np.float32(0)), self.constant(np.float32(6)))
        return self("Relu", y) if act else y

    def dense(self, x: str, cin: int, cout: int, gain: float = 1.0) -> str:
        """``x @ W + b``."""
        return self("Add", self("MatMul", x, self.normal((cin, cout), np.sqrt(gain / cin))), self.normal((cout,), 0.02))

    def classifier(self, x: str, channels: int, classes: int = 1000) -> str:
        """Average pooling and a fully connected layer."""
        pooled = self("Flatten", self("GlobalAveragePool", x), axis=1)
        return self("Gemm", pooled, self.normal((classes, channels), channels ** -0.5), self.constant(np.zeros(classes, "float32")), transB=1)

    def layer_norm(self, x: str, width: int) -> str:
        """Layer normalisation, written out."""
        centred = self("Sub", x, self("ReduceMean", x, axes=[-1], keepdims=1))
        variance = self("ReduceMean", self("Pow", centred, self.constant(np.float32(2))), axes=[-1], keepdims=1)
        y = self("Div", centred, self("Sqrt", self("Add", variance, self.constant(np.float32(1e-5)))))
        scale = self.constant(self.random.uniform(0.9, 1.1, width).astype("float32"))
        return self("Add", self("Mul", y, scale), self.normal((width,), 0.02))

    def gelu(self, x: str) -> str:
        """The exact GELU, written out."""
        erf = self("Erf", self("Div", x, self.constant(np.float32(np.sqrt(2)))))
        return self("Mul", self("Mul", x, self("Add", erf, self.constant(np.float32(1)))), self.constant(np.float32(0.5)))


def mlp() -> onnx.ModelProto:
    """784-512-256-10: the overhead of a call dominates."""
    net = Network("mlp")
    x, width = net.input("x", [1, 784]), 784
    for wider in (512, 256):
        x, width = net("Relu", net.dense(x, width, wider, 2.0)), wider
    return net.finish(net("Softmax", net.dense(x, width, 10), axis=-1), [1, 10])


def _resnet(name: str, counts: tuple[int, ...], bottleneck: bool) -> onnx.ModelProto:
    net = Network(name)
    x = net.conv(net.input("data", [1, 3, 224, 224]), 3, 64, 7, 2, act="relu")
    x, channels = net("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for stage, count in enumerate(counts):
        for block in range(count):
            x, channels = _block(net, x, channels, 64 << stage, 2 if stage and not block else 1, bottleneck)
    return net.finish(net.classifier(x, channels), [1, 1000])


def _block(net: Network, x: str, cin: int, width: int, stride: int, bottleneck: bool) -> tuple[str, int]:
    cout = width * 4 if bottleneck else width
    skip = x if cin == cout and stride == 1 else net.conv(x, cin, cout, 1, stride, gain=1.0)
    if bottleneck:
        y = net.conv(net.conv(x, cin, width, 1, act="relu"), width, width, 3, stride, act="relu")
        y = net.conv(y, width, cout, 1, gain=0.5)
    else:
        y = net.conv(net.conv(x, cin, width, 3, stride, act="relu"), width, cout, 3, gain=0.5)
    return net("Relu", net("Add", y, skip)), cout


def resnet18() -> onnx.ModelProto:
    """ResNet-18 (He et al. 2016)."""
    return _resnet("resnet18", (2, 2, 2, 2), False)


def resnet50() -> onnx.ModelProto:
    """ResNet-50 with the stride in the 3×3 convolution."""
    return _resnet("resnet50", (3, 4, 6, 3), True)


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2 (Sandler et al. 2018)."""
    net = Network("mobilenet_v2")
    x, cin = net.conv(net.input("data", [1, 3, 224, 224]), 3, 32, 3, 2, act="relu6"), 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, cout, count, first in rows:
        for i in range(count):
            stride, wide = first if i == 0 else 1, cin * factor
            y = net.conv(x, cin, wide, 1, act="relu6") if factor > 1 else x
            y = net.conv(net.conv(y, wide, wide, 3, stride, wide, "relu6"), wide, cout, 1, gain=1.0)
            x, cin = (net("Add", x, y) if stride == 1 and cin == cout else y), cout
    return net.finish(net.classifier(net.conv(x, 320, 1280, 1, act="relu6"), 1280), [1, 1000])


def bert_base(layers: int = 12, width: int = 768, heads: int = 12, length: int = 128, words: int = 8192) -> onnx.ModelProto:
    """A BERT encoder with the attention that exporters write."""
    net = Network("bert_base")
    ids = net.input("input_ids", [1, length], TensorProto.INT64)
    x = net("Gather", net.normal((words, width), 0.05), ids)
    x = net.layer_norm(net("Add", x, net.normal((1, length, width), 0.05)), width)
    split = net.constant(np.array([1, -1, heads, width // heads], "int64"))
    merge = net.constant(np.array([1, -1, width], "int64"))
    for _ in range(layers):
        q, k, v = (net("Transpose", net("Reshape", net.dense(x, width, width), split), perm=p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = net("Div", net("MatMul", q, k), net.constant(np.float32(np.sqrt(width // heads))))
        mixed = net("Transpose", net("MatMul", net("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = net.layer_norm(net("Add", x, net.dense(net("Reshape", mixed, merge), width, width)), width)
        x = net.layer_norm(net("Add", x, net.dense(net.gelu(net.dense(x, width, 4 * width)), 4 * width, width)), width)
    return net.finish(x, [1, length, width])


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {f.__name__: f for f in (mlp, mobilenet_v2, resnet18, resnet50, bert_base)}
