"""Convolutions rewritten as others keep their values and types."""
from __future__ import annotations

import cases_conv
import numpy as np
import pytest
from nn_harness import Case, assert_close, by_numpy, interpret, module_of, rand

from anchorleg import relay
from anchorleg.relay import nn

CASES = [c for c in cases_conv.CASES if c.name.startswith(("conv1d", "conv2d_transpose"))]
CASES += [
    Case("nhwc", lambda a, b: nn.conv2d_transpose(a, b, strides=(2, 2), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO",
                                                  channels=5, kernel_size=(3, 3)), [rand(1, 4, 5, 3), rand(3, 3, 3, 5)]),
    Case("uneven_strides_grouped", lambda a, b: nn.conv2d_transpose(a, b, strides=(1, 3), padding=(1, 0, 0, 2), groups=2), [rand(2, 4, 5, 3), rand(4, 3, 2, 5)]),
    Case("more_output_padding_than_padding", lambda a, b: nn.conv2d_transpose(a, b, strides=(3, 3), output_padding=(2, 1)), [rand(1, 2, 3, 4), rand(2, 3, 2, 3)]),
    Case("all_of_the_kernel_cut", lambda a, b: nn.conv2d_transpose(a, b, strides=(2, 2), padding=(3, 3)), [rand(1, 2, 6, 6), rand(2, 3, 4, 4)]),
    Case("stride_beyond_kernel", lambda a, b: nn.conv2d_transpose(a, b, strides=(4, 3)), [rand(1, 2, 3, 3), rand(2, 3, 2, 1)]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_legalized(case):
    mod = relay.transform.InferType()(relay.transform.Legalize()(module_of(case)))
    func = mod["main"]
    kept = "dilated" in case.name and "transpose" in case.name
    assert ("transpose" in func.body.op.name) == kept if kept else func.body.op.name not in ("nn.conv1d", "nn.conv2d_transpose")
    got = interpret(func.body, dict(zip(func.params, case.args)))
    assert_close(np.asarray(got), by_numpy(case), 1e-5)
