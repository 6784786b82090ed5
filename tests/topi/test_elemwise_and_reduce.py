"""Computes and schedules of element-wise operators and reductions: what they compute, and the loops they get."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import te, topi
from anchorleg.target import Target
from anchorleg.te.lower.prim_func import schedule_to_prim_func
from anchorleg.tir.expr import IterVar
from anchorleg.tir.interpreter import run_primfunc
from anchorleg.topi.injective import schedule_injective
from anchorleg.topi.reduction_schedule import schedule_reduce

from ..relay.op.kernels import run_compiled, run_kernels
from ..relay.op.tensor.cases import FAMILIES

WIDE = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")  # 16 lanes of float32


@pytest.mark.parametrize("family", FAMILIES)
def test_scheduled_kernels(family):
    failed = []
    for case in FAMILIES[family]():
        try:
            run_kernels(case)
        except AssertionError as exc:
            failed.append(f"{case}: {exc}")
    assert not failed, f"{len(failed)} cases failed:\n" + "\n".join(failed[:5])


@pytest.mark.parametrize("family, every", [("unary", 37), ("binary", 41), ("convert", 7), ("create", 5), ("reduce", 43)])
def test_compiled_kernels(family, every):
    for case in list(FAMILIES[family]())[::every]:
        run_kernels(case, run_compiled)


def marks(stage):
    """(name, extent if split by a factor, mark) of a stage's loops, outside in."""
    kinds = {IterVar.Vectorized: "vector", IterVar.Parallelized: "parallel", IterVar.Unrolled: "unrolled"}
    found = []
    for iv in stage.leaf_iter_vars:
        mark = stage.iter_var_attrs.get(iv)
        found.append((iv.var.name, kinds.get(mark.iter_type) if mark else None))
    return found


def run(schedule, outs, inputs, arrays, want):
    with WIDE:
        sch = schedule(outs)
    out = np.zeros([int(d) for d in outs[0].shape], outs[0].dtype)
    run_primfunc(schedule_to_prim_func(sch, [*inputs, *outs], "f"), *arrays, out)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    return sch


def test_bias_of_an_image_is_vectorised_over_the_whole_image():
    x, b = te.placeholder((2, 64, 7, 7), "float32", "x"), te.placeholder((64, 1, 1), "float32", "b")
    xs, bs = np.random.rand(2, 64, 7, 7).astype("float32"), np.random.rand(64, 1, 1).astype("float32")
    out = topi.clip(topi.add(x, b), 0, 1)
    sch = run(schedule_injective, [out], [x, b], [xs, bs], np.clip(xs + bs, 0, 1))
    assert marks(sch[out]) == [("i0.i1.fused", "parallel"), ("i2.i3.fused.outer", None), ("i2.i3.fused.inner", "vector")]


def test_one_run_over_memory_when_nothing_is_broadcast():
    x = te.placeholder((3, 5, 7), "float32", "x")
    xs = np.random.rand(3, 5, 7).astype("float32")
    out = topi.exp(topi.multiply(x, 2.0))
    sch = run(schedule_injective, [out], [x], [xs], np.exp(xs * 2))
    assert marks(sch[out]) == [("i0.i1.fused.i2.fused.outer", None), ("i0.i1.fused.i2.fused.inner", "vector")]


def test_broadcast_row_keeps_the_last_axis():
    x, b = te.placeholder((8, 48), "float32", "x"), te.placeholder((48,), "float32", "b")
    xs, bs = np.random.rand(8, 48).astype("float32"), np.random.rand(48).astype("float32")
    out = topi.add(x, b)
    sch = run(schedule_injective, [out], [x, b], [xs, bs], xs + bs)
    assert [m for _, m in marks(sch[out])] == [None, None, "vector"]


def test_small_work_is_not_shared_and_large_work_is():
    def shared(n):
        x = te.placeholder((n,), "float32", "x")
        out = topi.add(x, x)
        with WIDE:
            return any(m == "parallel" for _, m in marks(schedule_injective([out])[out]))

    assert not shared(1000) and shared(1_000_000)


def test_sum_along_memory_in_vectors_without_a_rest():
    x = te.placeholder((128, 768), "float32", "x")
    xs = np.random.rand(128, 768).astype("float32")
    out = topi.sum(x, axis=-1)
    sch = run(schedule_reduce, [out], [x], [xs], xs.sum(-1))
    assert marks(sch[out])[0][1] == "parallel"
    widths = [s.op.axis[0].dom.extent.value for s in sch.stages if s.op.name.endswith(".rf")]
    assert widths == [64, 32, 16, 8, 4]


