"""Numbers about a program: operators by name, layers in a row, multiply-accumulates."""
from __future__ import annotations

from math import prod
from typing import Any, Callable, Iterable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import TensorType
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function
from .variables import expr_children, exprs


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """How often each operator is called in ``main``, inside fused functions too."""
    found: dict[str, int] = {}
    for node in exprs(mod["main"]):
        if isinstance(node, Call) and isinstance(node.op, Op):
            found[node.op.name] = found.get(node.op.name, 0) + 1
    return found


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How often each operator stands between a dequantisation and a quantisation, that is, in a fake-quantised region of ``main``."""
    found: dict[str, int] = {}
    for node in exprs(mod["main"]):
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "qnn.quantize":
            for name in _region(node):
                found[name] = found.get(name, 0) + 1
    return found


def _region(quantize: Call) -> list[str]:
    """The operators between a quantisation and the dequantisations above it; none when the region reaches other inputs."""
    names: list[str] = []
    seen: set[int] = set()
    stack: list[Any] = [quantize.args[0]]
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, Constant):
            continue
        seen.add(id(node))
        if isinstance(node, (Tuple, TupleGetItem)):
            stack.extend(expr_children(node))
        elif isinstance(node, Call) and isinstance(node.op, Op):
            if node.op.name != "qnn.dequantize":
                names.append(node.op.name)
                stack.extend(node.args)
        else:
            return []
    return names


def count_layers(expr: RelayExpr | IRModule, valid_ops: Iterable[str]) -> int:
    """The most calls of the given operators on any way from inputs to output: parallel ones count once."""
    if isinstance(expr, IRModule):
        expr = expr["main"]
    counted = set(valid_ops)
    depth: dict[int, int] = {}
    for node in post_order(expr, expr_children):
        deepest = max((depth[id(c)] for c in _inputs(node)), default=0)
        if isinstance(node, Call):
            if isinstance(node.op, Function):
                deepest += depth[id(node.op)]
            elif isinstance(node.op, Op) and node.op.name in counted:
                deepest += 1
        depth[id(node)] = deepest
    return depth[id(expr)]


def _inputs(node: Any) -> Iterable[Any]:
    return node.args if isinstance(node, Call) else expr_children(node)


# -------------------------------------------------------------------------------------------------- multiply-accumulates


def get_total_mac_number(expr: RelayExpr) -> int:
    """The multiply-accumulates of the convolutions, dense and matrix products in an expression.

    Types are inferred where they are not known.  An operator counts too if it has the attribute ``FMacCount``: a function
    from the call to a number.
    """
    total = 0
    for node in exprs(_typed(expr)):
        if isinstance(node, Call) and isinstance(node.op, Op):
            count = node.op.get_attr("FMacCount") or _MACS.get(node.op.name)
            total += count(node) if count else 0
    return total


def _typed(expr: RelayExpr) -> RelayExpr:
    if all(n._checked_type is not None for n in exprs(expr) if isinstance(n, (Call, Var))):
        return expr
    from ..transform.infer_type import InferType

    return InferType()(IRModule.from_expr(expr))["main"]


def _dims(expr: Any) -> tuple[int, ...]:
    kind = expr._checked_type
    if not isinstance(kind, TensorType) or not kind.is_static:
        raise ArgumentError(f"counting needs the shape of every tensor, got {kind or 'no type'}: shapes must be fixed")
    return kind.concrete_shape


def _channels(dims: tuple[int, ...], layout: str) -> int:
    """The number of channels of a tensor in a layout such as ``NCHW`` or ``NCHW4c``."""
    axes = [a for a in layout if a.isalpha()]
    return prod(d for a, d in zip(axes, dims) if a in "Cc")


def _conv_macs(call: Call) -> int:
    attrs: Any = call.attrs
    channels = _channels(_dims(call.args[0]), attrs.data_layout)
    return prod(_dims(call)) * prod(attrs.kernel_size) * channels // attrs.groups


def _dense_macs(call: Call) -> int:
    return prod(_dims(call)) * _dims(call.args[0])[-1]


def _batch_matmul_macs(call: Call) -> int:
    turned = getattr(call.attrs, "transpose_a", False)
    return prod(_dims(call)) * _dims(call.args[0])[1 if turned else 2]


_MACS: dict[str, Callable[[Call], int]] = {
    "nn.conv2d": _conv_macs, "nn.conv2d_transpose": _conv_macs, "nn.dense": _dense_macs, "nn.batch_matmul": _batch_matmul_macs,
}


def search_fc_transpose(expr: RelayExpr) -> list[str]:
    """The names of the variables ``w`` in every ``nn.dense(x, transpose(w, axes=[1, 0]))``."""
    found: list[str] = []
    for node in exprs(expr):
        weight = node.args[1] if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "nn.dense" else None
        if (isinstance(weight, Call) and isinstance(weight.op, Op) and weight.op.name == "transpose" and isinstance(weight.args[0], Var)
                and tuple(weight.attrs.axes or (1, 0)) == (1, 0)):  # type: ignore[union-attr]
            found.append(weight.args[0].name_hint)
    return found


__all__ = ["list_op_freqs", "list_fake_quantized_op_freqs", "count_layers", "get_total_mac_number", "search_fc_transpose"]
