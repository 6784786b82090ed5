"""The pattern language: matching, rewriting, partitioning."""
import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.relay.dataflow_pattern import (DFPatternCallback, DominatorPattern, dominates, has_attr, has_dtype, has_shape, has_type,
                                              is_constant, is_expr, is_if, is_let, is_op, is_tuple, is_tuple_get_item, is_var, match,
                                              partition, rewrite, wildcard)
from anchorleg.relay.dataflow_pattern import FunctionPattern
from anchorleg.relay.dataflow_pattern.indexed_graph import IndexedGraph
from anchorleg.support.errors import ArgumentError

DEPTH = 6000  # nodes: far beyond what recursion would stand


def var(name, shape=(4, 4), dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def test_leaves():
    x, c = var("x"), relay.const(1.0)
    assert wildcard().match(x) and is_var().match(x) and is_var("x").match(x) and not is_var("y").match(x)
    assert is_constant().match(c) and not is_constant().match(x)
    assert is_expr(c).match(relay.const(1.0)) and not is_expr(c).match(relay.const(2.0))
    assert is_op("add").match(ir.Op.get("add")) and not is_op("add").match(ir.Op.get("subtract"))


def test_calls_and_commutation():
    x, c = var("x"), relay.const(1.0)
    sum_ = is_op("add")(is_var(), is_constant())
    assert sum_.match(x + c) and sum_.match(c + x)
    assert not is_op("subtract")(is_var(), is_constant()).match(c - x)
    assert (is_var() * is_constant()).match(c * x) and (is_var() - is_constant()).match(x - c)
    assert is_op("add")(None).match(x + c) and not is_op("add")(wildcard()).match(x + c)
    a, b, d = wildcard(), wildcard(), wildcard()
    y, z = var("y"), var("z")
    assert (a * b / d).match(x * (y / z)) and ((a / b) * d).match((x * y) / z)


def test_a_pattern_that_occurs_twice_stands_for_one_expression():
    x, y, p = var("x"), var("y"), wildcard()
    assert is_op("add")(p, p).match(x + x)
    assert not is_op("add")(p, p).match(x + y)


def test_structures():
    x, y = var("x"), var("y")
    pair = relay.Tuple([x, y])
    assert is_tuple([is_var("x"), wildcard()]).match(pair) and is_tuple(None).match(pair) and not is_tuple([wildcard()]).match(pair)
    get = relay.TupleGetItem(pair, 1)
    assert is_tuple_get_item(is_tuple(None), 1).match(get) and is_tuple_get_item(wildcard()).match(get)
    assert not is_tuple_get_item(wildcard(), 0).match(get)
    assert is_if(is_var(), wildcard(), wildcard()).match(relay.If(relay.var("c"), x, y))
    assert is_let(is_var("v"), is_var("x"), wildcard()).match(relay.Let(relay.var("v"), x, y))
    assert FunctionPattern([wildcard()], is_op("exp")(wildcard())).match(relay.Function([x], relay.exp(x)))
    assert not FunctionPattern([], wildcard()).match(relay.Function([x], x)) and FunctionPattern(None, wildcard()).match(
        relay.Function([x], x))


def test_alternatives_and_options():
    x, w, b = var("x", (1, 3, 8, 8)), var("w", (4, 3, 3, 3)), var("b", (4,))
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    block = is_op("nn.relu")(conv.optional(lambda p: is_op("nn.bias_add")(p, wildcard())))
    c = relay.nn.conv2d(x, w)
    assert block.match(relay.nn.relu(c)) and block.match(relay.nn.relu(relay.nn.bias_add(c, b))) and not block.match(c)


def test_types_and_attributes():
    x = var("x", (2, 3), "int8")
    assert has_dtype("int8").match(x) and not has_dtype("int32").match(x)
    assert has_shape((2, 3)).match(x) and not has_shape((3, 2)).match(x)
    assert has_type(relay.TensorType((2, 3), "int8")).match(x)
    assert has_dtype("int32", is_op("cast")(wildcard())).match(relay.cast(x, "int32"))
    soft = relay.nn.softmax(var("y"), axis=1)
    assert is_op("nn.softmax")(wildcard()).has_attr({"axis": 1}).match(soft)
    assert not is_op("nn.softmax")(wildcard()).has_attr({"axis": 0}).match(soft)
    assert not is_op("nn.softmax")(wildcard()).has_attr({"nope": 0}).match(soft)
    assert has_attr({"Primitive": 1}).match(relay.Function([x], x).with_attr("Primitive", 1))
    assert is_op("add").has_attr({"TOpPattern": relay.op.OpPattern.BROADCAST}).match(ir.Op.get("add"))


def test_a_wildcard_redirected_later_makes_a_recursive_pattern():
    chain = wildcard()
    chain.redirect_to(is_op("exp")(chain | is_var()))
    x = var("x")
    assert chain.match(relay.exp(relay.exp(x)))


def test_dominators():
    x = var("x")
    diamond = relay.exp(x)
    joined = relay.tanh(diamond) + relay.sigmoid(diamond)
    unary = (is_op("tanh") | is_op("sigmoid"))(wildcard())
    pattern = dominates(is_op("exp")(wildcard()), unary, is_op("add")(wildcard(), wildcard()))
    assert isinstance(pattern, DominatorPattern) and pattern.match(joined)
    assert not pattern.match(relay.tanh(diamond) + x)
    assert is_op("add")(wildcard(), wildcard()).dominates(is_op("exp")(wildcard())).match(joined)


class Twice(DFPatternCallback):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.x = wildcard()
        self.pattern = is_op("add")(self.x, self.x)

    def callback(self, pre, post, node_map):
        return node_map[self.x][0] * relay.const(2.0)


def test_rewriting():
    x = var("x")
    y = x + x
    out = rewrite(Twice(), relay.Function([x], y + y))
    two = relay.const(2.0)
    ir.assert_structural_equal(out, relay.Function([x], (x * two) * relay.const(2.0)))
    untouched = relay.Function([x], x * x)
    assert rewrite([Twice()], untouched) is untouched


def test_rewriting_once_and_for_ever():
    x = var("x")

    class Grow(DFPatternCallback):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.pattern = is_op("tanh")(wildcard())

        def callback(self, pre, post, node_map):
            return relay.exp(post)

    assert str(Grow(rewrite_once=True).rewrite(relay.tanh(x))).count("exp") == 1
    with pytest.raises(ArgumentError, match="100 rounds"):
        Grow().rewrite(relay.tanh(x))


def test_rewriting_with_types():
    class Shape(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True)
            self.pattern = is_op("exp")(wildcard())
            self.seen = []

        def callback(self, pre, post, node_map):
            self.seen.append(pre.checked_type.concrete_shape)
            return post

    rule = Shape()
    rule.rewrite(relay.exp(var("x", (3, 5))))
    assert rule.seen[0] == (3, 5)


def test_partitioning():
    x, w, b = var("x", (1, 3, 8, 8)), var("w", (4, 3, 3, 3)), var("b", (4,))
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    net = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b))
    out = partition(pattern, relay.exp(net), {"Composite": "block"})
    call = out.args[0]
    assert call.op.get_attr("Composite") == "block"
    assert call.op.get_attr("PartitionedFromPattern") == "nn.conv2d_nn.bias_add_nn.relu_"
    assert list(call.args) == [x, w, b] and [p.name_hint for p in call.op.params] == [f"FunctionVar_0_{i}" for i in range(3)]
    assert pattern.partition(net, check=lambda e: False) is not None
    ir.assert_structural_equal(pattern.partition(net, check=lambda e: False), net)


