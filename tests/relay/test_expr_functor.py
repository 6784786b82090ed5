"""Visitors and mutators that users subclass."""
import pytest

from anchorleg import ir, relay
from anchorleg.ir.op import register_op
from anchorleg.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor, MixedModeMutator, MixedModeVisitor
from anchorleg.relay.type_functor import TypeMutator, TypeVisitor
from anchorleg.support.errors import ArgumentError

register_op("test.f")
register_op("test.g")


def f(*args, name="test.f"):
    return relay.Call(ir.Op.get(name), args)


def program():
    x, y, v = relay.var("x"), relay.var("y"), relay.var("v")
    match = relay.Match(x, [relay.Clause(relay.PatternTuple([relay.PatternVar(v)]), f(v))])
    ref = relay.RefCreate(y)
    inner = relay.Let(y, relay.If(x, f(x), relay.const(1)), relay.Tuple([relay.RefWrite(ref, x), relay.RefRead(ref), match]))
    return relay.Function([x], relay.TupleGetItem(relay.Tuple([inner, relay.GlobalVar("g"), relay.Function([], x)]), 0))


class Count(ExprVisitor):
    def __init__(self):
        super().__init__()
        self.ops = []

    def visit_call(self, call):
        self.ops.append(call.op.name)
        super().visit_call(call)


class Swap(ExprMutator):
    def visit_op(self, op):
        return ir.Op.get("test.g") if op.name == "test.f" else op


class Plain(ExprMutator):
    pass


def test_a_visitor_sees_each_expression_once_parents_first():
    x = relay.var("x")
    shared = f(x, name="test.g")
    count = Count()
    count.visit(f(shared, f(shared)))
    assert count.ops == ["test.f", "test.g", "test.f"]


def test_every_kind_is_visited_and_unchanged_programs_keep_their_identity():
    e = program()
    Count().visit(e)
    assert Plain().visit(e) is e
    changed = Swap().visit(e)
    assert changed is not e and "test.f" not in str(changed) and str(changed).count("test.g") == 2


def test_mutators_may_replace_bound_variables():
    class Rename(ExprMutator):
        def visit_var(self, var):
            return self.memo_map.setdefault(var, relay.Var(var.name_hint + "2"))

    e = Rename().visit(program())
    assert e.params[0].name_hint == "x2"
    assert e.body.tuple_value.fields[0].body.fields[2].clauses[0].lhs.patterns[0].var.name_hint == "v2"


def test_mixed_mode():
    class Double(MixedModeMutator):
        def rewrite_call(self, pre, post):
            return relay.Tuple([post, post]) if pre.op.name == "test.f" else post

    out = Double().visit(f(f(relay.var("x"))))
    assert isinstance(out.fields[0].args[0], relay.Tuple)

    class Order(MixedModeVisitor):
        seen = []

        def visit_call(self, call):
            self.seen.append(call.op.name)

    Order().visit(f(f(relay.var("x"), name="test.g")))
    assert Order.seen == ["test.g", "test.f"]


def test_a_functor_asks_for_its_methods():
    with pytest.raises(NotImplementedError):
        ExprFunctor().visit(relay.const(1))
    with pytest.raises(ArgumentError, match="cannot visit a TensorType"):
        ExprVisitor().visit(relay.TensorType((1,)))


@pytest.mark.parametrize("build", [
    lambda e, x: f(e), lambda e, x: f(e, e), lambda e, x: relay.Let(relay.var("v"), x, e), lambda e, x: relay.If(x, e, x),
    lambda e, x: relay.TupleGetItem(relay.Tuple([e]), 0), lambda e, x: relay.RefRead(e)])
def test_programs_twenty_thousand_deep(build):
    x = e = relay.var("x")
    for _ in range(20000):
        e = build(e, x)
    Count().visit(e)
    assert Plain().visit(e) is e
    Swap().visit(e)


def test_type_functors():
    a = relay.TypeVar("a")
    t = relay.FuncType([a, relay.TupleType([relay.RefType(a)])], relay.GlobalTypeVar("L")(a), [a])
    seen = []

    class See(TypeVisitor):
        def visit_type_var(self, tv):
            seen.append(tv)

    See().visit(t)
    assert len(seen) == 4

    class Replace(TypeMutator):
        def visit_type_var(self, tv):
            return tv if tv is not a else relay.scalar_type("int8")

    assert TypeMutator().visit(t) is t
    assert str(Replace().visit(relay.TupleType([a]))) == "(int8,)"
