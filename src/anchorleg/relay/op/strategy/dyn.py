"""Strategies of the ``dyn`` dialect: kernels are given the sizes of their results, so they need not read them from inputs."""
from __future__ import annotations

from typing import Any, Callable

from .... import te, tir
from ....support.errors import UnsupportedOpError
from ....tir.data_layout import Layout
from ....topi import transform
from ....topi.broadcast import broadcast_to
from ....topi.image import resize
from ....topi.tag import BROADCAST, ELEMWISE, INJECTIVE
from .generic import register_injective


def _reshaped(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return [transform.reshape(inputs[0], out_type.dims)]


def _filled(value: int) -> Callable[..., Any]:
    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        return [te.compute(tuple(out_type.dims), lambda *i: tir.op.const(value, out_type.dtype), name="T_full", tag=ELEMWISE)]

    return compute


def _full(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    return [te.compute(tuple(out_type.dims), lambda *i: tir.op.cast(inputs[0](), out_type.dtype), name="T_full", tag=BROADCAST)]


def _tile(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    data, rank = inputs[0], len(out_type.dims)
    sizes = [1] * (rank - data.ndim) + list(data.shape)

    def element(*i: Any) -> Any:
        where = [tir.floormod(v, d) for v, d in zip(i, sizes)]
        return data(*where[rank - data.ndim:])

    return [te.compute(tuple(out_type.dims), element, name="T_tile", tag=INJECTIVE)]


def _one_hot(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    indices, on, off = inputs[:3]
    at = int(attrs.axis) % len(out_type.dims)

    def element(*i: Any) -> Any:
        is_it = tir.op.equal(tir.op.cast(indices(*i[:at], *i[at + 1:]), "int64"), i[at])
        return tir.Select(is_it, tir.op.cast(on(), out_type.dtype), tir.op.cast(off(), out_type.dtype))

    return [te.compute(tuple(out_type.dims), element, name="T_one_hot", tag=INJECTIVE)]


def _strided_slice(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    data, begin, _, strides = inputs
    sliced = begin.shape[0].value if hasattr(begin.shape[0], "value") else None
    if sliced is None:
        raise UnsupportedOpError("dyn.strided_slice: the number of sliced axes must be known")

    def first(axis: int) -> Any:
        size, at = data.shape[axis], tir.op.cast(begin(axis), "int64")
        step = _step(axis)
        at = tir.Select(at < 0, at + size, at)
        high = size if attrs.slice_mode == "size" else tir.Select(step < 0, size - 1, size)
        low = 0 if attrs.slice_mode == "size" else tir.Select(step < 0, tir.const(-1, "int64"), tir.const(0, "int64"))
        return tir.max(low, tir.min(at, high))

    def _step(axis: int) -> Any:
        if attrs.slice_mode == "size" or axis >= _length(strides):
            return tir.const(1, "int64")
        return tir.op.cast(strides(axis), "int64")

    def element(*i: Any) -> Any:
        where = [first(k) + v * _step(k) if k < sliced else v for k, v in enumerate(i)]
        return data(*where)

    return [te.compute(tuple(out_type.dims), element, name="T_strided_slice", tag=INJECTIVE)]


def _resize2d(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
    size = [out_type.dims[Layout(attrs.layout).index_of(a)] for a in "HW"]
    if attrs.coordinate_transformation_mode == "tf_crop_and_resize":
        raise UnsupportedOpError("dyn.image.resize2d: no kernel for a region of interest that is an input")
    return [resize(2, inputs[0], size, (), attrs.layout, attrs.method, attrs.coordinate_transformation_mode, attrs.rounding_method,
                   attrs.cubic_alpha, attrs.cubic_exclude, attrs.extrapolation_value, out_type.dtype)]


def _length(vector: Any) -> int:
    return getattr(vector.shape[0], "value", 0)


DYNAMIC: dict[str, Callable[..., Any]] = {
    "dyn.reshape": _reshaped, "dyn.squeeze": _reshaped, "dyn.expand_dims": _reshaped,
    "dyn.broadcast_to": lambda attrs, inputs, out_type: [broadcast_to(inputs[0], out_type.dims)],
    "dyn.zeros": _filled(0), "dyn.ones": _filled(1), "dyn.full": _full, "dyn.tile": _tile, "dyn.one_hot": _one_hot,
    "dyn.strided_slice": _strided_slice, "dyn.image.resize2d": _resize2d,
}

for _name, _compute in DYNAMIC.items():
    register_injective(_name, _compute)
