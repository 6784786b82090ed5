"""Whole networks that ONNX Runtime's tools quantised, in both forms, against ONNX Runtime itself."""
from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import anchorleg
from anchorleg import relay
from anchorleg.contrib import graph_executor

from .models import runtime

quantization = pytest.importorskip("onnxruntime.quantization")
INPUT = (1, 3, 12, 12)


class _Network:
    """A small network of what is quantised in practice: convolutions of three kinds, a residual, pools, a join, a classifier."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.rng = np.random.default_rng(3)

    def weight(self, name: str, *shape: int) -> str:
        values = self.rng.standard_normal(shape) * np.sqrt(2 / max(1, np.prod(shape[1:]))) * self.rng.uniform(0.3, 2, (shape[0], *[1] * (len(shape) - 1)))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, op: str, out: str, *ins: str, **attrs: Any) -> str:
        self.nodes.append(helper.make_node(op, list(ins), [out], **attrs))
        return out

    def conv(self, x: str, out: str, ins: int, outs: int, k: int, s: int = 1, groups: int = 1) -> str:
        names = x, self.weight(out + "_w", outs, ins // groups, k, k), self.weight(out + "_b", outs)
        return self.add("Relu", out + "_r", self.add("Conv", out, *names, kernel_shape=[k, k], strides=[s, s], pads=[k // 2] * 4, group=groups))

    def model(self) -> onnx.ModelProto:
        x = self.conv("x", "stem", 3, 16, 3)
        x = self.add("MaxPool", "pool", x, kernel_shape=[2, 2], strides=[2, 2])
        y = self.conv(self.conv(x, "deep", 16, 16, 3, 1, 16), "point", 16, 16, 1)
        x = self.add("Add", "sum", x, y)
        x = self.add("AveragePool", "mean", self.conv(x, "down", 16, 24, 3, 2), kernel_shape=[3, 3])
        x = self.add("Flatten", "flat", self.add("GlobalAveragePool", "all", self.add("Concat", "join", x, x, axis=1)))
        self.add("Gemm", "y", x, self.weight("fc_w", 10, 48), self.weight("fc_b", 10), transB=1)
        ins, outs = ([helper.make_tensor_value_info(n, 1, s)] for n, s in (("x", INPUT), ("y", (1, 10))))
        graph = helper.make_graph(self.nodes, "network", ins, outs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Samples(quantization.CalibrationDataReader):
    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.left = [{"x": rng.standard_normal(INPUT).astype(np.float32)} for _ in range(3)]

    def get_next(self) -> Any:
        return self.left.pop() if self.left else None


def quantised(folder: Path, form: str, data: str, weight: str, per_channel: bool) -> onnx.ModelProto:
    """The network, quantised statically."""
    plain, made = folder / "plain.onnx", folder / "made.onnx"
    onnx.save(_Network().model(), plain)
    logging.getLogger().setLevel(logging.ERROR)
    kinds = {"u8": quantization.QuantType.QUInt8, "s8": quantization.QuantType.QInt8}
    quantization.quantize_static(str(plain), str(made), _Samples(), quant_format=getattr(quantization.QuantFormat, form), per_channel=per_channel,
                                 activation_type=kinds[data], weight_type=kinds[weight])
    return onnx.load(made)


def compiled(proto: onnx.ModelProto, x: np.ndarray, target: str) -> tuple[np.ndarray, str]:
    """(the result, the graph of kernels)"""
    mod, params = relay.frontend.from_onnx(proto, {"x": INPUT}, freeze_params=True)
    with anchorleg.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)
    module = graph_executor.GraphModule(lib["default"](anchorleg.cpu(0)))
    module.set_input("x", x)
    module.run()
    return module.get_output(0).numpy(), lib.get_graph_json()


HOST, V3 = "llvm", "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3"


@pytest.mark.parametrize("data, weight, per_channel, form, target", [
    ("u8", "s8", False, "QDQ", HOST), ("u8", "s8", True, "QDQ", HOST), ("s8", "s8", False, "QDQ", HOST), ("u8", "u8", False, "QDQ", HOST),
    ("u8", "s8", False, "QOperator", HOST), ("s8", "s8", True, "QOperator", HOST), ("u8", "u8", False, "QOperator", HOST),
    ("u8", "s8", True, "QDQ", V3), ("s8", "s8", False, "QOperator", V3)])
def test_networks_differ_by_one_step_at_most(data: str, weight: str, per_channel: bool, form: str, target: str, tmp_path: Path) -> None:
    proto = quantised(tmp_path, form, data, weight, per_channel)
    scales = [numpy_helper.to_array(t) for t in proto.graph.initializer if t.name.startswith("y_") and t.name.endswith("scale")]
    (scale,) = scales
    x = np.random.default_rng(9).standard_normal(INPUT).astype(np.float32)
    (got, graph), (want,) = compiled(proto, x, target), runtime(proto, {"x": x})
    off = np.abs(got - want) / scale
    assert "winograd" not in graph and "dense_pack" in graph  # nothing is computed in floats that need not be
    assert off.max() < 1.001 and (off > 0.001).mean() <= 0.2
