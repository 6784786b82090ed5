"""Free, bound and all variables; well-formedness; substitution."""
import pytest

from anchorleg import ir, relay
from anchorleg.ir import structural_equal
from anchorleg.ir.op import register_op
from anchorleg.relay.analysis import (all_type_vars, all_vars, bound_type_vars, bound_vars, free_type_vars, free_vars, post_order_visit,
                                      well_formed)
from anchorleg.relay.transform.bind import bind, bind_params_by_name, substitute
from anchorleg.support.errors import ArgumentError

register_op("test.f")


def f(*args):
    return relay.Call(ir.Op.get("test.f"), args)


def test_free_bound_all():
    x, y, z = (relay.var(n) for n in "xyz")
    e = relay.Let(x, f(y), f(x, z))
    assert free_vars(e) == [y, z]
    assert bound_vars(e) == [x]
    assert all_vars(e) == [x, y, z]
    assert free_vars(relay.Function([y, z], e)) == []


def test_pattern_variables_are_bound():
    x, v, w = relay.var("x"), relay.var("v"), relay.var("w")
    pat = relay.PatternTuple([relay.PatternVar(v), relay.PatternTuple([relay.PatternVar(w), relay.PatternWildcard()])])
    m = relay.Match(x, [relay.Clause(pat, f(v, w))])
    assert free_vars(m) == [x]
    assert bound_vars(pat) == [v, w]


def test_type_variables():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    x = relay.Var("x", a)
    fn = relay.Function([x], f(relay.Var("y", b)), None, [a])
    assert bound_type_vars(fn) == [a]
    assert free_type_vars(fn) == [b]
    assert all_type_vars(fn) == [a, b]


def test_post_order_meets_each_expression_once_children_first():
    x = relay.var("x")
    shared = f(x)
    top = f(shared, shared)
    seen = []
    post_order_visit(top, seen.append)
    assert [s for s in seen if isinstance(s, relay.Call)] == [shared, top]


def test_well_formed():
    x, y = relay.var("x"), relay.var("y")
    assert well_formed(relay.Function([x], f(x, y)))
    assert not well_formed(relay.Function([x], relay.Let(x, y, x)))
    assert not well_formed(f(relay.Let(x, y, x), x))
    assert not well_formed(relay.Let(x, y, relay.Let(x, y, x)))
    assert well_formed(relay.Let(x, relay.Function([y], f(x, y)), x))


@pytest.mark.parametrize("n", [20000])
def test_long_and_deep(n):
    x = relay.var("x")
    y = x
    for _ in range(n):
        y = f(y)
    lets = y
    for _ in range(n):
        lets = relay.Let(relay.Var("v"), x, lets)
    assert free_vars(lets) == [x]
    assert well_formed(lets)
    z = relay.var("z")
    assert free_vars(substitute(lets, {x: z})) == [z]


def test_bind_drops_bound_parameters_and_adds_new_free_variables():
    x, y, z = (relay.var(n) for n in "xyz")
    fn = relay.Function([x, y], f(x, y))
    bound = bind(fn, {x: f(z)})
    assert bound.params == (y, z)
    assert structural_equal(bound, relay.Function([y, z], f(f(z), y)))
    assert bind(fn, {}) is fn
    assert bind(f(x), {x: z}).args[0] is z


def test_bind_params_by_name():
    fn = relay.Function([relay.var("a"), relay.var("b")], relay.const(1))
    assert [p.name_hint for p in bind_params_by_name(fn, {"a": 1, "unknown": 2}).params] == ["b"]
    twice = relay.Function([relay.var("a"), relay.var("a")], relay.const(1))
    with pytest.raises(ArgumentError, match="2 parameters named 'a'"):
        bind_params_by_name(twice, {"a": 1})


def test_free_vars_of_parts_agree_with_free_vars():
    from anchorleg.relay.analysis.variables import exprs, free_vars_of_parts

    x, y, a, b, f = (relay.var(n, shape=(2,)) for n in "xyabf")
    inner = relay.Function([a], relay.Let(b, relay.add(a, x), relay.multiply(b, y)))
    root = relay.Let(f, inner, relay.Tuple([relay.Call(f, [x]), relay.If(relay.const(True), y, relay.Call(f, [y])), inner]))
    parts = free_vars_of_parts(root)
    for node in exprs(root):
        assert list(parts[id(node)]) == relay.analysis.free_vars(node)
