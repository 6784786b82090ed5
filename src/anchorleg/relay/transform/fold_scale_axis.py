"""FoldScaleAxis: multiplications by a constant per channel move into the constant weights of convolutions and dense layers.

before::

    multiply(add(nn.conv2d(%x, W), B), S)          # S: (64, 1, 1)

after::

    add(nn.conv2d(%x, W * S), B * S)
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType
from ..analysis.variables import exprs
from ..expr import Call, Constant
from ..function import Function
from .common import constant, is_op, map_functions, rewrite_exprs, typed_replace

_CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


class Scale(NamedTuple):
    """A factor per entry of one axis."""

    values: np.ndarray  # one dimension, or none for a single factor
    axis: int


def use_counts(func: RelayExpr) -> dict[int, int]:
    """How many expressions read each expression."""
    count: dict[int, int] = {}
    for node in exprs(func):
        for child in node.children():
            count[id(child)] = count.get(id(child), 0) + 1
    return count


def _scale_of(node: Any) -> tuple[RelayExpr, Scale] | None:
    """For ``multiply(x, constant)`` with the constant along one axis of x: x and the scale."""
    if not is_op(node, "multiply"):
        return None
    for data, factor in (node.args, node.args[::-1]):
        if isinstance(factor, Constant) and not isinstance(data, Constant):
            scale = _along_one_axis(factor, data.checked_type)
            if scale is not None:
                return data, scale
    return None


def _keeps_shape(data: Any, operand: Constant) -> bool:
    """Whether ``data`` combined with a constant has the shape of ``data``, whatever its sizes that are not known turn out to be."""
    if not isinstance(data, TensorType) or len(operand.data.shape) > len(data.dims):
        return False
    first = len(data.dims) - len(operand.data.shape)
    return all(d == 1 or isinstance(known, int) and d == known for d, known in zip(operand.data.shape, data.dims[first:]))


def _along_one_axis(factor: Constant, data: Any) -> Scale | None:
    if not _keeps_shape(data, factor):
        return None
    array = factor.data.as_numpy_view()
    if array.dtype.kind != "f":
        return None
    wide = [i for i, d in enumerate(array.shape) if d != 1]
    if len(wide) > 1:
        return None
    if not wide:
        return Scale(array.reshape(()), -1)
    return Scale(array.reshape(-1), wide[0] + len(data.dims) - array.ndim)


def _weight_axis(node: Call, letter: str) -> int | None:
    """Where the weight's output ("O") or input ("I") channels lie."""
    if is_op(node, *_CONVS):
        layout = node.attrs.kernel_layout
        return layout.index(letter) if layout.isalpha() and layout.isupper() else None
    if is_op(node, "nn.dense"):
        return 0 if letter == "O" else 1
    return None


def _channel_axis(node: Call, layout: str) -> int | None:
    if is_op(node, "nn.dense"):
        return len(node.checked_type.dims) - 1
    return layout.index("C") if layout.isalpha() and layout.isupper() else None


def _scaled_constant(value: Constant, factor: np.ndarray) -> Constant:
    array = value.data.as_numpy_view()
    return constant(array * factor.astype(array.dtype), str(value.data.dtype))


def _shaped(scale: Scale, rank: int, axis: int) -> np.ndarray:
    if scale.axis < 0:
        return scale.values
    shape = [1] * rank
    shape[axis] = len(scale.values)
    return scale.values.reshape(shape)


def _into_weight(node: Call, scale: Scale) -> Call | None:
    """A convolution or dense call with its outputs scaled, by its weight."""
    axis = _weight_axis(node, "O")
    weight = node.args[1] if len(node.args) > 1 else None
    if axis is None or not isinstance(weight, Constant) or weight.data.as_numpy_view().dtype != scale.values.dtype:
        return None
    out_layout = "" if is_op(node, "nn.dense") else node.attrs.out_layout or node.attrs.data_layout
    if scale.axis >= 0 and scale.axis != _channel_axis(node, out_layout):
        return None
    rank = len(weight.data.shape)
    return typed_replace(node, args=(node.args[0], _scaled_constant(weight, _shaped(scale, rank, axis))))


