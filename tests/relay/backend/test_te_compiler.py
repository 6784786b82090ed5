"""Choosing implementations: conditions, priorities, tuning records; shapes; names."""
from __future__ import annotations

import logging

import numpy as np
import pytest

import anchorleg as al
from anchorleg import autotvm, relay, te, tir, topi
from anchorleg.ir import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend import te_compiler
from anchorleg.relay.op import op as reg
from anchorleg.relay.testing import TempOpAttr, run_infer_type
from anchorleg.support.errors import ArgumentError
from anchorleg.target import Target


@autotvm.register_topi_compute("test/first")
def _first(cfg, data):
    return te.compute(data.shape, lambda *i: data(*i) + tir.const(1, data.dtype), name="first")


@autotvm.register_topi_schedule("test/first")
def _schedule_first(cfg, outs):
    return topi.generic.schedule_injective(outs)


@autotvm.register_topi_compute("test/second")
def _second(cfg, data):
    return te.compute(data.shape, lambda *i: tir.const(1, data.dtype) + data(*i), name="second")


@autotvm.register_topi_schedule("test/second")
def _schedule_second(cfg, outs):
    return topi.generic.schedule_injective(outs)


def _strategy(attrs, inputs, out_type, target):
    found = reg.OpStrategy()
    for name, compute, schedule, level in (("first", _first, _schedule_first, 10), ("second", _second, _schedule_second, 15)):
        found.add_implementation(relay.op.strategy.wrap_topi_compute(compute), relay.op.strategy.wrap_topi_schedule(schedule), name, level)
    return found


def _record(task_name, shape, target, cost):
    task = autotvm.task.create(task_name, [te.placeholder(shape)], target)
    config = autotvm.ConfigEntity(0, None, {}, [])
    config.cost = cost
    return autotvm.MeasureInput(target, task, config), autotvm.MeasureResult((cost,), 0, -1, -1)


def _select(shape, use_autotvm=True):
    x = relay.var("x", shape=shape)
    call = run_infer_type(relay.exp(x))
    chosen, outs = te_compiler.select_implementation(relay.op.get("exp"), call.attrs, [te.placeholder(shape)], call.checked_type,
                                                     Target("llvm"), use_autotvm)
    return chosen.name, outs


def test_priority_without_records_records_by_cost():
    target = Target("llvm")
    with TempOpAttr("exp", "FTVMStrategy", _strategy):
        assert _select((4,))[0] == "second"
        records = [_record("test/first", (4,), target, 0.5)]
        with autotvm.apply_history_best(records):
            assert _select((4,))[0] == "first"
            assert _select((4,), use_autotvm=False)[0] == "second"
            assert _select((5,))[0] == "second", "records are of other shapes"
            with PassContext(config={"relay.backend.use_meta_schedule": True}):
                assert _select((4,))[0] == "second"
        with autotvm.apply_history_best([*records, _record("test/second", (4,), target, 0.1)]):
            assert _select((4,))[0] == "second"
        assert _select((4,))[0] == "second"


def test_not_tuned_is_said_once(caplog):
    autotvm.task.DispatchContext.warning_messages.clear()
    with TempOpAttr("exp", "FTVMStrategy", _strategy), caplog.at_level(logging.WARNING, logger="autotvm"):
        _select((7,))
        _select((8,))
    assert sum("have not been tuned" in r.message for r in caplog.records) == 1


def test_tasks_are_extracted_by_building():
    x = relay.var("x", shape=(3, 5))
    mod = al.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with TempOpAttr("exp", "FTVMStrategy", _strategy):
        tasks = autotvm.task.extract_from_program(mod, {}, "llvm")
        assert {t.name for t in tasks} == {"test/first", "test/second"}
        assert tasks[0].workload == (tasks[0].name, ("TENSOR", (3, 5), "float32"))
        assert autotvm.task.extract_from_program(mod, {}, "llvm", ops=[relay.op.get("tanh")]) == []
    schedule, tensors = tasks[0].instantiate(tasks[0].config_space)
    assert len(tensors) == 2


def test_conditions_of_symbols_hold_only_when_proved():
    def conditional(attrs, inputs, out_type, target):
        found = reg.OpStrategy()
        always = relay.op.strategy.wrap_topi_compute(lambda t: te.compute(t.shape, lambda *i: t(*i)))
        found.add_implementation(always, topi.generic.schedule_injective, "always")
        n = inputs[0].shape[0]
        with te.SpecializedCondition([n >= 2, n < 10]):
            found.add_implementation(always, topi.generic.schedule_injective, "some")
        return found

    def names(dim):
        data = te.placeholder((dim, 3))
        x = run_infer_type(relay.exp(relay.var("x", shape=(4, 3))))
        return [i.name for i in te_compiler.get_valid_implementations(relay.op.get("exp"), x.attrs, [data], x.checked_type, Target("llvm"))]

    with TempOpAttr("exp", "FTVMStrategy", conditional):
        assert names(4) == ["always", "some"]
        assert names(10) == ["always"] and names(1) == ["always"]
        assert names(te.size_var("n")) == ["always"]
    with pytest.raises(ArgumentError, match="at least one clause"):
        te.SpecializedCondition([])


def test_shapes_as_callers_expect_them():
    shape = te_compiler.get_shape((3, relay.Any(), tir.IntImm("int64", 5)))
    assert [getattr(d, "dtype", None) for d in shape] == ["int32"] * 3 and isinstance(shape[1], tir.SizeVar)


def test_jit_runs_and_needs_a_target():
    x = relay.var("x", shape=(10,))
    func = run_infer_type(relay.Function([x], x + x * x))
    compiler = te_compiler.TECompiler()
    data, out = al.nd.array(np.arange(10, dtype="float32")), al.nd.empty((10,))
    compiler.jit(func, "llvm")(data, out)
    np.testing.assert_allclose(out.numpy(), np.arange(10) + np.arange(10) ** 2)
    with pytest.raises(ArgumentError, match="need a target"):
        te_compiler.TECompiler().lower(func)
    assert te_compiler.lower_to_primfunc(func, Target("llvm")).params


def test_names_are_unique_within_a_compiler():
    compiler, names = te_compiler.TECompiler(), set()
    for n in (2, 3, 4):
        x = relay.var("x", shape=(n,))
        names.add(compiler.lower(run_infer_type(relay.Function([x], relay.exp(x))), "llvm", "model").prim_fn_var.name_hint)
    assert names == {"tvmgen_model_fused_exp", "tvmgen_model_fused_exp_1", "tvmgen_model_fused_exp_2"}
    with pytest.raises(ArgumentError, match="ASCII"):
        relay.backend.utils.mangle_module_name("\u018e")


def test_primitive_functions_are_given_their_schedules_on_request() -> None:
    x = relay.var("x", shape=(8, 16))
    mod = IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.dense(x, relay.const(np.ones((16, 16), "float32"))))))
    for executor in ("graph", "aot"):
        plain = relay.build(mod, "llvm", executor=relay.backend.Executor(executor)).function_metadata
        with PassContext(config={"te.keep_schedule_record": True}):
            kept = relay.build(mod, "llvm", executor=relay.backend.Executor(executor)).function_metadata
        for name, info in kept.items():
            (func,), (before,) = info.relay_primfuncs.values(), plain[name].relay_primfuncs.values()
            if func.get_attr("Primitive"):
                schedule = func.get_attr("schedule")
                assert len(schedule.schedule_record) == len(schedule.primitive_record) > 0 and before.get_attr("schedule") is None
                assert sum(info.io_sizes.values()) > 0
