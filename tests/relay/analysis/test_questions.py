"""Features, kinds, counts, call graphs, unmatched cases, scopes, extraction."""
import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.relay import analysis
from anchorleg.relay.analysis import CallGraph, Feature, check_basic_block_normal_form, check_kind, detect_feature, unmatched_cases
from anchorleg.support.errors import ArgumentError, TypeMismatchError

DEPTH = 20000


def test_features():
    x, y = relay.var("x"), relay.var("y")
    shared = x + x
    assert detect_feature(shared * shared) == {Feature.fVar, Feature.fOp, Feature.fCall, Feature.fGraph}
    loop = relay.Let(y, relay.Function([x], y(x)), y)
    assert Feature.fLetRec in detect_feature(loop)
    assert Feature.fLetRec not in detect_feature(relay.Let(y, x, y))
    mod = ir.IRModule.from_expr(relay.Function([x], relay.RefRead(relay.RefCreate(x))))
    assert {Feature.fRefCreate, Feature.fRefRead} <= detect_feature(mod)
    primitive = relay.Function([x], x + x).with_attr("Primitive", 1)
    assert detect_feature(primitive) == {Feature.fFunction}
    with pytest.raises(ArgumentError, match="fLetRec"):
        analysis.check_feature(loop, {Feature.fLet, Feature.fVar, Feature.fFunction, Feature.fCall})


def test_kinds():
    a = relay.TypeVar("a")
    head = relay.GlobalTypeVar("L")
    assert check_kind(relay.FuncType([a, relay.TupleType([relay.TensorType((1,))])], relay.RefType(a), [a])) == relay.TypeKind.Type
    assert check_kind(head(a)) == relay.TypeKind.Type
    assert check_kind(relay.ShapeVar("s")) == relay.TypeKind.ShapeVar
    for bad in (relay.TupleType([relay.ShapeVar("s")]), relay.RefType(head), relay.TypeCall(a, []), relay.FuncType([], relay.ShapeVar("s"))):
        with pytest.raises(TypeMismatchError, match="expected to be of kind"):
            check_kind(bad)
    mod = ir.IRModule()
    mod[head] = relay.TypeData(head, [a], [])
    with pytest.raises(TypeMismatchError, match="takes 1 arguments, got 2"):
        check_kind(head(a, a), mod)


def test_constants():
    assert analysis.check_constant(relay.Tuple([relay.const(1), relay.Tuple([])]))
    assert not analysis.check_constant(relay.Tuple([relay.var("x")]))


def test_operators_layers_and_multiplications():
    x, w = relay.var("x", shape=(1, 8, 16, 16)), relay.var("w", shape=(8, 8, 3, 3))
    conv = lambda e: relay.nn.conv2d(e, w, kernel_size=(3, 3), padding=(1, 1), channels=8)  # noqa: E731
    net = relay.Function([x, w], relay.nn.relu(conv(conv(x)) + conv(x)))
    mod = ir.IRModule.from_expr(net)
    assert analysis.list_op_freqs(mod) == {"nn.conv2d": 3, "add": 1, "nn.relu": 1}
    assert analysis.count_layers(mod, ["nn.conv2d"]) == 2
    assert analysis.count_layers(net, ["nn.relu"]) == 1
    assert analysis.get_total_mac_number(net) == 3 * 8 * 16 * 16 * 9 * 8
    a, b = relay.var("a", shape=(4, 5)), relay.var("b", shape=(6, 5))
    assert analysis.get_total_mac_number(relay.Function([a, b], relay.nn.dense(a, b))) == 4 * 5 * 6
    p, q = relay.var("p", shape=(2, 3, 4)), relay.var("q", shape=(2, 5, 4))
    assert analysis.get_total_mac_number(relay.Function([p, q], relay.nn.batch_matmul(p, q))) == 2 * 3 * 4 * 5
    dynamic = relay.var("d", shape=(relay.Any(), 5))
    with pytest.raises(ArgumentError, match="shape of every tensor"):
        analysis.get_total_mac_number(relay.Function([dynamic, b], relay.nn.dense(dynamic, b)))


def test_weights_that_are_transposed():
    x, w = relay.var("x", shape=(4, 5)), relay.var("w", shape=(5, 6))
    assert analysis.search_fc_transpose(relay.nn.dense(x, relay.transpose(w, [1, 0]))) == ["w"]
    assert analysis.search_fc_transpose(relay.nn.dense(x, relay.transpose(w, [0, 1]))) == []