class _Backward:
    """Pushes a scale down a chain of operators that are read by nobody else, into the weight at its end."""

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts = counts

    def push(self, data: RelayExpr, scale: Scale) -> RelayExpr | None:
        """``data * scale`` with the scale absorbed, or None."""
        chain: list[tuple[Call, int]] = []
        node = data
        while True:
            if self.counts.get(id(node), 0) > 1 or not isinstance(node, Call):
                return None
            ending = _into_weight(node, scale)
            if ending is not None:
                return self._rebuild(chain, ending, scale)
            at = self._through(node, scale)
            if at is None:
                return None
            chain.append((node, at))
            node = node.args[at]

    def _through(self, node: Call, scale: Scale) -> int | None:
        """Which argument of ``node`` the scale may pass on to."""
        if is_op(node, "nn.relu", "nn.leaky_relu") and bool(np.all(scale.values > 0)):
            return 0
        if is_op(node, "add", "subtract"):
            for i in (0, 1):
                other = node.args[1 - i]
                if isinstance(other, Constant) and _keeps_shape(node.args[i].checked_type, other):
                    return i
        if is_op(node, "nn.bias_add") and isinstance(node.args[1], Constant):
            axis = node.attrs.axis % len(node.checked_type.dims)
            return 0 if scale.axis in (-1, axis) else None
        return None

    @staticmethod
    def _rebuild(chain: list[tuple[Call, int]], ending: Call, scale: Scale) -> RelayExpr:
        new: RelayExpr = ending
        for node, at in reversed(chain):
            args = list(node.args)
            args[at] = new
            if len(args) == 2:
                args[1 - at] = _scaled_operand(node, args[1 - at], scale)  # type: ignore[arg-type]
            new = typed_replace(node, args=tuple(args))
        return new


def _scaled_operand(node: Call, operand: Constant, scale: Scale) -> Constant:
    if is_op(node, "nn.bias_add"):
        return _scaled_constant(operand, scale.values)
    rank = len(node.checked_type.dims)
    factor = _shaped(scale, rank, scale.axis)
    if factor.ndim > operand.data.as_numpy_view().ndim and scale.axis >= 0:
        missing = rank - operand.data.as_numpy_view().ndim
        if scale.axis >= missing:
            factor = factor.reshape(factor.shape[missing:])
    return _scaled_constant(operand, factor)


def fold_backward(func: Function) -> Function:
    """Moves scales that follow a convolution or dense layer into its weight."""
    counts = use_counts(func)
    pusher = _Backward(counts)

    def rule(old: Any, new: Any) -> RelayExpr:
        result = new
        found = _scale_of(old)
        if found is not None:
            data = new.args[0] if old.args[0] is found[0] else new.args[1]
            pushed = pusher.push(data, found[1])
            result = new if pushed is None else pushed
        counts[id(result)] = counts.get(id(old), 0)  # a rebuilt node is read as often as the one it stands for
        return result

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def fold_forward(func: Function) -> Function:
    """Moves scales that precede a convolution or dense layer, and are read by it alone, into its weight."""
    counts = use_counts(func)

    def rule(old: Any, new: Any) -> RelayExpr:
        axis = _weight_axis(new, "I") if isinstance(new, Call) and len(new.args) == 2 else None
        if axis is None or not isinstance(new.args[1], Constant) or getattr(new.attrs, "groups", 1) != 1:
            return new
        found = _scale_of(new.args[0]) if counts.get(id(old.args[0]), 0) == 1 and new.args[0]._checked_type is not None else None
        if found is None:
            return new
        data, scale = found
        if new.args[1].data.as_numpy_view().dtype != scale.values.dtype:  # a scale would be lost in an integer weight
            return new
        channel = len(data.checked_type.dims) - 1 if is_op(new, "nn.dense") else _channel_axis(new, new.attrs.data_layout)
        if scale.axis >= 0 and scale.axis != channel:
            return new
        rank = len(new.args[1].data.shape)
        return typed_replace(new, args=(data, _scaled_constant(new.args[1], _shaped(scale, rank, axis))))

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


def _make(name: str, level: int, *steps: Any) -> Pass:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        for step in steps:
            mod = map_functions(mod, step)
        return mod

    return ModulePass(run, PassInfo(level, name, ["InferType"]))


def ForwardFoldScaleAxis() -> Pass:
    """Scales before convolutions go into their weights."""
    return _make("ForwardFoldScaleAxis", 3, fold_forward)


def BackwardFoldScaleAxis() -> Pass:
    """Scales behind convolutions go into their weights."""
    return _make("BackwardFoldScaleAxis", 3, fold_backward)


def FoldScaleAxis() -> Pass:
    """Both directions: backward, then forward."""
    return _make("FoldScaleAxis", 3, fold_backward, fold_forward)


register_pass("FoldScaleAxis", FoldScaleAxis)
register_pass("ForwardFoldScaleAxis", ForwardFoldScaleAxis)
register_pass("BackwardFoldScaleAxis", BackwardFoldScaleAxis)
