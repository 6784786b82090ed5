"""Sizes as formulas: equal ones are equal, and the program that computes them agrees with Python."""
from __future__ import annotations

import random

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.op.shape_func.dims import DimTable, product
from anchorleg.relay.op.shape_func.program import OPERATIONS, assemble, is_computable
from anchorleg.runtime import cpu
from anchorleg.runtime.vm import VirtualMachine


def test_equal_sizes_are_one():
    t = DimTable()
    b, s = t.atom("dim", 0, 0), t.atom("dim", 0, 1)
    assert product((b, s, 384)) // 384 == b * s == s * b
    assert (b * s * 12) // (s * 4) == 3 * b
    assert s + s == 2 * s and s - s == 0 and (s + 3) - 3 == s
    assert t.maximum(s, s) == s and t.equal(b, b) == 1 and t.less(s, s) == 0
    assert (s + 1) // 2 != s // 2 and (s + 1) // 2 == (1 + s) // 2


def run(program, sizes):
    """The meaning of a shape program, in Python."""
    names = {v: k for k, v in OPERATIONS.items()}
    values, out = [], {}
    for op, a, b, c in program.steps:
        name = names[op]
        x, y = (values[i] if i < len(values) else 0 for i in (a, b))
        values.append({"const": lambda: a, "dim": lambda: sizes[b], "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y,
                       "div": lambda: x // y if y else 0, "mod": lambda: x % y if y else 0, "max": lambda: max(x, y), "min": lambda: min(x, y),
                       "eq": lambda: int(x == y), "lt": lambda: int(x < y), "select": lambda: y if x else values[c],
                       "out": lambda: out.__setitem__((a, b), values[c]), "check": lambda: None}[name]())
    return out


@pytest.mark.parametrize("seed", range(20))
def test_programs_compute_the_formula(seed):
    rng = random.Random(seed)
    t = DimTable()
    atoms = [t.atom("dim", 0, i) for i in range(3)]
    sizes = [rng.randrange(1, 9) for _ in range(3)]
    pool = [(a, n) for a, n in zip(atoms, sizes)] + [(k, k) for k in (1, 2, 3)]
    for _ in range(12):
        (a, x), (b, y) = rng.choice(pool), rng.choice(pool)
        pool.append(rng.choice([lambda: (a + b, x + y), lambda: (a - b, x - y), lambda: (a * b, x * y), lambda: (t.maximum(a, b), max(x, y)),
                                lambda: (t.minimum(a, b), min(x, y)), lambda: (t.select(t.less(a, b), a, b), x if x < y else y)])())
        if y > 0:
            pool.append((t.quotient(a, b), x // y))
    formulas, wanted = zip(*pool)
    assert is_computable(t, formulas)
    found = run(assemble(t, [formulas], []), sizes)
    assert [found[0, i] for i in range(len(wanted))] == list(wanted)


def test_fresh_sizes_are_not_computable():
    t = DimTable()
    assert not is_computable(t, [t.fresh() + 1])


def check(body, params, reference, *inputs):
    vm = VirtualMachine(relay.vm.compile(IRModule.from_expr(relay.Function(params, body)), "llvm"), cpu(0))
    for values in inputs:
        np.testing.assert_array_equal(vm.run(*values).numpy(), reference(*values))


ANY = relay.Any
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("begin,end,strides", [((1, 0), (4, 100), (1, 1)), ((-3, 2), (-1, 7), (1, 2)), ((5, 9), (0, 0), (-2, -1)), ((-1, -2), (-10, -20), (-1, -3))])
def test_slices_of_unknown_sizes(begin, end, strides):
    x = relay.var("x", shape=(ANY(), ANY()))
    check(relay.strided_slice(x, begin, end, strides), [x], lambda v: v[begin[0]:end[0]:strides[0], begin[1]:end[1]:strides[1]],
          [floats(7, 9)], [floats(1, 1)], [floats(3, 20)])


def test_split_at_positions():
    x = relay.var("x", shape=(ANY(), ANY()))
    vm = VirtualMachine(relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.split(x, (8,), 1).astuple())), "llvm"), cpu(0))
    value = floats(7, 12)
    left, right = vm.run(value)
    np.testing.assert_array_equal(left.numpy(), value[:, :8])
    np.testing.assert_array_equal(right.numpy(), value[:, 8:])


