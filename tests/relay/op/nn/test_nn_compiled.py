"""The kernels of the neural network operators as machine code for this processor, against the numpy rules."""
from __future__ import annotations

import numpy as np
import pytest
from nn_harness import assert_close, by_numpy
from test_nn_kernels import CASES, scheduled

from anchorleg.driver.build_module import build, lower
from anchorleg.runtime import ndarray
from anchorleg.target import Target


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_compiled(case):
    target = Target("llvm")
    te_func, schedule = scheduled(case, target)
    with target:
        kernel = build(lower(schedule, [*te_func.inputs, *te_func.outputs], name="k"), target=target)["k"]
    outs = [ndarray.array(np.zeros([int(d) for d in t.shape], t.dtype)) for t in te_func.outputs]
    kernel(*[ndarray.array(np.ascontiguousarray(a)) for a in case.args], *outs)
    got = tuple(o.numpy() for o in outs)
    assert_close(got if len(got) > 1 else got[0], by_numpy(case), max(case.tol, 5e-5))
