"""stft and dft, by their defining sums."""
from __future__ import annotations

import math
from typing import Any

from .. import tir
from ..te.tensor import Tensor
from .kernel import View, cells, extern, let, loop, rows, scratch, seq
from .utils import get_const_int, prod


def _tables(n: int, sign: float, dtype: str, use: Any) -> Any:
    """``use(cos, sin)`` with the tables of ``exp(sign · 2πi · k / n)``."""
    def fill(cos: View, sin: View) -> Any:
        def entry(k: Any) -> Any:
            angle = tir.op.cast(k, "float64") * tir.const(2 * math.pi / n, "float64")
            return seq(cos.store(k, tir.cos(angle)), sin.store(k, tir.sin(angle) * tir.const(sign, "float64")))

        return seq(loop(n, entry, "k"), use(cos, sin))

    return scratch(n, dtype, lambda cos: scratch(n, dtype, lambda sin: fill(cos, sin), "sin"), "cos")


def stft(data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool, onesided: bool,
         output_shape: Any) -> Tensor:
    """The transforms of windowed frames, as ([batch,] frequency, frame, 2)."""
    n, length = int(n_fft), data.shape[-1]
    left = (n - int(win_length)) // 2
    bins, frames = output_shape[-3], output_shape[-2]
    scale = 1.0 / math.sqrt(n) if normalized else 1.0

    def body(ins: list[View], outs: list[View]) -> Any:
        signal, weights = ins
        out = outs[0]

        def compute(cos: View, sin: View) -> Any:
            def row(r: Any) -> Any:
                batch, bin_ = tir.floordiv(r, bins), tir.floormod(r, bins)

                def frame(f: Any) -> Any:
                    def add(re: Any, im: Any) -> Any:
                        def term(j: Any) -> Any:
                            at = tir.floormod(bin_ * (j + left), n)
                            x = signal[batch * length + f * hop_length + left + j] * tir.op.cast(weights[j], data.dtype)
                            return let(x, lambda v: seq(re.set(re.get() + v * cos[at]), im.set(im.get() + v * sin[at])), "x")

                        to = (r * frames + f) * 2
                        factor = tir.const(scale, data.dtype)
                        return seq(loop(win_length, term, "j"), out.store(to, re.get() * factor), out.store(to + 1, im.get() * factor))

                    zero = tir.const(0, data.dtype)
                    return cells([zero, zero], add, ("re", "im"))

                return loop(frames, frame, "frame")

            return rows(prod(output_shape[:-2]), row)

        return _tables(n, -1.0, data.dtype, compute)

    return extern([output_shape], [data, window], body, [data.dtype], "stft_cpu", "stft_cpu")[0]


def dft(re_data: Tensor, im_data: Tensor, inverse: bool) -> list[Tensor]:
    """(real, imaginary) part of the discrete Fourier transform along the last axis."""
    n = get_const_int(re_data.shape[-1])
    dtype = re_data.dtype
    factor = tir.const(1.0 / n if inverse and n else 1.0, dtype)

    def body(ins: list[View], outs: list[View]) -> Any:
        def compute(cos: View, sin: View) -> Any:
            def row(r: Any) -> Any:
                def frequency(f: Any) -> Any:
                    def add(re: Any, im: Any) -> Any:
                        def term(j: Any) -> Any:
                            def accumulate(at: Any) -> Any:
                                a, b = ins[0][r * n + j], ins[1][r * n + j]
                                return seq(re.set(re.get() + (a * cos[at] - b * sin[at])), im.set(im.get() + (a * sin[at] + b * cos[at])))

                            return let(tir.floormod(f * j, n), accumulate, "at")

                        put = seq(outs[0].store(r * n + f, re.get() * factor), outs[1].store(r * n + f, im.get() * factor))
                        return seq(loop(n, term, "j"), put)

                    return cells([tir.const(0, dtype), tir.const(0, dtype)], add, ("re", "im"))

                return loop(n, frequency, "f")

            return rows(prod(re_data.shape[:-1]), row)

        return _tables(n, 1.0 if inverse else -1.0, dtype, compute)

    return extern([re_data.shape, im_data.shape], [re_data, im_data], body, [dtype, dtype], "dft_cpu", "dft_cpu")


__all__ = ["stft", "dft"]
