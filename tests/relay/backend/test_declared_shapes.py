"""Shape functions that users declare: the executors compute sizes with them."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import cpu, ir, relay, te, tir
from anchorleg.ir.module import IRModule
from anchorleg.relay.backend.kernels import is_reproducible
from anchorleg.relay.backend.lower_te import LowerTE
from anchorleg.relay.op import op as reg
from anchorleg.relay.op.strategy import naive_schedule
from anchorleg.runtime.vm import Executable, VirtualMachine
from anchorleg.support.errors import AnchorlegError, ArgumentError

CALLS: list[str] = []


def register(name, inputs, relation, compute, shape, data_dependent):
    """An operator as users register one; registered once a process."""
    if name in ir.Op.list_op_names():
        return
    op = reg.register(name, name)
    op.set_num_inputs(inputs)
    op.set_attrs_type_key("DictAttrs")
    op.add_type_rel(name.replace(".", "_"), relation)
    op.set_support_level(1)
    reg.register_stateful(name, False)

    def strategy(attrs, ins, out_type, target):
        found = reg.OpStrategy()
        found.add_implementation(compute, naive_schedule, name=name)
        return found

    reg.register_strategy(name, strategy)

    def counted(attrs, ins, ranks):
        CALLS.append(name)
        return shape(attrs, ins, ranks)

    reg.register_shape_func(name, data_dependent, counted)


def unknown(*rest):
    return lambda args, attrs: relay.TensorType([relay.Any(), *rest], args[0].dtype)


@pytest.fixture(scope="module", autouse=True)
def operators():
    i64 = "int64"
    register("test.doubled_rows", 1, lambda args, attrs: relay.TensorType([relay.Any(), args[0].shape[1]], args[0].dtype),
             lambda attrs, ins, out: [te.compute(out.dims, lambda i, j: ins[0](i // 2, j), name="doubled")],
             lambda attrs, ins, ranks: [te.compute((ranks[0],), lambda i: tir.Select(i == 0, ins[0](i) * 2, ins[0](i)), name="s")], False)
    register("test.first", 2, unknown(), lambda attrs, ins, out: [te.compute(out.dims, lambda i: ins[0](i), name="first")],
             lambda attrs, ins, ranks: [te.compute((1,), lambda i: ins[1]().astype(i64), name="s")], True)
    register("test.at_most", 2, unknown(), lambda attrs, ins, out: [te.compute(out.dims, lambda i: ins[0](i), name="first")],
             lambda attrs, ins, ranks: [te.compute((1,), lambda i: tir.min(ins[0](i), ins[1]().astype(i64)), name="s")], [False, True])
    register("test.three_rows", 1, lambda args, attrs: relay.TensorType([3, relay.Any()], args[0].dtype),
             lambda attrs, ins, out: [te.compute(out.dims, lambda i, j: ins[0](j), name="rows")],
             lambda attrs, ins, ranks: [te.compute((2,), lambda i: tir.Select(i == 0, tir.const(2, i64), ins[0](0)), name="s")], False)
    register("test.parts", 1,
             lambda args, attrs: relay.TupleType([relay.TensorType([relay.Any()], args[0].dtype), relay.TensorType([relay.Any()], args[0].dtype)]),
             lambda attrs, ins, out: [te.compute(out.fields[0].dims, lambda i: ins[0](i), name="a"),
                                      te.compute(out.fields[1].dims, lambda i: -ins[0](i), name="b")],
             lambda attrs, ins, ranks: [te.compute((1,), lambda i: ins[0](i) // 2, name="s"), te.compute((1,), lambda i: ins[0](i) // 3, name="t")], False)


def call(name, *args):
    return relay.Call(ir.Op.get(name), list(args))


def run(func, *args):
    """The result of both executors, which must be one."""
    mod = IRModule.from_expr(func)
    found = []
    for kind in ("debug", "vm"):
        CALLS.clear()
        result = relay.create_executor(kind, mod=mod, device=cpu(0), target="llvm").evaluate()(*args)
        assert CALLS, f"{kind} has not asked the shape function"
        found.append([r.numpy() for r in result] if hasattr(result, "tag") else [result.numpy()])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)
    return found[1] if len(found[1]) > 1 else found[1][0]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_from_the_sizes_of_an_argument(rows):
    x = relay.var("x", shape=(relay.Any(), 3))
    value = np.arange(rows * 3, dtype="float32").reshape(rows, 3)
    np.testing.assert_array_equal(run(relay.Function([x], call("test.doubled_rows", x)), value), value.repeat(2, 0))


def test_among_operators_with_rules():
    x = relay.var("x", shape=(relay.Any(), 3))
    body = relay.tanh(relay.add(call("test.doubled_rows", relay.exp(x)), call("test.doubled_rows", x)))
    value = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    np.testing.assert_allclose(run(relay.Function([x], body), value), np.tanh((np.exp(value) + value).repeat(2, 0)), rtol=1e-5)


@pytest.mark.parametrize("name, n, want", [("test.first", 4, 4), ("test.first", 0, 0), ("test.at_most", 4, 4), ("test.at_most", 40, 7)])
def test_from_elements_and_from_both(name, n, want):
    x, k = relay.var("x", shape=(relay.Any(),)), relay.var("k", shape=(), dtype="int32")
    value = np.arange(7, dtype="float32")
    np.testing.assert_array_equal(run(relay.Function([x, k], call(name, x, k)), value, np.array(n, "int32")), value[:want])


def test_several_results():
    x = relay.var("x", shape=(relay.Any(),))
    a, b = run(relay.Function([x], call("test.parts", x)), np.arange(9, dtype="float32"))
    np.testing.assert_array_equal(a, np.arange(4))
    np.testing.assert_array_equal(b, -np.arange(3))


def test_sizes_that_contradict_the_types_are_refused():
    x = relay.var("x", shape=(relay.Any(),))
    func = relay.Function([x], call("test.three_rows", x))
    for kind in ("debug", "vm"):
        with pytest.raises(ArgumentError, match="three_rows"):
            relay.create_executor(kind, mod=IRModule.from_expr(func), device=cpu(0), target="llvm").evaluate()(np.zeros(4, "float32"))


def test_a_negative_size_is_refused():
    x, k = relay.var("x", shape=(relay.Any(),)), relay.var("k", shape=(), dtype="int32")
    func = relay.Function([x, k], call("test.first", x, k))
    for kind in ("debug", "vm"):
        with pytest.raises(AnchorlegError):
            relay.create_executor(kind, mod=IRModule.from_expr(func), device=cpu(0), target="llvm").evaluate()(np.zeros(4, "float32"), np.array(-1, "int32"))


def test_saved_and_loaded_without_the_function():
    x = relay.var("x", shape=(relay.Any(), 3))
    code, lib = relay.vm.compile(IRModule.from_expr(relay.Function([x], call("test.doubled_rows", x))), "llvm").save()
    CALLS.clear()
    value = np.ones((2, 3), "float32")
    assert VirtualMachine(Executable.load_exec(code, lib), cpu(0)).run(value).shape == (4, 3) and not CALLS


def test_kernels_of_declared_functions_are_not_kept_for_other_processes():
    from anchorleg.relay.op.shape_func.declared import declared
    from anchorleg.relay.transform.declared_shapes import shape_function

    x = relay.var("x", shape=(relay.Any(), 3))
    typed = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], call("test.doubled_rows", x))))["main"].body
    assert not is_reproducible(shape_function(typed, declared(typed)))


def test_a_wrong_number_of_flags_is_refused():
    from anchorleg.relay.op.shape_func.declared import declared

    x = relay.var("x", shape=(relay.Any(),))
    with pytest.raises(ArgumentError, match="2 arguments"):
        declared(call("test.at_most", x))


TEXT = """#[version = "0.0.5"]
def @main(%a: Tensor[(?, 7), float32], %b: Tensor[(?, 7), float32]) -> Tensor[(?, 7), float32] {
  %0 = fn (%x: Tensor[(?, 7), float32], %y: Tensor[(?, 7), float32], Primitive=1) -> Tensor[(?, 7), float32] { add(%x, %y) };
  %0(%a, %b)
}"""


def test_lowered_shape_functions_compute_sizes_from_rules():
    from anchorleg.driver.build_module import build
    from anchorleg.runtime.ndarray import array

    mod = LowerTE("mod")(relay.parse(TEXT))
    metadata = mod["main"].body.attrs.metadata
    name = metadata["prim_shape_fn_var"].name_hint
    assert name == "mod_shape_func_add" and metadata["prim_shape_fn_states"] == [2, 2]
    assert (metadata["prim_shape_fn_num_inputs"], metadata["prim_shape_fn_num_outputs"]) == (2, 1)
    compute = build(mod[name], target="llvm", name=name)[name]
    for a, b, want in (((5, 7), (5, 7), (5, 7)), ((1, 7), (5, 7), (5, 7)), ((2, 7), (5, 7), (-1, -1))):
        out = array(np.zeros(2, "int64"))
        compute(array(np.array(a, "int64")), array(np.array(b, "int64")), out)
        assert tuple(out.numpy()) == want


def test_lowered_shape_functions_read_elements_and_declared_functions():
    from anchorleg.relay.backend.te_shape_func import shape_function_of

    x, k = relay.var("x", shape=(relay.Any(), relay.Any())), relay.var("k", shape=(2,), dtype="int64")
    typed = relay.transform.InferType()
    found = shape_function_of(typed(IRModule.from_expr(relay.Function([x], relay.argwhere(x))))["main"])
    assert found.states == [3] and len(found.tensors.inputs) == 2
    found = shape_function_of(typed(IRModule.from_expr(relay.Function([x, k], relay.reshape(x, k))))["main"])
    assert found.states == [2, 3] and len(found.tensors.inputs) == 3
    y, n = relay.var("y", shape=(relay.Any(),)), relay.var("n", shape=(), dtype="int32")
    found = shape_function_of(typed(IRModule.from_expr(relay.Function([y, n], call("test.at_most", y, n))))["main"])
    assert found.states == [2, 3] and found.tensors.name == "shape_func_test_at_most"
