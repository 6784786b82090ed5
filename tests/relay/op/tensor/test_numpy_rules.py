"""The numpy rules and type relations of the element-wise, converting, creating and reducing operators."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import Any, TensorType
from anchorleg.relay.op.registry import evaluate
from anchorleg.relay.transform.infer_type import infer_type
from anchorleg.support.errors import TypeMismatchError

from ..op_cases import run_numpy_rule
from .cases import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_numpy_rules(family):
    failed = []
    for case in FAMILIES[family]():
        try:
            run_numpy_rule(case)
        except AssertionError as exc:
            failed.append(f"{case}: {exc}")
    assert not failed, f"{len(failed)} cases failed:\n" + "\n".join(failed[:5])


@pytest.mark.parametrize("build, words", [
    (lambda x: relay.sum(x, axis=2), "axis is expected to lie in"),
    (lambda x: relay.sum(x, axis=-3), "axis is expected to lie in"),
    (lambda x: relay.sum(x, exclude=True), "exclude=True needs the axes"),
    (lambda x: relay.argmax(relay.zeros((2, 0), "float32"), axis=1), "no extreme element among none"),
    (lambda x: relay.variance(x, axis=0, with_mean=relay.zeros((2, 1), "float32")), r"shape \(1, 3\), got Tensor\[\(2, 1\)"),
    (lambda x: relay.bitwise_and(x, x), "integers or bool is expected, got float32"),
    (lambda x: relay.exp(relay.cast(x, "int32")), "floating-point numbers is expected, got int32"),
    (lambda x: relay.subtract(relay.cast(x, "bool"), relay.cast(x, "bool")), "cast bool to another type"),
    (lambda x: relay.reinterpret(x, "int8"), "as wide as float32 is expected, got int8"),
    (lambda x: relay.full(x, (2,)), "fill_value is expected to be a scalar"),
    (lambda x: relay.add(relay.Tuple([x]), x), "left operand is expected to be a tensor"),
])
def test_wrong_types_are_told(build, words):
    with pytest.raises(TypeMismatchError, match=words):
        infer_type(build(relay.var("x", shape=(2, 3))))


def test_unknown_dimensions():
    x = relay.var("x", shape=(Any(), 3))
    assert isinstance(infer_type(relay.sum(x, axis=1)).checked_type.dims[0], Any)
    assert infer_type(relay.sum(x, axis=0)).checked_type.dims == (3,)
    assert infer_type(relay.zeros(relay.var("s", shape=(2,), dtype="int64"), "int8")).checked_type.dtype == "int8"
    assert infer_type(relay.zeros(relay.const(np.array([4, 5])), "int8")).checked_type.dims == (4, 5)


def test_same_type_object_is_shared_along_a_chain():
    x = infer_type(relay.var("x", shape=(3,)))
    assert infer_type(relay.exp(x + x)).checked_type is x.checked_type


def test_bfloat16_rounds_once():
    import ml_dtypes

    a = np.array([1.0, 3.0], ml_dtypes.bfloat16)
    got = evaluate("divide", None, [a[:1], a[1:]], TensorType((1,), "bfloat16"))
    assert got.dtype == ml_dtypes.bfloat16 and got[0] == ml_dtypes.bfloat16(1 / 3)


def test_attributes_have_defaults_and_names():
    call = relay.argmax(relay.var("x", shape=(2,)))
    assert call.attrs.keys() == ["axis", "keepdims", "select_last_index", "exclude"]
    assert relay.sum(relay.var("x", shape=(2,))).attrs.axis is None
