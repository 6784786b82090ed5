"""Type inference: what it finds, what it fills in, what it leaves alone, and what it says when types do not fit."""
from __future__ import annotations

import pytest

from anchorleg import relay
from anchorleg.ir import Any, GlobalVar, IRModule, Op, Span, TensorType, TupleType
from anchorleg.ir.transform import get_pass
from anchorleg.relay import (Call, Clause, Constructor, Function, GlobalTypeVar, If, Let, Match, PatternConstructor, PatternTuple,
                             PatternVar, PatternWildcard, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, TypeVar)
from anchorleg.relay.adt import TypeData
from anchorleg.relay.op.type_relations import broadcast_shapes, show_dims
from anchorleg.relay.transform.infer_type import InferType, InferTypeLocal, infer_type
from anchorleg.support.errors import TypeMismatchError, UnsupportedOpError

F32 = TensorType((), "float32")


def infer(body, *params, mod=None):
    """The inferred ``main`` of a module."""
    mod = mod or IRModule()
    mod["main"] = Function(params, body)
    return InferType()(mod)["main"]


def dims(t):
    return show_dims(t.dims)


def test_broadcast_and_return_type_filled_in():
    x, y = relay.var("x", shape=(3, 1)), relay.var("y", shape=(2, 1, 4))
    main = infer(x + y, x, y)
    assert dims(main.ret_type) == "(2, 3, 4)" and main.ret_type.dtype == "float32"
    assert main.checked_type.arg_types[0] is x.type_annotation


@pytest.mark.parametrize("a, b, want", [((3,), (), "(3,)"), ((Any(),), (1,), "(?,)"), ((Any(),), (5,), "(5,)"), ((0,), (1,), "(0,)"),
                                        ((Any(), 1), (Any(),), "(?, ?)"), ((2, 1), (1, 3), "(2, 3)")])
def test_broadcast_shapes(a, b, want):
    assert show_dims(broadcast_shapes(a, b)) == want and show_dims(broadcast_shapes(b, a)) == want


def test_second_run_gives_the_same_module():
    x = relay.var("x", shape=(3,))
    first = InferType()(IRModule.from_expr(Function([x], x + x)))
    assert InferType()(first) is first
    assert get_pass("InferType")(first) is first


def test_input_module_is_not_changed():
    x = relay.var("x", shape=(3,))
    mod = IRModule.from_expr(Function([x], x + x))
    before = mod["main"]
    InferType()(mod)
    assert mod["main"] is before and before.ret_type is None


@pytest.mark.parametrize("order", [("F1", "main"), ("main", "F1")])
def test_functions_in_any_order_without_annotations(order):
    x1, x2 = relay.var("x1", shape=(), dtype="float64"), relay.var("x2")
    callee = GlobalVar("F1")
    bodies = {"F1": Function([x1], x1), "main": Function([x2], callee(x2))}
    mod = IRModule()
    for name in order:
        mod[callee if name == "F1" else name] = bodies[name]
    got = InferType()(mod)
    assert got["main"].ret_type.dtype == got["F1"].ret_type.dtype == "float64"
    assert got["main"].params[0].type_annotation.dtype == "float64"


def test_mutual_recursion():
    even, odd = GlobalVar("even"), GlobalVar("odd")
    mod = IRModule()
    for me, other in ((even, odd), (odd, even)):
        n = relay.var("n", shape=(), dtype="int32")
        step = other(n - relay.const(1))
        mod[me] = Function([n], If(relay.equal(n, relay.const(0)), relay.const(True), step))
    got = InferType()(mod)
    assert got["even"].ret_type.dtype == got["odd"].ret_type.dtype == "bool"


def test_caller_changes_when_callee_changes():
    f = GlobalVar("f")
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = IRModule()
    mod[f], mod["main"] = Function([x], x), Function([y], f(y))
    mod = InferType()(mod)
    x2 = relay.var("x", shape=(2,))
    other = mod.copy()
    other["f"] = Function([x2], relay.cast(x2, "int8"))
    with pytest.raises(TypeMismatchError, match="the function's result is expected to have the type Tensor.*float32"):
        InferType()(other)  # main still declares the old result
    fixed = other.copy()
    fixed["main"] = mod["main"].replace(ret_type=None)
    assert InferType()(fixed)["main"].ret_type.dtype == "int8"
    assert InferType()(mod)["main"].ret_type.dtype == "float32"


