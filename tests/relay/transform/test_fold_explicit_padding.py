"""FoldExplicitPadding."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from anchorleg import relay

from .passes import count, of, same_values, unchanged

CONV = ("def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(4, 3, 3, 3), float32]) "
        "{{ nn.conv2d(nn.pad(%x, {value}, pad_width={widths}{mode}), %w, padding=[0, 0, 0, 0]) }}")


@pytest.mark.parametrize("layout, own", list(itertools.product(("NCHW", "NHWC"), ((0, 0, 0, 0), (1, 0, 2, 1)))))
def test_zeros_before_a_convolution(layout: str, own: tuple[int, ...]) -> None:
    x = relay.var("x", shape=(1, 3, 5, 6) if layout == "NCHW" else (1, 5, 6, 3))
    w = relay.const(np.random.default_rng(0).standard_normal((4, 3, 3, 3) if layout == "NCHW" else (3, 3, 3, 4)).astype("float32"))
    widths = [{"H": (1, 2), "W": (0, 3)}.get(c, (0, 0)) for c in layout]
    conv = relay.nn.conv2d(relay.nn.pad(x, widths), w, padding=own, data_layout=layout, kernel_layout="OIHW" if layout == "NCHW" else "HWIO")
    assert not count(same_values("FoldExplicitPadding", of(conv)), "nn.pad")


@pytest.mark.parametrize("make", [
    lambda x: relay.nn.max_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1)), pad_value=-np.inf), pool_size=(3, 3)),
    lambda x: relay.nn.avg_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1))), pool_size=(3, 3)),
    lambda x: relay.nn.avg_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 0), (0, 1))), pool_size=(3, 3), padding=(1, 1), count_include_pad=True),
])
def test_pools(make: Any) -> None:
    assert not count(same_values("FoldExplicitPadding", of(make(relay.var("x", shape=(1, 3, 5, 5))))), "nn.pad")


@pytest.mark.parametrize("make", [
    lambda x: relay.nn.max_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), pool_size=(3, 3)),
    lambda x: relay.nn.avg_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), pool_size=(3, 3), padding=(1, 1)),
    lambda x: relay.nn.avg_pool2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), pool_size=(3, 3), strides=(2, 2), ceil_mode=True),
])
def test_pools_that_would_see_other_values(make: Any) -> None:
    assert count(same_values("FoldExplicitPadding", of(make(relay.var("x", shape=(1, 3, 5, 5))))), "nn.pad") == 1


@pytest.mark.parametrize("value, widths, mode", [
    ("1f", "[[0, 0], [0, 0], [1, 1], [1, 1]]", ""), ("0f", "[[0, 0], [0, 0], [1, 1], [1, 1]]", ', pad_mode="edge"'),
    ("0f", "[[1, 0], [0, 0], [1, 1], [1, 1]]", "")])
def test_other_paddings_stay(value: str, widths: str, mode: str) -> None:
    unchanged("FoldExplicitPadding", CONV.format(value=value, widths=widths, mode=mode))
