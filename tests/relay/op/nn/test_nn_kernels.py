"""Every operator's chosen compute and schedule, as a loop program run by the TIR interpreter, against its numpy rule."""
from __future__ import annotations

import cases_conv
import cases_dense
import cases_misc
import cases_pool
import numpy as np
import pytest
from nn_harness import assert_close, by_numpy, module_of

from anchorleg.driver.build_module import schedule_to_module
from anchorleg.relay.backend import te_lowering
from anchorleg.relay.backend.te_compiler import select_implementation
from anchorleg.relay.op.registry import attrs_of
from anchorleg.target import Target
from anchorleg.tir.interpreter import run_primfunc

CASES = [*cases_conv.CASES, *cases_dense.CASES, *cases_pool.CASES, *cases_misc.CASES]


def scheduled(case, target):
    """A case's tensors and the schedule its anchor gives them."""
    func = module_of(case)["main"]

    def select(call, inputs, target, out_type=None):
        return select_implementation(call.op, attrs_of(call.op, call.attrs), inputs, out_type or call.checked_type, target)

    te_func = te_lowering.to_tensors(func, target, select)
    with target:
        schedule = te_func.anchor_implementation.schedule(te_func.anchor_attrs, te_func.outputs, target)
    return te_func, schedule


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4 -mtriple=x86_64-linux-gnu", "llvm -mcpu=x86-64-v3 -mtriple=x86_64-linux-gnu"],
                         ids=["v4", "v3"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_kernel(case, target):
    te_func, schedule = scheduled(case, Target(target))
    prim_func = schedule_to_module(schedule, [*te_func.inputs, *te_func.outputs])["main"]
    outs = [np.zeros([int(d) for d in t.shape], t.dtype) for t in te_func.outputs]
    run_primfunc(prim_func, *[a.copy() for a in case.args], *outs)
    assert_close(tuple(outs) if len(outs) > 1 else outs[0], by_numpy(case), max(case.tol, 2e-5))
