"""What the compiler ``dnnl`` is said to take."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.op.contrib import get_pattern_table
from anchorleg.relay.transform import AnnotateTarget, InferType, MergeComposite, PartitionGraph

TABLE = get_pattern_table("dnnl")
X = relay.var("x", shape=(1, 3, 8, 8))


def conv(data: Any = X, channels: int = 4) -> Any:
    return relay.nn.conv2d(data, relay.const(np.ones((channels, 3, 3, 3), "float32")), padding=(1, 1), channels=channels, kernel_size=(3, 3))


def bias(n: int = 4) -> Any:
    return relay.const(np.ones((1, n, 1, 1), "float32"))


def composites(expr: Any) -> list[str]:
    mod = MergeComposite(TABLE)(InferType()(IRModule.from_expr(expr)))
    return [str(n.get_attr("Composite")) for n in exprs(mod["main"].body) if isinstance(n, relay.Function) and n.get_attr("Composite")]


def gelu(x: Any) -> Any:
    half, one, root = (relay.const(np.float32(v)) for v in (0.5, 1, 1.4142135))
    return relay.multiply(relay.multiply(x, relay.add(relay.erf(relay.divide(x, root)), one)), half)


@pytest.mark.parametrize("expr, want", [
    (relay.nn.relu(conv()), ["dnnl.conv2d_relu"]), (relay.add(conv(), bias()), ["dnnl.conv2d_bias"]), (relay.add(bias(), conv()), ["dnnl.conv2d_bias"]),
    (relay.nn.relu(relay.add(conv(), bias())), ["dnnl.conv2d_bias_relu"]), (relay.sigmoid(relay.add(conv(), bias())), ["dnnl.conv2d_bias_sigmoid"]),
    (gelu(relay.add(conv(), bias())), ["dnnl.conv2d_bias_gelu"]), (relay.clip(conv(), 0, 6), ["dnnl.conv2d_clip"]), (conv(), []),
    (relay.add(conv(), relay.var("y", shape=(1, 4, 8, 8))), []),  # no bias: one number for each element
    (relay.nn.relu(relay.add(relay.add(conv(), bias()), relay.var("y", shape=(1, 4, 8, 8)))), ["dnnl.conv2d_bias_sum_relu"]),
    (relay.add(relay.add(conv(), bias()), relay.var("y", shape=(1, 4, 8, 8))), ["dnnl.conv2d_bias_sum"]),
    (relay.tanh(relay.add(relay.nn.dense(relay.var("m", shape=(2, 3)), relay.var("w", shape=(4, 3))), relay.var("b", shape=(4,)))), ["dnnl.dense_bias_tanh"]),
])
def test_patterns(expr: Any, want: list[str]) -> None:
    assert composites(expr) == want


def parts(expr: Any) -> int:
    mod = PartitionGraph()(AnnotateTarget("dnnl")(InferType()(IRModule.from_expr(expr))))
    return len(mod.functions) - 1


@pytest.mark.parametrize("expr, count", [
    (relay.nn.max_pool2d(X, (2, 2)), 1), (relay.nn.max_pool2d(X, (3, 3), strides=(2, 2), ceil_mode=True), 0), (relay.exp(X), 1), (relay.erf(X), 0),
    (relay.add(relay.var("i", shape=(2,), dtype="int64"), relay.var("j", shape=(2,), dtype="int64")), 0)])
def test_operators(expr: Any, count: int) -> None:
    assert parts(expr) == count
