"""Operators that reverse or mask along an axis: reverse, reverse_sequence, sequence_mask."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import FLOAT, INT, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import normalize_axis, require_integer, same_dim, show, tensor, tensors


class ReverseAttrs(Attrs, name="relay.attrs.ReverseAttrs"):
    """Attributes of reverse."""

    axis = Field(INT, doc="The axis that is reversed.")


class ReverseSequenceAttrs(Attrs, name="relay.attrs.ReverseSequenceAttrs"):
    """Attributes of reverse_sequence."""

    seq_axis = Field(INT, 1, "The axis that is reversed.")
    batch_axis = Field(INT, 0, "The axis along which the lengths vary.")


class SequenceMaskAttrs(Attrs, name="relay.attrs.SequenceMaskAttrs"):
    """Attributes of sequence_mask."""

    mask_value = Field(FLOAT, 0.0, "What elements past the end become.")
    axis = Field(INT, 0, "The axis of time: 0 or 1; the other one is the batch.")


def _reverse_rel(args: tuple[Type, ...], attrs: ReverseAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    if data is not None:
        normalize_axis(attrs.axis, len(data.dims))
    return data


def _reverse_numpy(attrs: ReverseAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.flip(args[0], attrs.axis).copy()


def _lengths_type(data: TensorType, lengths: TensorType, axis: int, what: str) -> None:
    if len(lengths.dims) != 1:
        raise TypeMismatchError(f"{what} must be a vector, got shape {show(lengths.dims)}")
    same_dim(f"the size of {what} against the batch axis", data.dims[axis], lengths.dims[0])


def _reverse_sequence_rel(args: tuple[Type, ...], attrs: ReverseSequenceAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "seq_lengths"))
    if types is None:
        return None
    data, lengths = types
    normalize_axis(attrs.seq_axis, len(data.dims), "seq_axis")
    batch = normalize_axis(attrs.batch_axis, len(data.dims), "batch_axis")
    require_integer("seq_lengths", lengths)
    _lengths_type(data, lengths, batch, "seq_lengths")
    return data


def _reverse_sequence_numpy(attrs: ReverseSequenceAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, lengths = args
    seq, batch = attrs.seq_axis % data.ndim, attrs.batch_axis % data.ndim
    step = np.arange(data.shape[seq]).reshape([-1 if i == seq else 1 for i in range(data.ndim)])
    length = lengths.astype(np.int64).reshape([-1 if i == batch else 1 for i in range(data.ndim)])
    length = np.clip(length, 0, data.shape[seq])
    where = list(np.ogrid[tuple(slice(0, n) for n in data.shape)])
    where[seq] = np.where(step < length, np.maximum(length - 1 - step, 0), step)
    return data[tuple(where)]


def _sequence_mask_rel(args: tuple[Type, ...], attrs: SequenceMaskAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "valid_length"))
    if types is None:
        return None
    data, lengths = types
    if attrs.axis not in (0, 1):
        raise TypeMismatchError(f"axis must be 0 or 1, got {attrs.axis}")
    if len(data.dims) < 2:
        raise TypeMismatchError(f"data must have at least rank 2, got shape {show(data.dims)}")
    _lengths_type(data, lengths, 1 - attrs.axis, "valid_length")
    return data


def _sequence_mask_numpy(attrs: SequenceMaskAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, lengths = args
    step = np.arange(data.shape[attrs.axis])
    past = step[:, None] >= lengths[None, :] if attrs.axis == 0 else step[None, :] >= lengths[:, None]
    return np.where(past.reshape(past.shape + (1,) * (data.ndim - 2)), data.dtype.type(attrs.mask_value), data)


declare("reverse", attrs=ReverseAttrs, relation=_reverse_rel, pattern=OpPattern.INJECTIVE, numpy=_reverse_numpy, level=3,
        doc="The elements along an axis in reverse order.")
declare("reverse_sequence", inputs=("data", "seq_lengths"), attrs=ReverseSequenceAttrs, relation=_reverse_sequence_rel,
        pattern=OpPattern.INJECTIVE, numpy=_reverse_sequence_numpy, level=3, doc="Reverses the first seq_lengths[i] elements of each batch entry.")
declare("sequence_mask", inputs=("data", "valid_length"), attrs=SequenceMaskAttrs, relation=_sequence_mask_rel,
        pattern=OpPattern.INJECTIVE, numpy=_sequence_mask_numpy, level=10, doc="Replaces the elements past valid_length[i] of each batch entry.")


def reverse(data: RelayExpr, axis: int) -> Call:
    """``data`` with the order of its elements along ``axis`` reversed."""
    return Call(Op.get("reverse"), [data], ReverseAttrs(axis=int(axis)))


def reverse_sequence(data: RelayExpr, seq_lengths: RelayExpr, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """``data`` with the first ``seq_lengths[i]`` elements along ``seq_axis`` reversed, for each ``i`` along ``batch_axis``."""
    return Call(Op.get("reverse_sequence"), [data, seq_lengths], ReverseSequenceAttrs(seq_axis=int(seq_axis), batch_axis=int(batch_axis)))


def sequence_mask(data: RelayExpr, valid_length: RelayExpr, mask_value: float = 0, axis: int = 0) -> Call:
    """``data`` with ``mask_value`` where the step along ``axis`` (0 or 1) is not below ``valid_length`` of the batch entry."""
    return Call(Op.get("sequence_mask"), [data, valid_length], SequenceMaskAttrs(mask_value=mask_value, axis=int(axis)))


__all__ = ["ReverseAttrs", "ReverseSequenceAttrs", "SequenceMaskAttrs", "reverse", "reverse_sequence", "sequence_mask"]