@pytest.mark.parametrize("shape, axis", [((5, 49), 1), ((2, 3, 7, 7), (2, 3)), ((3, 1000), 1), ((200,), 0), ((4, 6), 1), ((64, 7, 16), 1),
                                         ((30, 100), 0), ((3, 5, 2), (0, 1)), ((2, 9, 33), (0, 1)), ((17, 3), 0)])
def test_mean_of_any_shape(shape, axis):
    x = te.placeholder(shape, "float32", "x")
    xs = np.random.rand(*shape).astype("float32")
    for keep in (False, True):
        run(schedule_reduce, [topi.mean(x, axis, keep)], [x], [xs], xs.mean(axis=axis, keepdims=keep))


def test_reduction_of_fused_producers():
    x, y = te.placeholder((6, 80), "float32", "x"), te.placeholder((80,), "float32", "y")
    xs, ys = np.random.rand(6, 80).astype("float32"), np.random.rand(80).astype("float32")
    out = topi.sum(topi.exp(topi.add(x, y)), axis=1)
    sch = run(schedule_reduce, [out], [x, y], [xs, ys], np.exp(xs + ys).sum(1))
    assert not any(s.op.name.startswith(("T_add", "T_exp")) and s.attach_type.name != "INLINE" for s in sch.stages if "red" not in s.op.name)


def test_blocked_channels_are_accumulated_side_by_side():
    x = te.placeholder((1, 4, 7, 7, 16), "float32", "x")
    xs = np.random.rand(1, 4, 7, 7, 16).astype("float32")
    out = topi.mean(x, axis=(2, 3), keepdims=True)
    sch = run(schedule_reduce, [out], [x], [xs], xs.mean(axis=(2, 3), keepdims=True))
    total = next(s for s in sch.stages if s.op.reduce_axis)
    assert marks(total)[-1][1] == "vector" and total.scope == "local"


def test_long_chain_and_doubling_stay_linear():
    x = te.placeholder((100,), "float32", "x")
    y = z = x
    for _ in range(200):
        y = topi.add(y, x)
    for _ in range(60):
        z = topi.add(z, z)
    for out in (y, z):
        with WIDE:
            schedule_to_prim_func(schedule_injective([out]), [x, out], "f")


def test_arithmetic_of_whole_tensors():
    x, y = te.placeholder((3,), "float32", "x"), te.placeholder((2, 1), "float32", "y")
    assert [int(d) for d in (x + y * 2.0).shape] == [2, 3] and (x < y).dtype == "bool"


def test_bounds_of_clip_do_not_let_nan_through_as_a_bound():
    x = te.placeholder((3,), "float32", "x")
    xs = np.array([np.nan, -5, 5], "float32")
    run(schedule_injective, [topi.clip(x, -1, 1)], [x], [xs], np.array([np.nan, -1, 1], "float32"))


@pytest.mark.parametrize("inner", [1, 7, 16, 24, 384])
@pytest.mark.parametrize("name", ["max", "min", "sum"])
def test_reductions_of_everything_over_unknown_sizes(name, inner):
    from anchorleg import cpu, relay
    from anchorleg.ir.module import IRModule
    from anchorleg.runtime.vm import VirtualMachine

    data = relay.var("x", shape=(1, relay.Any(), inner))
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([data], getattr(relay, name)(data))), "llvm")
    for rows in (1, 2, 5, 33):
        x = np.random.default_rng(rows).standard_normal((1, rows, inner)).astype(np.float32)
        np.testing.assert_allclose(VirtualMachine(exe, cpu(0)).invoke("main", x).numpy(), getattr(x, name)(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape, axis", [((None, None, 16), (0, 1)), ((None, 16), (0,)), ((2, None, None, 8), (1, 2))])
def test_long_sums_over_unknown_sizes_are_made_in_parts(shape, axis):
    """One accumulator would be off by more than 1e-5 after 130,000 additions of numbers near one another."""
    from anchorleg import cpu, relay
    from anchorleg.ir.module import IRModule
    from anchorleg.runtime.vm import VirtualMachine

    x = relay.var("x", shape=[relay.Any() if d is None else d for d in shape])
    run = VirtualMachine(relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.sum(x, axis))), "llvm"), cpu()).invoke
    for size in (1000 if shape.count(None) > 1 else 130_000, 3):
        sizes = iter((size, 130))
        data = np.abs(np.random.default_rng(4).standard_normal([next(sizes) if d is None else d for d in shape])).astype("float32")
        want = data.astype("float64").sum(axis)
        assert np.abs(run("main", data).numpy() - want).max() / want.max() < (4e-6 if size > 3 else 1e-6)
