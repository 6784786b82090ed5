"""An operator registered by a user, from its type relation to a strategy with several implementations."""
from __future__ import annotations

import numpy as np
import pytest

import anchorleg as al
from anchorleg import relay, te, tir, topi
from anchorleg.autotvm import task
from anchorleg.contrib import graph_executor
from anchorleg.ir import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend import te_compiler
from anchorleg.relay.backend.kernels import is_reproducible
from anchorleg.relay.op import op as reg
from anchorleg.relay.testing import run_infer_type
from anchorleg.support.errors import AnchorlegError, ArgumentError, BuildError
from anchorleg.target import Target

NAME = "test.twice_plus_one"
USED: list[str] = []


def _compute(name):
    def compute(attrs, inputs, out_type):
        USED.append(name)
        data = inputs[0]
        one, two = (tir.const(v, data.dtype) for v in (1, 2))
        return [te.compute(data.shape, lambda *i: data(*i) * two + one, name=name)]

    return compute


def _relation(args, attrs):
    if len(args) != 1:
        raise ArgumentError("one argument is expected")
    return relay.TensorType(args[0].shape, args[0].dtype)


def _strategy(attrs, inputs, out_type, target):
    found = reg.OpStrategy()
    schedule = relay.op.strategy.wrap_topi_schedule(topi.generic.schedule_injective)
    found.add_implementation(_compute("low"), schedule, name="low", plevel=5)
    found.add_implementation(_compute("high"), schedule, name="high", plevel=10)
    with te.SpecializedCondition(inputs[0].shape[0] >= 16):
        found.add_implementation(_compute("large"), schedule, name="large", plevel=20)
    return found


@pytest.fixture(scope="module")
def operator():
    if NAME not in al.ir.Op.list_op_names():
        op = reg.register(NAME, "2 x + 1")
        op.set_num_inputs(1)
        op.add_argument("data", "Tensor", "The input.")
        op.set_attrs_type_key("DictAttrs")
        op.add_type_rel("TestTwicePlusOne", _relation)
        op.set_support_level(1)
        reg.register_pattern(NAME, reg.OpPattern.ELEMWISE)
        reg.register_stateful(NAME, False)
        reg.register_strategy(NAME, _strategy)
    return reg.get(NAME)


def _function(op, rows):
    x = relay.var("x", shape=(rows, 6))
    return relay.Function([x], relay.nn.relu(relay.Call(op, [relay.exp(x)])))


@pytest.mark.parametrize("rows, expected", [(4, "high"), (32, "large")])
@pytest.mark.parametrize("level", range(5))
def test_builds_at_every_level_with_the_implementation_that_applies(operator, rows, expected, level, monkeypatch):
    monkeypatch.setattr(task, "TASK_TABLE", {})  # with tunable tasks about, every valid implementation is tried
    USED.clear()
    with PassContext(opt_level=level):
        lib = relay.build(IRModule.from_expr(_function(operator, rows)), "llvm")
    assert set(USED) == {expected}
    module = graph_executor.GraphModule(lib["default"](al.cpu()))
    x = np.linspace(-1, 1, rows * 6, dtype="float32").reshape(rows, 6)
    module.set_input("x", x)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), 2 * np.exp(x) + 1, rtol=1e-5)


def test_fuses_with_its_neighbours(operator):
    typed = run_infer_type(_function(operator, 4))
    fused = relay.transform.FuseOps(2)(IRModule.from_expr(typed))
    assert fused["main"].body.op.get_attr("Primitive") == 1


def test_interpreter_runs_it(operator):
    result = relay.create_executor("debug", target="llvm").evaluate(_function(operator, 3))(np.zeros((3, 6), "float32"))
    np.testing.assert_allclose(result.numpy(), np.full((3, 6), 3.0))


def test_type_relation_is_asked(operator):
    assert run_infer_type(_function(operator, 2)).checked_type.ret_type == relay.TensorType((2, 6), "float32")
    with pytest.raises(ArgumentError, match="registered before"):
        reg.register(NAME)


def test_its_kernels_stay_out_of_the_shared_cache(operator):
    x = relay.var("x", shape=(4, 4))
    assert not is_reproducible(run_infer_type(relay.Function([x], relay.Call(operator, [x]))))
    assert is_reproducible(run_infer_type(relay.Function([x], relay.exp(x))))
    with PassContext(config={"tir.add_lower_pass": [(1, lambda f, *rest: f)]}):
        assert not is_reproducible(run_infer_type(relay.Function([x], relay.exp(x))))


def test_items_and_statistics(operator):
    compiler = te_compiler.TECompiler()
    x = relay.var("x", shape=(4, 4))
    func = run_infer_type(relay.Function([x], relay.Call(operator, [x])))
    first, again = compiler.lower(func, "llvm"), compiler.lower(func, "llvm")
    assert first.same_as(again)
    (key, value), = compiler.items()
    assert value.use_count == 2 and str(key.target).startswith("llvm") and value.cached_func is first
    assert compiler.stats() == {"functions": 1, "requests": 2, "hits": 1}
    compiler.clear()
    assert compiler.items() == []


def test_no_implementation_says_what_was_asked(operator):
    name = "test.never"
    if name not in al.ir.Op.list_op_names():
        op = reg.register(name)
        op.set_num_inputs(1)
        op.add_type_rel("Identity")

        def never(attrs, inputs, out_type, target):
            found = reg.OpStrategy()
            with te.SpecializedCondition(inputs[0].shape[0] > 100):
                found.add_implementation(_compute("never"), topi.generic.schedule_injective)
            return found

        reg.register_strategy(name, never)
    x = relay.var("x", shape=(3,), dtype="int8")
    func = run_infer_type(relay.Function([x], relay.Call(reg.get(name), [x])))
    with pytest.raises(BuildError, match=r"(?s)No valid test.never implementations for llvm.*int8\[3\].*fn \(%x") as caught:
        te_compiler.TECompiler().lower(func, "llvm")
    assert isinstance(caught.value, RuntimeError)


def test_operator_without_strategy_says_how_to_register_one():
    name = "test.bare"
    if name not in al.ir.Op.list_op_names():
        op = reg.register(name)
        op.set_num_inputs(1)
        op.add_type_rel("Identity")
    x = relay.var("x", shape=(3,))
    func = run_infer_type(relay.Function([x], relay.Call(reg.get(name), [x])))
    with pytest.raises(AnchorlegError, match="register_strategy"):
        te_compiler.TECompiler().lower(func, Target("llvm"))


def test_errors_of_a_users_compute_carry_the_function():
    name = "test.broken"
    if name not in al.ir.Op.list_op_names():
        op = reg.register(name)
        op.set_num_inputs(1)
        op.add_type_rel("Identity")

        def broken(attrs, inputs, out_type):
            raise ArgumentError("the reason")

        reg.register_compute(name, broken)
        reg.register_injective_schedule(name)
    x = relay.var("x", shape=(3,))
    with pytest.raises(ArgumentError, match=r"(?s)the reason.*test\.broken"):
        te_compiler.TECompiler().lower(run_infer_type(relay.Function([x], relay.Call(reg.get(name), [x]))), "llvm")