def test_generic_function_at_two_types():
    t = TypeVar("t")
    a = relay.var("a", t)
    identity = Function([a], a, t, [t])
    f = relay.var("f")
    body = Let(f, identity, Tuple([f(relay.const(1.0)), f(relay.const(True))]))
    main = infer(body)
    assert [x.dtype for x in main.ret_type.fields] == ["float32", "bool"]
    assert main.body.body.fields[0].type_args[0].dtype == "float32"


def test_recursive_closure():
    loop, n = relay.var("loop"), relay.var("n", shape=(), dtype="int32")
    body = If(relay.less(n, relay.const(10)), loop(n + relay.const(1)), n)
    main = infer(Let(loop, Function([n], body), loop(relay.const(0))))
    assert main.ret_type.dtype == "int32" and main.body.var.type_annotation is not None


def test_argument_inferred_backwards_through_a_closure():
    f, x = relay.var("f"), relay.var("x", shape=(4,))
    body = Call(Function([f], f(x)), [Function([relay.var("y")], relay.const(1.0))])
    main = infer(body, x)
    assert main.body.op.params[0].type_annotation.arg_types[0].dims == (4,)
    assert main.body.args[0].params[0].type_annotation.dims == (4,)


def test_references():
    r = relay.var("r")
    main = infer(Let(r, RefCreate(relay.const(1.0)), Tuple([RefWrite(r, relay.const(2.0)), RefRead(r)])))
    assert isinstance(main.ret_type.fields[0], TupleType) and main.ret_type.fields[1].dtype == "float32"


def _list_type(mod):
    name, a = GlobalTypeVar("List"), TypeVar("a")
    nil, cons = Constructor("Nil", [], name), Constructor("Cons", [a, name(a)], name)
    mod.add_type_def(name, TypeData(name, [a], [nil, cons]))
    return name, nil, cons


def test_match_with_nested_patterns():
    mod = IRModule()
    name, nil, cons = _list_type(mod)
    x, h, g = relay.var("x", name(F32)), relay.var("h"), relay.var("g")
    second = PatternConstructor(cons, [PatternVar(h), PatternConstructor(cons, [PatternVar(g), PatternWildcard()])])
    body = Match(x, [Clause(second, h + g), Clause(PatternWildcard(), relay.const(0.0))])
    main = infer(body, x, mod=mod)
    assert main.ret_type.dtype == "float32"
    assert main.body.clauses[0].lhs.patterns[0].var.type_annotation.dtype == "float32"


def test_recursion_over_a_data_type():
    mod = IRModule()
    name, nil, cons = _list_type(mod)
    length, xs, rest, a = GlobalVar("length"), relay.var("xs"), relay.var("rest"), TypeVar("b")
    xs = relay.var("xs", name(a))
    more = Clause(PatternConstructor(cons, [PatternWildcard(), PatternVar(rest)]), length(rest) + relay.const(1))
    mod[length] = Function([xs], Match(xs, [Clause(PatternConstructor(nil), relay.const(0)), more]),
                           TensorType((), "int32"), [a])
    main = infer(length(cons(relay.const(2.0), nil())), mod=mod)
    assert main.ret_type.dtype == "int32"


def test_tuple_pattern():
    p, a = relay.var("p", TupleType([F32, TensorType((2,), "int8")])), relay.var("a")
    main = infer(Match(p, [Clause(PatternTuple([PatternWildcard(), PatternVar(a)]), a)]), p)
    assert main.ret_type.dtype == "int8"


def test_incomplete_match_is_refused_unless_it_says_so():
    mod = IRModule()
    name, nil, cons = _list_type(mod)
    x = relay.var("x", name(F32))
    clause = Clause(PatternConstructor(cons, [PatternWildcard(), PatternConstructor(nil)]), relay.const(1.0))
    assert infer(Match(x, [clause], complete=False), x, mod=mod.copy()).ret_type.dtype == "float32"
    with pytest.raises(TypeMismatchError, match=r"does not handle .*Nil.*add a clause"):
        infer(Match(x, [clause]), x, mod=mod.copy())


def test_branches_of_known_and_unknown_size():
    c, x, y = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(3,)), relay.var("y", shape=(Any(),))
    assert dims(infer(If(c, x, y), c, x, y).ret_type) == "(?,)"


def test_operator_as_a_value():
    f, x = relay.var("f"), relay.var("x", shape=(3,))
    assert infer(Let(f, Op.get("exp"), f(x)), x).ret_type.dims == (3,)


