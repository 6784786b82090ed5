"""Kinds of faults in folding, simplification and fusion."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, assert_structural_equal
from anchorleg.ir.transform import get_pass

from .running import built, everywhere, function, interpreted


def test_casts_merge_only_where_nothing_is_lost():
    x = relay.var("x", shape=(1,), dtype="int64")
    func = function(relay.cast(relay.cast(x, "bool"), "int32"))
    everywhere(func, np.array([-1], "int64"), wanted=np.array([1], "int32"))
    narrow = relay.var("y", shape=(3,), dtype="float32")
    everywhere(function(relay.cast(relay.cast(narrow, "int8"), "float32")), np.array([1.9, -1.9, 100.5], "float32"),
               wanted=np.array([1, -1, 100], "float32"))


@pytest.mark.parametrize("op", [relay.tanh, relay.sigmoid, relay.exp, relay.erf, relay.nn.relu])
def test_nan_stays_nan_at_every_level(op):
    x = relay.var("x", shape=(17,))
    data = np.full(17, np.nan, "float32")
    for level in range(5):
        assert np.isnan(built(function(op(x)), data, level=level)[0]).all(), level
    assert np.isnan(interpreted(function(op(x)), data)).all()


def test_fusing_leaves_its_input_as_it_was():
    x = relay.var("x", shape=(10, 20))
    mod = get_pass("InferType")(IRModule.from_expr(function(relay.squeeze(relay.exp(x + relay.const(1.0))))))
    copy = relay.parse(mod.astext())
    fused = relay.transform.FuseOps(2)(mod)
    assert_structural_equal(mod, copy)
    assert fused["main"].body.op.get_attr("Primitive") == 1 and not relay.analysis.free_vars(fused["main"].body.op)


def test_a_kernel_that_only_forwards_its_argument():
    x, y, z = (relay.var(n, shape=(16,)) for n in "xyz")
    same = relay.Function([x], relay.cast(x, "float32")).with_attr("Primitive", 1)
    pair = relay.Function([y], relay.Tuple([y, y + relay.const(3.14)])).with_attr("Primitive", 1)
    both = relay.Call(pair, [z])
    t = relay.var("t")
    body = relay.Let(t, both, relay.Call(same, [relay.TupleGetItem(t, 0) + relay.TupleGetItem(t, 1)]))
    data = np.arange(16, dtype="float32")
    np.testing.assert_allclose(built(function(body, z), data, level=2)[0], 2 * data + 3.14, rtol=1e-6)


def test_fusing_before_building_does_no_harm():
    a, v = relay.var("a", shape=(), dtype="uint64"), relay.var("v", shape=(9, 4, 10), dtype="uint64")
    mod = get_pass("InferType")(IRModule.from_expr(function(relay.Tuple([relay.zeros_like(a) * v]), a, v)))
    fused = relay.transform.FuseOps(3)(mod)
    (got,) = built(fused, np.uint64(3), np.ones((9, 4, 10), "uint64"))
    assert got.dtype == np.uint64 and got.shape == (9, 4, 10) and not got.any()


def test_a_let_used_twice_is_bound_before_both_uses():
    x = relay.var("x")
    let = relay.Let(x, relay.const(1) + relay.const(1), x)
    mod = get_pass("InferType")(IRModule.from_expr(relay.Function([], let * let)))
    normal = get_pass("InferType")(relay.transform.ToANormalForm()(mod))
    assert relay.analysis.well_formed(normal["main"])
    assert interpreted(normal["main"]) == 4


def test_pool_after_dequantising_rounds_once():
    x = relay.var("x", shape=(1, 1, 3, 3), dtype="int8")
    wide = relay.qnn.op.dequantize(x, relay.const(2.0), relay.const(-12))
    pooled = relay.nn.avg_pool2d(wide, pool_size=(3, 3))
    func = function(relay.qnn.op.quantize(pooled, relay.const(0.5), relay.const(10), out_dtype="int8"))
    data = np.array([[[[-12, -11, -12], [-10, -12, -11], [-12, -11, -13]]]], "int8")
    wanted = np.clip(np.round((2.0 * (data.astype("float32") + 12)).mean() / 0.5) + 10, -128, 127)
    assert abs(int(interpreted(func, data).ravel()[0]) - wanted) <= 1


def test_quantising_clips_before_it_converts():
    x = relay.var("x", shape=(2,))
    for dtype, wanted in (("uint8", [255, 0]), ("int8", [127, -128])):
        func = function(relay.qnn.op.quantize(x, relay.const(1.0), relay.const(0), out_dtype=dtype))
        everywhere(func, np.array([1e10, -1e10], "float32"), wanted=np.array(wanted, dtype), levels=(0, 3))
