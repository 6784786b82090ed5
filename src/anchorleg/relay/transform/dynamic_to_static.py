"""DynamicToStatic: operators that take a shape (or count) as a tensor become their static forms where it is constant.

before::

    dyn.reshape(%x, meta[relay.Constant][0])      # the constant [2, 3]

after::

    reshape(%x, newshape=[2, 3])
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, get_pass, register_pass
from ...ir.type import TensorType
from ..expr import Call, Constant
from ..function import Function
from ..op.registry import make_attrs
from .common import call, map_functions, rewrite_exprs
from .fuse_ops import is_static

Convert = Callable[[Call, list["np.ndarray | None"]], "RelayExpr | None"]


def _ints(array: np.ndarray) -> list[int]:
    return [int(v) for v in np.asarray(array).reshape(-1)]


def _kept(node: Call, *names: str) -> dict[str, Any]:
    return {n: node.attrs[n] for n in names if node.attrs is not None and n in node.attrs}


def _static(name: str, attr: str, *kept: str) -> Convert:
    """The tensor in argument 1 becomes the attribute ``attr`` of operator ``name``."""
    def convert(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
        if values[1] is None:
            return None
        return call(name, node.args[0], attrs=make_attrs(name, **{attr: _ints(values[1])}, **_kept(node, *kept)), span=node.span)

    return convert


def _expand_dims(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None:
        return None
    attrs = make_attrs("expand_dims", axis=_ints(values[1])[0], num_newaxis=node.attrs.num_newaxis)
    return call("expand_dims", node.args[0], attrs=attrs, span=node.span)


def _topk(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None:
        return None
    attrs = make_attrs("topk", k=_ints(values[1])[0], **_kept(node, "axis", "ret_type", "is_ascend", "dtype"))
    return call("topk", node.args[0], attrs=attrs, span=node.span)


def _filled(name: str) -> Convert:
    def convert(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
        if values[0] is None:
            return None
        return call(name, attrs=make_attrs(name, shape=_ints(values[0]), **_kept(node, "dtype")), span=node.span)

    return convert


def _full(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None:
        return None
    return call("full", node.args[0], attrs=make_attrs("full", shape=_ints(values[1]), **_kept(node, "dtype")), span=node.span)


def _one_hot(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[3] is None:
        return None
    attrs = make_attrs("one_hot", depth=_ints(values[3])[0], **_kept(node, "axis", "dtype"))
    return call("one_hot", *node.args[:3], attrs=attrs, span=node.span)


def _strided_slice(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if any(v is None for v in values[1:4]):
        return None
    begin, end, strides = (_ints(v) for v in values[1:4])  # type: ignore[arg-type]
    attrs = make_attrs("strided_slice", begin=begin, end=end, strides=strides, **_kept(node, "slice_mode", "axes"))
    return call("strided_slice", node.args[0], attrs=attrs, span=node.span)


def _resize(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None or len(values) > 2 and values[2] is None:
        return None
    roi = [float(v) for v in values[2].reshape(-1)] if len(values) > 2 and values[2] is not None else [0.0] * 4
    kept = _kept(node, "layout", "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude",
                 "extrapolation_value", "out_dtype")
    attrs = make_attrs("image.resize2d", size=_ints(values[1]), roi=roi, **kept)
    return call("image.resize2d", node.args[0], attrs=attrs, span=node.span)


def _pad(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None:
        return None
    widths = [tuple(int(v) for v in row) for row in values[1].reshape(-1, 2)]
    attrs = make_attrs("nn.pad", pad_width=widths, **_kept(node, "pad_mode"))
    return call("nn.pad", node.args[0], node.args[2], attrs=attrs, span=node.span)


def _upsampling(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if values[1] is None or values[2] is None:
        return None
    attrs = make_attrs("nn.upsampling", scale_h=float(values[1]), scale_w=float(values[2]), **_kept(node, "layout", "method", "align_corners"))
    return call("nn.upsampling", node.args[0], attrs=attrs, span=node.span)


def _upsampling3d(node: Call, values: list[np.ndarray | None]) -> RelayExpr | None:
    if any(v is None for v in values[1:4]):
        return None
    scales = {n: float(v) for n, v in zip(("scale_d", "scale_h", "scale_w"), values[1:4])}  # type: ignore[arg-type]
    attrs = make_attrs("nn.upsampling3d", **scales, **_kept(node, "layout", "method", "coordinate_transformation_mode"))
    return call("nn.upsampling3d", node.args[0], attrs=attrs, span=node.span)


CONVERSIONS: dict[str, Convert] = {
    "dyn.reshape": _static("reshape", "newshape", "allowzero"),
    "dyn.squeeze": _static("squeeze", "axis"),
    "dyn.tile": _static("tile", "reps"),
    "dyn.broadcast_to": _static("broadcast_to", "shape", "dtype"),
    "dyn.expand_dims": _expand_dims,
    "dyn.topk": _topk,
    "dyn.zeros": _filled("zeros"),
    "dyn.ones": _filled("ones"),
    "dyn.full": _full,
    "dyn.one_hot": _one_hot,
    "dyn.strided_slice": _strided_slice,
    "dyn.image.resize2d": _resize,
    "dyn.nn.pad": _pad,
    "dyn.nn.upsampling": _upsampling,
    "dyn.nn.upsampling3d": _upsampling3d,
}


def _reshape_by_shape_of(node: Call) -> RelayExpr | None:
    """``dyn.reshape(x, shape_of(y))`` with y of known shape."""
    shape = node.args[1]
    if not (isinstance(shape, Call) and isinstance(shape.op, Op) and shape.op.name == "shape_of"):
        return None
    ty = shape.args[0]._checked_type
    if not isinstance(ty, TensorType) or not ty.is_static:
        return None
    return call("reshape", node.args[0], attrs=make_attrs("reshape", newshape=ty.dims), span=node.span)


def _rule(old: Any, new: Any) -> RelayExpr:
    if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name not in CONVERSIONS:
        return new
    values = [a.data.as_numpy_view() if isinstance(a, Constant) else None for a in new.args]
    result = CONVERSIONS[new.op.name](new, values)
    if result is None and new.op.name == "dyn.reshape":
        result = _reshape_by_shape_of(new)
    return new if result is None else result


def _made_static(func: Function) -> Function:
    """One function with its operators made static; its result type is to be inferred anew."""
    new = rewrite_exprs(func, _rule, keep_types=False)
    return new if new is func else new.replace(ret_type=None)  # type: ignore[return-value]


def _with_known_result(func: Function) -> Function:
    """A function whose body has turned out to be better known than its result type, with that to be inferred anew."""
    known = func.ret_type is not None and not is_static(func.ret_type) and func.body._checked_type is not None and is_static(func.body.checked_type)
    return func.replace(ret_type=None) if known else func  # type: ignore[return-value]


def DynamicToStatic() -> Pass:
    """Makes operators static as long as folding constants finds more shapes that are known."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if not _has_dynamic_operators(mod):
            return mod
        while True:
            folded = get_pass("FoldConstant")(mod)
            new = map_functions(folded, _made_static)
            if new is folded:
                return get_pass("InferType")(map_functions(folded, _with_known_result))
            mod = get_pass("InferType")(new)

    return ModulePass(run, PassInfo(2, "DynamicToStatic", ["InferType"]))


def _has_dynamic_operators(mod: IRModule) -> bool:
    from ..analysis.variables import exprs

    return any(isinstance(n, Op) and n.name in CONVERSIONS for f in mod.functions.values() for n in exprs(f))


register_pass("DynamicToStatic", DynamicToStatic)
