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
                 relay.nn.relu(relay.reshape(relay.nn.dense(X, W), [6, 4, 2])),     # the last axis changes
                 relay.nn.softmax(split(relay.nn.dense(X, W)))):                    # not element by element
        mod = module(body)
        assert relay.transform.SinkReshape()(mod) is mod


def test_the_value_is_the_same():
    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(d) for d in v.type_annotation.dims]).astype("float32") for v in (X, W, B, R)]
    body = relay.add(relay.nn.relu(relay.add(B, split(relay.nn.dense(X, W)))), R)
    got = [relay.create_executor("debug", m).evaluate()(*args).numpy() for m in (module(body), sunk(body))]
    np.testing.assert_allclose(got[0], got[1], rtol=1e-6)