def test_call_graph():
    x = relay.var("x", shape=())
    mod = ir.IRModule()
    g0, g1, loop = (relay.GlobalVar(n) for n in ("g0", "g1", "loop"))
    mod[g0] = relay.Function([x], x)
    mod[g1] = relay.Function([x], g0(x) + g0(x))
    mod[loop] = relay.Function([x], loop(g1(x)))
    mod["main"] = relay.Function([x], g1(loop(x)))
    graph = CallGraph(mod)
    assert graph.ref_count("g1") == 2 and graph.ref_count(g0) == 1 and graph.ref_count("main") == 0
    assert graph.global_call_count("main") == 2 and graph.global_call_count("g0") == 0
    assert graph.is_recursive("loop") and not graph.is_recursive("g1")
    assert [g.name_hint for g in graph.topological_order()] == ["main", "loop", "g1", "g0"]
    assert graph.reachable(["g1"]) == {g0, g1}
    assert "call site: <g1> calls g0" in str(graph) and "#refs = 2" in graph.print_var("g1")
    with pytest.raises(ArgumentError, match="no function 'other'"):
        graph.ref_count("other")


def _lists():
    mod = ir.IRModule()
    a, head = relay.TypeVar("A"), relay.GlobalTypeVar("List")
    mod[head] = relay.TypeData(head, [a], [relay.Constructor("Cons", [a, head(a)], head), relay.Constructor("Nil", [], head)])
    return mod, *mod.get_type("List")[1:]


def test_unmatched_cases():
    mod, cons, nil = _lists()
    v, any_ = relay.var("v"), relay.PatternWildcard
    make = lambda *patterns: relay.Match(v, [relay.Clause(p, v) for p in patterns])  # noqa: E731
    c = lambda *p: relay.PatternConstructor(cons, p)  # noqa: E731
    n = relay.PatternConstructor(nil)
    shown = lambda match: sorted(str(p) for p in unmatched_cases(match, mod))  # noqa: E731
    assert shown(make()) == ["_"]
    assert shown(make(relay.PatternVar(v))) == []
    assert shown(make(c(any_(), any_()), n)) == []
    assert shown(make(c(any_(), n))) == ["Cons(_, Cons(_, _))", "Nil"]
    assert shown(make(n, c(any_(), n), c(any_(), c(any_(), c(any_(), any_()))))) == ["Cons(_, Cons(_, Nil))"]
    t = relay.PatternTuple
    assert shown(make(t([n, any_()]), t([any_(), n]))) == ["(Cons(_, _), Cons(_, _))"]
    with pytest.raises(ArgumentError, match="does not define the type List"):
        unmatched_cases(make(n))


def test_basic_block_normal_form():
    x, c, y = relay.var("x"), relay.var("c"), relay.var("y")
    shared = x + x
    assert check_basic_block_normal_form(relay.Function([x], shared * shared))
    with pytest.raises(ArgumentError, match="basic block normal form"):
        check_basic_block_normal_form(relay.Function([x, c], relay.If(c, shared, shared * shared)))
    assert check_basic_block_normal_form(relay.Function([x, c], relay.Let(y, shared, relay.If(c, y, y * y))))
    assert check_basic_block_normal_form(relay.Function([x, c], relay.Tuple([shared, relay.If(c, shared, x)])))


@pytest.mark.parametrize("question", [detect_feature, check_basic_block_normal_form, lambda e: analysis.count_layers(e, ["add"])])
def test_twenty_thousand_deep(question):
    x = relay.var("x")
    e = x
    for _ in range(DEPTH):
        e = e + x
    for _ in range(DEPTH):
        e = relay.Let(relay.var("v"), x, e)
    question(relay.Function([x], e))


def test_extraction():
    x = relay.var("x", shape=(4,))
    mod = ir.IRModule.from_expr(relay.Function([x], relay.exp(relay.log(x + relay.const(np.ones(4, "float32"))))))
    found = analysis.extract_fused_functions(mod)
    assert len(found) == 1 and all(f.get_attr("Primitive") for f in found.values())
    part = analysis.extract_intermdeiate_expr(mod, 1)
    assert "log" in str(part) and "exp" not in str(part)
    with pytest.raises(ArgumentError, match="%0 to %2"):
        analysis.extract_intermdeiate_expr(mod, 3)
