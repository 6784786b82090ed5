"""Convolutions whose padding is made a stripe of rows at a time."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import te
from anchorleg.driver.build_module import build, lower
from anchorleg.runtime import ndarray
from anchorleg.target import Target
from anchorleg.topi.nn import conv2d_cpu
from anchorleg.topi.nn.conv import conv2d_NCHWc


def run(shape, weight, stride, padding):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(shape).astype("float32"), rng.standard_normal(weight).astype("float32")
    data, kernel = te.placeholder(shape, name="data"), te.placeholder(weight, name="kernel")
    target = Target("llvm")
    with target:
        out = conv2d_NCHWc(data, kernel, stride, padding, 1, f"NCHW{shape[4]}c", f"NCHW{weight[5]}c")
        func = build(lower(conv2d_cpu.schedule_conv2d_NCHWc(out, target), [data, kernel, out], name="k"), target=target)["k"]
    result = ndarray.array(np.zeros([int(d) for d in out.shape], "float32"))
    func(ndarray.array(x), ndarray.array(w), result)
    return result.numpy()


@pytest.mark.parametrize("shape,weight,stride,padding", [
    ((1, 2, 33, 20, 8), (3, 2, 3, 3, 8, 8), 1, (1, 1)),
    ((2, 1, 37, 11, 16), (2, 1, 3, 3, 16, 16), 2, (1, 1)),
    ((1, 1, 17, 9, 4), (1, 1, 2, 2, 4, 8), 1, (0, 0, 1, 1)),
    ((1, 2, 19, 1, 8), (2, 2, 5, 1, 8, 16), 1, (2, 0)),
])
def test_stripes_agree_with_whole_padding(monkeypatch, shape, weight, stride, padding):
    whole = run(shape, weight, stride, padding)
    monkeypatch.setattr(conv2d_cpu, "LARGE_BYTES", 1)
    monkeypatch.setattr(conv2d_cpu, "MOST_STRIPE_BYTES", 1)
    np.testing.assert_allclose(run(shape, weight, stride, padding), whole, rtol=1e-5, atol=1e-5)
