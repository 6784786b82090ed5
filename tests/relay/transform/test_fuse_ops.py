"""FuseOps and DefuseOps."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import PassContext, get_pass
from anchorleg.relay.transform import DefuseOps, FuseOps, SplitArgs
from anchorleg.relay.analysis.variables import exprs

from .passes import apply, inputs, of, same_values


def groups(mod) -> list[list[str]]:  # noqa: ANN001
    """The operators of each primitive function, inside in evaluation order; the functions sorted."""
    found = [n for n in exprs(mod["main"]) if isinstance(n, relay.Function) and n.get_attr("Primitive")]
    return sorted([c.op.name for c in exprs(f.body) if isinstance(c, relay.Call)] for f in found)


def conv_block(x: relay.Expr) -> relay.Expr:
    w = relay.var("w", shape=(4, 3, 3, 3))
    return relay.nn.relu(relay.add(relay.nn.conv2d(x, w, padding=(1, 1)), relay.const(1.0)))


def test_what_follows_a_convolution_joins_it() -> None:
    mod = FuseOps(2)(of(conv_block(relay.var("x", shape=(1, 3, 8, 8)))))
    assert groups(mod) == [["nn.conv2d", "add", "nn.relu"]]


def test_level_zero_gives_each_operator_its_own_function() -> None:
    mod = FuseOps(0)(of(conv_block(relay.var("x", shape=(1, 3, 8, 8)))))
    assert groups(mod) == [["add"], ["nn.conv2d"], ["nn.relu"]]


def test_two_convolutions_never_share_a_function() -> None:
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("v", shape=(3, 4, 1, 1))
    mod = FuseOps(2)(of(relay.nn.conv2d(conv_block(x), w)))
    assert groups(mod) == [["nn.conv2d"], ["nn.conv2d", "add", "nn.relu"]]


def test_a_diamond_is_fused_at_its_post_dominator() -> None:
    x = relay.var("x", shape=(4,))
    y = relay.exp(x)
    mod = FuseOps(2)(of(relay.add(relay.tanh(y), relay.sqrt(y))))
    assert len(groups(mod)) == 1 and sorted(groups(mod)[0]) == ["add", "exp", "sqrt", "tanh"]


def test_a_value_with_a_reader_outside_is_not_swallowed() -> None:
    x = relay.var("x", shape=(4,))
    y = relay.exp(x)
    mod = FuseOps(2)(of(relay.Tuple([relay.tanh(y), y])))
    assert ["exp"] in groups(mod) and ["tanh"] in groups(mod)


def test_elementwise_joins_the_reduction_behind_it_but_not_the_one_before() -> None:
    x = relay.var("x", shape=(4, 5))
    mod = FuseOps(2)(of(relay.exp(relay.sum(relay.tanh(x), axis=1))))
    assert groups(mod) == [["exp"], ["tanh", "sum"]]


def test_injective_producers_are_fused_into_tuples_that_are_concatenated() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    mod = FuseOps(2)(of(relay.concatenate((relay.tanh(x), relay.exp(y)), axis=1)))
    assert len(groups(mod)) == 1


def test_max_depth_is_honoured() -> None:
    x = relay.var("x", shape=(4,))
    y: relay.Expr = x
    for _ in range(10):
        y = relay.tanh(y)
    with PassContext(config={"relay.FuseOps.max_depth": 4}):
        found = groups(FuseOps(2)(of(y)))
    assert max(map(len, found)) <= 4 and sum(map(len, found)) == 10


def test_reshapes_alone_are_marked() -> None:
    mod = FuseOps(2)(of(relay.reshape(relay.var("x", shape=(2, 3)), (6,))))
    (func,) = [n for n in exprs(mod["main"]) if isinstance(n, relay.Function) and n.get_attr("Primitive")]
    assert func.get_attr("relay.reshape_only") == 1


def test_the_input_module_is_not_changed() -> None:
    x = relay.var("x", shape=(10, 20))
    mod = of(relay.squeeze(relay.exp(relay.add(x, relay.const(1.0)))))
    text = mod.astext()
    fused = FuseOps(2)(mod)
    assert mod.astext() == text and len(groups(fused)) == 1


def test_running_twice_is_harmless() -> None:
    once = apply(FuseOps(3), of(conv_block(relay.var("x", shape=(1, 3, 8, 8)))))
    assert FuseOps(3)(once) is once or structural_equal(FuseOps(3)(once), once)


@pytest.mark.parametrize("level", [0, 1, 2, 4])
def test_values_stay(level: int) -> None:
    x = relay.var("x", shape=(1, 3, 8, 8))
    same_values(FuseOps(level), of(relay.nn.softmax(relay.sum(conv_block(x), axis=[2, 3]))))


def test_defuse_restores_the_graph() -> None:
    mod = of(conv_block(relay.var("x", shape=(1, 3, 8, 8))))
    assert structural_equal(get_pass("InferType")(DefuseOps()(FuseOps(2)(mod))), mod)


def test_a_chain_of_twenty_thousand_operators() -> None:
    y: relay.Expr = relay.var("x", shape=(2,))
    for _ in range(20000):
        y = relay.negative(y)
    found = groups(FuseOps(2)(of(y)))
    assert sum(map(len, found)) == 20000 and max(map(len, found)) == 256


@pytest.mark.parametrize("level", [0, 2])
def test_what_keeps_operators_apart_is_gone_afterwards(level: int) -> None:
    x = relay.var("x", shape=(4,))
    mod = same_values(FuseOps(level), of(relay.exp(relay.annotation.stop_fusion(relay.add(x, relay.const(1.0))))))
    assert groups(mod) == [["add"], ["exp"]] and "stop_fusion" not in mod.astext()


def test_concatenations_in_steps_run() -> None:
    parts = [relay.var(f"x{i}", shape=(2, 3)) for i in range(5)]
    mod = of(relay.Function(parts, relay.exp(relay.concatenate(parts, axis=1))))
    args = inputs(mod)
    after = apply(SplitArgs(3), mod)
    got = relay.create_executor("graph", mod=after, target="llvm").evaluate()(*args).numpy()
    np.testing.assert_allclose(got, np.exp(np.concatenate(args, axis=1)), rtol=1e-5)


def test_fields_of_tuples_alone_make_no_function() -> None:
    x = relay.var("x", shape=(4,))
    mod = same_values(FuseOps(1), of(relay.Tuple([relay.TupleGetItem(relay.Tuple([relay.exp(x), x]), 0), x])))
    assert all(n.get_attr("Primitive") for n in exprs(mod["main"].body) if isinstance(n, relay.Function))


def test_a_long_chain_whose_every_value_is_read_at_the_end() -> None:
    """Each value's readers meet at the far end: looking at all that lies between, for each, would take quadratic time."""
    x = relay.var("x", shape=(1,))
    values: list[relay.Expr] = [x]
    for _ in range(4000):
        values.append(relay.negative(values[-1]))
    found = groups(FuseOps(2)(of(relay.concatenate(values, axis=0))))
    assert sum(f.count("negative") for f in found) >= 4000
