"""Structural equality, hashing and the path to the first difference."""
import subprocess
import sys

import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.ir import StructuralMismatch, assert_structural_equal, first_difference, structural_equal, structural_hash
from anchorleg.ir.op import register_op

register_op("test.f")


def f(*args, **attrs):
    return relay.Call(ir.Op.get("test.f"), args, ir.DictAttrs(attrs) if attrs else None)


def same(a, b):
    equal = structural_equal(a, b)
    assert equal == structural_equal(b, a)
    if equal:
        assert structural_hash(a) == structural_hash(b)
        assert first_difference(a, b) is None
    else:
        assert first_difference(a, b)
    return equal


def test_bound_names_do_not_matter():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert same(relay.Function([x], f(x, x)), relay.Function([y], f(y, y)))
    assert not same(relay.Function([x], f(x, x)), relay.Function([relay.var("x", shape=(3,))], x))


def test_let_bound_variables_are_paired():
    def make(name):
        v = relay.Var(name)
        return relay.Let(v, relay.const(1), f(v))

    assert same(make("a"), make("b"))


def test_swapped_parameters_differ():
    x, y = relay.var("x"), relay.var("y")
    assert not same(relay.Function([x, y], f(x, y)), relay.Function([y, x], f(x, y)))


def test_free_variables_equal_only_themselves_unless_mapped():
    x, y = relay.var("x"), relay.var("y")
    assert same(f(x), f(x))
    assert not same(f(x), f(y))
    assert structural_equal(f(x, x), f(y, y), map_free_vars=True)
    assert not structural_equal(f(x, x), f(x, y), map_free_vars=True)


def test_sharing_is_part_of_the_structure():
    x = relay.var("x")
    once, again = f(x), f(x)
    assert same(f(once, once), f(again, again))
    assert not same(f(once, once), f(f(x), f(x)))
    assert structural_hash(f(once, once)) != structural_hash(f(f(x), f(x)))


def test_constants_by_dtype_shape_and_bytes():
    assert same(relay.const(np.array([1, 2], "int32")), relay.const(np.array([1, 2], "int32")))
    assert not same(relay.const(np.array([1, 2], "int32")), relay.const(np.array([1, 2], "int64")))
    assert not same(relay.const(0.0), relay.const(-0.0))
    assert same(relay.const(np.float32("nan")), relay.const(np.float32("nan")))


def test_attributes_entry_by_entry():
    x = relay.var("x")
    assert same(f(x, a=1, b="s"), f(x, b="s", a=1))
    assert not same(f(x, a=1), f(x, a=2))
    assert not same(f(x, a=1), f(x))
    assert not same(f(x, a=1), f(x, a=1.0))


def test_function_attributes_empty_or_missing_are_the_same():
    x = relay.var("x")
    assert same(relay.Function([x], x), relay.Function([x], x, attrs=ir.DictAttrs({})))
    assert not same(relay.Function([x], x), relay.Function([x], x).with_attr("Primitive", 1))


def test_path_to_the_first_difference():
    x, y = relay.var("x"), relay.var("y")
    a, b = relay.Function([x], f(f(x), f(x, axis=1))), relay.Function([y], f(f(y), f(y, axis=2)))
    assert first_difference(a, b) == ".body.args[1].attrs.axis: 1 is not 2"
    with pytest.raises(StructuralMismatch, match=r"\.body\.args\[1\]\.attrs\.axis"):
        assert_structural_equal(a, b)


def test_modules_compare_functions_by_name():
    x, y = relay.var("x"), relay.var("y")
    a = ir.IRModule({"f": relay.Function([x], x), "g": relay.Function([x], f(x))})
    b = ir.IRModule({"g": relay.Function([y], f(y)), "f": relay.Function([y], y)})
    assert same(a, b)
    assert "[\"g\"]" in (first_difference(a, ir.IRModule({"f": a["f"], "h": a["g"]})) or "").replace("'", '"')


def test_types():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert same(relay.FuncType([a], a, [a]), relay.FuncType([b], b, [b]))
    assert not same(relay.FuncType([a], a), relay.FuncType([b], b))
    assert same(relay.TensorType((1, relay.Any())), relay.TensorType((1, relay.Any())))
    assert not same(relay.TensorType((1, 2)), relay.TensorType((1, 2), "int8"))
    assert not same(relay.IncompleteType(), relay.IncompleteType())


def test_match_binds_the_variables_of_its_patterns():
    head = relay.GlobalTypeVar("L")
    cons = relay.Constructor("Cons", [relay.TensorType(())], head)
    data = relay.var("d")

    def make(name, ctor=cons):
        v = relay.Var(name)
        return relay.Match(data, [relay.Clause(relay.PatternConstructor(ctor, [relay.PatternVar(v)]), f(v))])

    assert same(make("a"), make("b"))
    assert not same(make("a"), make("b", relay.Constructor("Other", [relay.TensorType(())], head)))


def test_sharing_costs_linear_time():
    def tower(x):
        y = x
        for _ in range(200):
            y = f(y, y)
        return relay.Function([x], y)

    assert same(tower(relay.var("x")), tower(relay.var("y")))


@pytest.mark.parametrize("depth", [20000])
def test_deep_and_long_programs(depth):
    def chain():
        x = relay.var("x")
        y = x
        for _ in range(depth):
            y = f(y)
        return relay.Function([x], y)

    def lets():
        x = relay.var("x")
        body = last = relay.Var("last")
        for _ in range(depth):
            v = relay.Var("v")
            body, last = relay.Let(last, f(v), body), v
        return relay.Function([x], relay.Let(last, x, body))

    assert same(chain(), chain())
    assert same(lets(), lets())


def test_hash_is_the_same_in_another_process():
    code = ("from anchorleg import ir, relay; from anchorleg.ir.op import register_op; register_op('test.f');"
            "x = relay.var('x', shape=(1, 2)); print(ir.structural_hash(relay.Function([x], relay.Call(ir.Op.get('test.f'), [x, "
            "relay.const(2.5)], ir.DictAttrs({'k': ('a', 1, None, 2.0)})))))")
    seen = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": seed, "PATH": ""}).stdout for seed in ("1", "2")}
    assert len(seen) == 1


def test_floats_of_attributes_may_have_been_through_float32():
    x = relay.var("x")
    assert structural_equal(f(x, eps=1e-5), f(x, eps=float(np.float32(1e-5))))
    assert structural_hash(f(x, eps=1e-5)) != structural_hash(f(x, eps=float(np.float32(1e-5))))
    assert not structural_equal(f(x, eps=1e-5), f(x, eps=1.0000001e-5))
    assert structural_equal(f(x, eps=float("nan")), f(x, eps=float("nan")))
    assert not structural_equal(f(x, eps=0.0), f(x, eps=-0.0))


def test_variables_bound_again_elsewhere_stand_for_something_else_there():
    x, y, z = relay.var("x"), relay.var("y"), relay.var("z")
    reused = ir.IRModule({"f": relay.Function([x], x), "g": relay.Function([x], f(x))})
    fresh = ir.IRModule({"f": relay.Function([y], y), "g": relay.Function([z], f(z))})
    assert same(reused, fresh)
