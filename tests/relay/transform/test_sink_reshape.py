"""Element-wise operators before reshapes of products."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.ir.structural import assert_structural_equal

X, W, B, R = (relay.var(n, shape=s) for n, s in (("x", (6, 4)), ("w", (8, 4)), ("b", (8,)), ("r", (2, 3, 8))))


def module(body):
    return relay.transform.InferType()(IRModule.from_expr(relay.Function([X, W, B, R], body)))


def sunk(body):
    return relay.transform.SinkReshape()(module(body))


def split(data):
    return relay.reshape(data, [2, 3, 8])


def test_a_chain_with_shared_values_moves_as_a_whole():
    y = relay.add(split(relay.nn.dense(X, W)), B)
    gelu = relay.multiply(y, relay.erf(relay.divide(y, relay.const(1.5))))
    p = relay.add(relay.nn.dense(X, W), B)
    expected = split(relay.multiply(p, relay.erf(relay.divide(p, relay.const(1.5)))))
    assert_structural_equal(relay.transform.DeadCodeElimination()(sunk(gelu)), module(expected))


def test_a_residual_of_the_new_shape_stops_it():
    dense = relay.nn.dense(X, W)
    body = relay.add(relay.add(split(dense), B), R)
    assert_structural_equal(sunk(body), module(relay.add(split(relay.add(dense, B)), R)))


def test_other_reshapes_stay():
    for body in (relay.add(split(relay.tile(X, [1, 2])), B),                      # of no product
                 relay.add(relay.reshape(relay.nn.dense(X, W), [6, 4, 2]), relay.reshape(R, [6, 4, 2])),  # another tensor of the new shape
                 relay.add(relay.reshape(relay.nn.dense(X, W), [2, 24]), relay.const(np.ones(24, "float32"))),  # the last axis changes
                 relay.nn.softmax(split(relay.nn.dense(X, W)))):                    # not element by element
        mod = module(body)
        assert relay.transform.SinkReshape()(mod) is mod


def test_scalars_stop_at_no_reshape():
    body = relay.multiply(relay.reshape(relay.nn.dense(X, W), [6, 4, 2]), relay.const(2.0))
    expected = relay.reshape(relay.multiply(relay.nn.dense(X, W), relay.const(2.0)), [6, 4, 2])
    assert_structural_equal(sunk(body), module(expected))


def test_sizes_that_are_not_known():
    x = relay.var("x", shape=(relay.Any(), 3, 4))

    def plain(y):
        return relay.reshape_like(y, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)

    def typed(body):
        return relay.transform.InferType()(IRModule.from_expr(relay.Function([x, W, B], body)))

    dense = relay.nn.dense(relay.reshape(x, [-1, 4]), W)
    y = relay.add(plain(dense), B)
    moved = relay.add(dense, B)
    got = relay.transform.DeadCodeElimination()(relay.transform.SinkReshape()(typed(relay.multiply(y, relay.tanh(y)))))
    assert_structural_equal(got, typed(plain(relay.multiply(moved, relay.tanh(moved)))))
    other = plain(relay.nn.dense(relay.reshape(x, [-1, 4]), relay.add(W, W)))
    mod = typed(relay.add(plain(dense), other))  # two reshapes, of which the sizes are not compared
    assert relay.transform.SinkReshape()(mod) is mod


def test_the_value_is_the_same():
    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(d) for d in v.type_annotation.dims]).astype("float32") for v in (X, W, B, R)]
    body = relay.add(relay.nn.relu(relay.add(B, split(relay.nn.dense(X, W)))), R)
    got = [relay.create_executor("debug", m).evaluate()(*args).numpy() for m in (module(body), sunk(body))]
    np.testing.assert_allclose(got[0], got[1], rtol=1e-6)


def test_a_corrected_product_counts_as_one():
    dense = relay.subtract(relay.nn.dense(X, W), B)
    assert_structural_equal(sunk(relay.multiply(split(dense), relay.const(0.5))), module(split(relay.multiply(dense, relay.const(0.5)))))