def test_constants_asked_for_stay_inside():
    x = var("x")
    inside = partition(is_op("add")(wildcard(), is_constant()), x + relay.const(1.0))
    outside = partition(is_op("add")(wildcard(), wildcard()), x + relay.const(1.0))
    assert len(inside.args) == 1 and len(outside.args) == 2


def test_values_used_elsewhere_are_not_taken_away():
    x = var("x")
    e = relay.exp(x)
    pattern = is_op("tanh")(is_op("exp")(wildcard()))
    both = relay.Tuple([relay.tanh(e), e])
    ir.assert_structural_equal(partition(pattern, both), both)


def test_post_dominators():
    x = var("x")
    a = relay.exp(x)
    top = relay.tanh(a) + relay.sigmoid(a)
    graph = IndexedGraph(top)
    assert graph[top].dominates(graph[a]) and graph[a].dominates(graph[x])
    assert not graph[x].dominates(graph[a]) and not graph[top.args[0]].dominates(graph[a])


def test_text():
    p = is_op("add")(wildcard(), is_constant() | is_var("b")).has_attr({"k": 1})
    assert str(p) == "is_op(\"add\")(*, (is_constant() | is_var(\"b\"))).has_attr({'k': 1})"


def test_deep_programs_and_patterns():
    x = var("x")
    e = x
    for _ in range(DEPTH // 2):
        e = relay.exp(relay.tanh(e))
    assert match(dominates(is_var(), (is_op("exp") | is_op("tanh"))(wildcard()), is_op("exp")(wildcard())), e)
    pattern = wildcard()
    deep = pattern
    for _ in range(DEPTH // 2):
        deep = is_op("exp")(is_op("tanh")(deep))
    assert deep.match(e)
    out = partition(is_op("exp")(is_op("tanh")(wildcard())), e)
    assert isinstance(out.op, relay.Function)

    class Drop(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("exp")(is_op("tanh")(self.x))

        def callback(self, pre, post, node_map):
            return node_map[self.x][0]

    assert Drop().rewrite(e) is x


def test_scalars_and_arrays_as_expressions():
    c = relay.const(np.arange(3, dtype="float32"))
    assert (is_expr(c) + is_var()).match(relay.const(np.arange(3, dtype="float32")) + var("x", (3,)))