def test_single_expressions_are_typed_step_by_step():
    x = infer_type(relay.var("x", shape=(3,)))
    for _ in range(3):
        x = infer_type(relay.exp(x))
    assert InferTypeLocal(relay.cast(x, "int32")).dtype == "int32"


@pytest.mark.parametrize("make", ["calls", "lets", "tuples", "functions"])
def test_depth(make):
    x, n = relay.var("x", shape=(2,)), 20_000
    body = x
    if make == "calls":
        for _ in range(n):
            body = relay.exp(body)
    elif make == "lets":
        vs = [x] + [relay.var(f"v{i}") for i in range(n)]
        body = vs[-1]
        for i in reversed(range(n)):
            body = Let(vs[i + 1], relay.exp(vs[i]), body)
    elif make == "tuples":
        for _ in range(n):
            body = Tuple([body])
        for _ in range(n):
            body = TupleGetItem(body, 0)
    else:
        for _ in range(2000):
            body = Call(Function([], body), [])
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    assert mod["main"].ret_type.dims == (2,) and InferType()(mod) is mod


def test_sharing_stays_linear():
    x = relay.var("x", shape=())
    body = x
    for _ in range(60):
        body = body + body
    for _ in range(60):
        body = Tuple([body, body])
    for _ in range(60):
        body = TupleGetItem(body, 0)
    assert infer(body, x).ret_type.dims == ()


# -- errors ---------------------------------------------------------------------------------------

def error_of(body, *params):
    with pytest.raises(TypeMismatchError) as found:
        infer(body, *params)
    return str(found.value)


def test_error_shows_operator_types_line_caret_and_origin():
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(4,))
    text = error_of(Call(Op.get("add"), [a, b], span=Span("conv1/add")), a, b)
    assert "in @main: add: Invalid broadcast shapes (3,) and (4,)" in text
    assert "| add(%a: Tensor[(3,), float32], %b: Tensor[(4,), float32])\n  | ^^^\n  from conv1/add" in text


def test_every_error_is_told():
    a, b, c = relay.var("a", shape=(3,)), relay.var("b", shape=(4,)), relay.var("c", shape=(3,), dtype="int32")
    text = error_of(Tuple([a + b, a + c, relay.exp(c), Call(Op.get("add"), [a])]), a, b, c)
    assert text.startswith("4 type errors")
    assert "got float32 and int32" in text and "a tensor of floating-point numbers is expected, got int32" in text
    assert "2 arguments are expected (lhs, rhs), got 1" in text


def test_an_error_is_told_once():
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(4,))
    assert "type errors" not in error_of(relay.exp(relay.exp(a + b)), a, b)


def test_nothing_is_written_when_types_do_not_fit():
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(4,))
    good, bad = relay.exp(a), a + b
    error_of(Tuple([good, bad]), a, b)
    assert good.checked_type_ is None


def test_unknown_variable_is_named():
    x = relay.var("mystery")
    assert "%mystery cannot be inferred" in error_of(x, x)


@pytest.mark.parametrize("make, words", [
    (lambda x: TupleGetItem(x, 0), "a tuple is expected"),
    (lambda x: TupleGetItem(Tuple([x]), 1), "field 1 does not exist: the tuple has 1 fields"),
    (lambda x: If(x, x, x), "the condition is expected to have the type Tensor[(), bool]"),
    (lambda x: Call(x, [x]), "expected to be a function"),
    (lambda x: RefRead(x), "what is read is expected"),
    (lambda x: Let(relay.var("y", shape=(5,)), x, x), "the value of %y is expected"),
    (lambda x: Call(GlobalVar("nowhere"), [x]), "@nowhere is not known"),
    (lambda x: Call(Function([relay.var("p", shape=(9,))], x), [x]), "argument 0 is expected to have the type Tensor[(9,)"),
    (lambda x: Call(Function([], x), [x]), "0 arguments are expected, got 1"),
])
def test_errors_of_each_kind_of_expression(make, words):
    x = relay.var("x", shape=(3,))
    assert words in error_of(make(x), x)


def test_operator_without_relation():
    from anchorleg.ir.op import register_op

    register_op("test.no_relation").set_num_inputs(1)
    with pytest.raises(UnsupportedOpError, match="has no type relation"):
        infer(Call(Op.get("test.no_relation"), [relay.const(1.0)]))
