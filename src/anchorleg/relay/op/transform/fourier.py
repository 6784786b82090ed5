"""Discrete Fourier transforms: dft of whole rows, stft of short overlapping frames."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INT, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper, const
from ..registry import declare
from .common import Dim, known, same_dim, show, tensors


class StftAttrs(Attrs, name="relay.attrs.StftAttrs"):
    """Attributes of stft."""

    n_fft = Field(INT, -1, "The size of a transform.")
    hop_length = Field(INT, -1, "The distance between frames.")
    win_length = Field(INT, -1, "The size of the window function, which lies in the middle of a frame.")
    normalized = Field(BOOL, False, "Whether results are divided by the root of n_fft.")
    onesided = Field(BOOL, True, "Whether only the first half of the spectrum is given.")


class DFTAttrs(Attrs, name="relay.attrs.DFTAttrs"):
    """Attributes of dft."""

    inverse = Field(BOOL, False, "Whether the transform is the inverse one.")


def _stft_rel(args: tuple[Type, ...], attrs: StftAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "window"))
    if types is None:
        return None
    data, window = types
    if len(data.dims) not in (1, 2):
        raise TypeMismatchError(f"data must be a vector or a batch of them, got shape {show(data.dims)}")
    if not 1 <= attrs.win_length <= attrs.n_fft or attrs.hop_length < 1:
        raise TypeMismatchError(f"needs 1 <= win_length <= n_fft and hop_length >= 1, got {attrs.win_length}, {attrs.n_fft} and {attrs.hop_length}")
    if len(window.dims) != 1 or known(window.dims[0]) and window.dims[0] < attrs.win_length:
        raise TypeMismatchError(f"the window must be a vector of {attrs.win_length} values, got shape {show(window.dims)}")
    rows = attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft
    return TensorType([*data.dims[:-1], rows, _frames(data.dims[-1], attrs), 2], data.dtype)


def _frames(size: Dim, attrs: StftAttrs) -> Dim:
    if not known(size):
        return AnyDim()
    if size < attrs.n_fft:
        raise TypeMismatchError(f"{size} samples are fewer than one frame of n_fft={attrs.n_fft}")
    return (size - attrs.n_fft) // attrs.hop_length + 1


def _stft_numpy(attrs: StftAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, window = args
    n, left = attrs.n_fft, (attrs.n_fft - attrs.win_length) // 2
    weights = np.zeros(n, np.float64)
    weights[left:left + attrs.win_length] = window[:attrs.win_length]
    frames = np.lib.stride_tricks.sliding_window_view(data.astype(np.float64), n, axis=-1)[..., ::attrs.hop_length, :]
    spectrum = np.fft.fft(frames * weights, axis=-1)
    if attrs.onesided:
        spectrum = spectrum[..., :n // 2 + 1]
    if attrs.normalized:
        spectrum = spectrum / np.sqrt(n)
    spectrum = np.swapaxes(spectrum, -1, -2)
    return np.stack([spectrum.real, spectrum.imag], axis=-1)


def _dft_rel(args: tuple[Type, ...], attrs: DFTAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("re_data", "im_data"))
    if types is None:
        return None
    re, im = types
    if re.dtype != im.dtype or len(re.dims) != len(im.dims) or not re.dims:
        raise TypeMismatchError(f"both parts must have one dtype and shape, of rank 1 or more, got {re.dtype} {show(re.dims)} and {im.dtype} {show(im.dims)}")
    dims = [same_dim(f"dimension {i} of im_data", a, b) for i, (a, b) in enumerate(zip(re.dims, im.dims))]
    return TupleType([TensorType(dims, re.dtype)] * 2)


def _dft_numpy(attrs: DFTAttrs, args: list[np.ndarray], out_type: Type) -> tuple[np.ndarray, np.ndarray]:
    values = args[0].astype(np.float64) + 1j * args[1].astype(np.float64)
    if not values.size:
        return args[0].copy(), args[1].copy()
    result = (np.fft.ifft if attrs.inverse else np.fft.fft)(values, axis=-1)
    return result.real, result.imag


declare("stft", inputs=("data", "window"), attrs=StftAttrs, relation=_stft_rel, pattern=OpPattern.OPAQUE, numpy=_stft_numpy, level=3,
        doc="The Fourier transforms of overlapping, windowed frames of a signal.")
declare("dft", inputs=("re_data", "im_data"), attrs=DFTAttrs, relation=_dft_rel, pattern=OpPattern.OPAQUE, numpy=_dft_numpy, level=3,
        doc="The discrete Fourier transform along the last axis.")


def stft(data: RelayExpr, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: RelayExpr | None = None,
         normalized: bool = False, onesided: bool = True) -> Call:
    """The transforms, of size ``n_fft``, of frames of ``data`` (time, or batch × time) at every ``hop_length`` (default n_fft // 4).

    The result is ([batch,] frequency, frame, 2), the last axis holding real and imaginary part.  ``window`` (default: all
    ones) has ``win_length`` (default n_fft) values.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    weights = const(np.ones(size, np.int32)) if window is None else window
    attrs = StftAttrs(n_fft=n_fft, hop_length=hop, win_length=size, normalized=normalized, onesided=onesided)
    return Call(Op.get("stft"), [data, weights], attrs)


def dft(re_data: RelayExpr, im_data: RelayExpr, inverse: bool | None = False) -> TupleWrapper:
    """(real, imaginary) part of the discrete Fourier transform along the last axis; the inverse one is divided by its size."""
    return TupleWrapper(Call(Op.get("dft"), [re_data, im_data], DFTAttrs(inverse=bool(inverse))), 2)


__all__ = ["StftAttrs", "DFTAttrs", "stft", "dft"]
