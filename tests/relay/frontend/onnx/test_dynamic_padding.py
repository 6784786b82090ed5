"""Padding whose widths are inputs, or follow from sizes that only the inputs tell, against ONNX Runtime."""
from __future__ import annotations

import numpy as np
import pytest

from .test_dynamic_inputs import f, i64, single

pytest.importorskip("onnxruntime")
PLANES = ((1, 16, 16), (2, 9, 13), (3, 31, 20), (1, 7, 5))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_widths_that_are_an_input(mode: str) -> None:
    widths = [(1, 2, 3, 1), (0, 0, 0, 0), (0, 3, 1, 0)] + ([(-1, 0, 0, -2)] if mode == "constant" else [])
    single("Pad", [{"x": f(4, 5), "pads": i64(*w)} for w in widths], {"x": ["p", "q"]}, opset=19 if mode == "wrap" else 18, mode=mode)


def test_padding_of_one_axis_by_a_value() -> None:
    feeds = [{"x": f(2, n), "pads": i64(*w), "value": np.array(2.5, np.float32)} for n, w in ((3, (1, 2)), (1, (0, 4)))]
    single("Pad", feeds, {"x": [2, "n"]}, ("x", "pads", "value", "axes"), constants={"axes": i64(1)})


@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel, strides", [((3, 3), (2, 2)), ((5, 2), (2, 3)), ((4, 4), (2, 1))])
def test_same_sizes_of_strided_windows(side: str, kernel: tuple[int, int], strides: tuple[int, int]) -> None:
    feeds, window = [{"x": f(n, 4, h, w)} for n, h, w in PLANES], {"kernel_shape": kernel, "strides": strides, "auto_pad": side}
    unknown = {"x": ["n", 4, "h", "w"]}
    single("Conv", feeds, unknown, ("x", "weight"), constants={"weight": f(8, 4, *kernel)}, **window)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        single(op, feeds, unknown, **window)
