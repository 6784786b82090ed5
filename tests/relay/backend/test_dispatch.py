"""Kernels for unknown sizes: the general one, specialised ones, and the choice between them."""
from __future__ import annotations

import threading

import numpy as np
import pytest

import anchorleg as al
from anchorleg import relay
from anchorleg.relay.backend.dispatch import ShapeDispatch, pays, specialize, unknown_dims
from anchorleg.relay.testing import run_infer_type
from anchorleg.support.errors import ArgumentError


def _dense():
    batch = relay.Any()
    x, w = relay.var("x", shape=(batch, 8)), relay.var("w", shape=(5, 8))
    return run_infer_type(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))


def _run(dispatch, rows, seed=0):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(rows, 8)).astype("float32"), rng.normal(size=(5, 8)).astype("float32")
    out = al.nd.empty((rows, 5))
    dispatch(al.nd.array(x), al.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(x @ w.T, 0), rtol=1e-4, atol=1e-5)


def test_what_is_unknown_and_whether_it_pays():
    func = _dense()
    assert len(unknown_dims(func)) == 1 and pays(func)
    x = relay.var("x", shape=(relay.Any(), 3))
    assert not pays(run_infer_type(relay.Function([x], relay.exp(x))))
    y = relay.var("y", shape=(4, 8))
    assert not pays(run_infer_type(relay.Function([y], relay.nn.dense(y, y))))


def test_a_specialised_function_is_static():
    func = _dense()
    static = specialize(func, {unknown_dims(func)[0]: 7})
    assert static.checked_type.ret_type == relay.TensorType((7, 5), "float32")
    assert unknown_dims(static) == [] and unknown_dims(func), "the general function stays as it is"


def test_sizes_given_beforehand_get_their_kernels():
    dispatch = ShapeDispatch(_dense(), "llvm", sizes=[(1,), (16,)], threshold=None)
    assert dispatch.select((1,)).sizes == (1,) and dispatch.select((16,)).sizes == (16,) and dispatch.select((3,)).sizes is None
    for rows in (1, 3, 16, 17):
        _run(dispatch, rows, rows)
    with pytest.raises(ArgumentError, match="sizes of 1 dimensions"):
        dispatch.add((1, 2))


def test_sizes_that_come_back_get_a_kernel_up_to_the_limit():
    dispatch = ShapeDispatch(_dense(), "llvm", threshold=3, limit=2)
    for _ in range(2):
        _run(dispatch, 4)
    assert len(dispatch.variants) == 1
    for rows in (4, 5, 5, 5, 6, 6, 6, 6):
        _run(dispatch, rows)
    assert [v.sizes for v in dispatch.variants] == [None, (4,), (5,)]
    with pytest.raises(ArgumentError, match="limit"):
        dispatch.add((9,))


def test_threads():
    dispatch = ShapeDispatch(_dense(), "llvm", threshold=2)
    failures = []

    def work(seed):
        try:
            for rows in (2, 3, 2, 3, 4):
                _run(dispatch, rows, seed)
        except BaseException as exc:  # noqa: BLE001 (told to the test)
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failures


def test_two_unknown_sizes():
    batch, length = relay.Any(), relay.Any()
    a, b = relay.var("a", shape=(batch, length, 4)), relay.var("b", shape=(batch, 3, 4))
    func = run_infer_type(relay.Function([a, b], relay.nn.batch_matmul(a, b)))
    dispatch = ShapeDispatch(func, "llvm", sizes=[(2, 5)])
    rng = np.random.default_rng(1)
    for n, m in ((2, 5), (3, 1)):
        x, y = rng.normal(size=(n, m, 4)).astype("float32"), rng.normal(size=(n, 3, 4)).astype("float32")
        out = al.nd.empty((n, m, 3))
        dispatch(al.nd.array(x), al.nd.array(y), out)
        np.testing.assert_allclose(out.numpy(), x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-5)