def test_squeeze_of_a_negative_axis():
    x = relay.var("x", shape=(1, ANY(), 10, 1))
    check(relay.squeeze(x, [-1]), [x], lambda v: v[..., 0], [floats(1, 5, 10, 1)])


def test_shapes_given_by_tensors():
    x, s = relay.var("x", shape=(ANY(), ANY())), relay.var("s", shape=(2,), dtype="int64")
    check(relay.reshape(x, s), [x, s], lambda v, n: v.reshape(n), [floats(4, 6), np.array([3, 8])], [floats(4, 6), np.array([-1, 2])])
    check(relay.broadcast_to(x, s), [x, s], lambda v, n: np.broadcast_to(v, n), [floats(1, 6), np.array([3, 6])])
    check(relay.tile(x, s), [x, s], lambda v, n: np.tile(v, n), [floats(2, 3), np.array([3, 2])])


def test_values_without_a_shape_function_are_evaluated():
    x, k = relay.var("x", shape=(ANY(), ANY())), relay.var("k", shape=(), dtype="int64")
    check(relay.topk(x, k, ret_type="values"), [x, k], lambda v, n: -np.sort(-v, 1)[:, :int(n)], [floats(2, 9), np.array(3)])


@pytest.mark.parametrize("given, want", [((8, 3), (8, 3)), ((4, 0, 2), (4, 3, 2)), ((2, 0, 0), (2, 3, 4)), ((0, -1), (2, 12)), ((-1, 0), (8, 3)), ((-3, 4), (6, 4)),
                                         ((-3, 0), (6, 4)), ((0, -3), (2, 12)), ((-3, -1), (6, 4))])
@pytest.mark.parametrize("known", [True, False])
def test_special_values_of_a_new_shape_that_come_at_run_time(given, want, known):
    x = relay.var("x", relay.TensorType((2, 3, 4) if known else [relay.Any()] * 3, "float32"))
    shape = relay.var("shape", relay.TensorType((len(given),), "int64"))
    run = relay.create_executor("vm", mod=IRModule.from_expr(relay.Function([x, shape], relay.reshape(x, shape)))).evaluate()
    data = np.arange(24, dtype="float32").reshape(2, 3, 4)
    np.testing.assert_array_equal(run(data, np.array(given)).numpy(), data.reshape(want))


def einsum_of_unknown_sizes():
    x, y = relay.var("x", shape=(relay.Any(), relay.Any())), relay.var("y", shape=(relay.Any(), 4))
    mod = IRModule.from_expr(relay.Function([x, y], relay.einsum([x, y], "ij,jk->ik")))
    return VirtualMachine(relay.vm.compile(mod, "llvm"), cpu())


@pytest.mark.parametrize("left, right", [((2, 3), (3, 4)), ((5, 1), (3, 4)), ((2, 3), (1, 4)), ((0, 3), (3, 4))])
def test_einsum_of_sizes_known_at_run_time(left, right):
    x, y = (np.random.default_rng(0).standard_normal(s).astype("float32") for s in (left, right))
    np.testing.assert_allclose(einsum_of_unknown_sizes().run(x, y).numpy(), np.einsum("ij,jk->ik", x, y), rtol=1e-5, atol=1e-6)


def test_einsum_of_sizes_that_turn_out_not_to_fit_is_refused():
    with pytest.raises(Exception, match="neither equal nor 1"):
        einsum_of_unknown_sizes().run(np.ones((2, 3), "float32"), np.ones((5, 4), "float32"))
