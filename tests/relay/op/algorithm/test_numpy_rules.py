"""The numpy rules of the ordering operators, and what they refuse."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay import op
from anchorleg.support.errors import ArgumentError, TypeMismatchError

from ..op_cases import Case, run_numpy_rule
from .cases import ALL


@pytest.mark.parametrize("each", ALL, ids=repr)
def test_numpy_rule(each: Case) -> None:
    run_numpy_rule(each)


@pytest.mark.parametrize("message, build", [
    ("more than the 3", lambda p: op.topk(p, 4, ret_type="values")),
    ("axis", lambda p: op.sort(p, 2)),
    ("axis", lambda p: op.argsort(p, -3)),
    ("data type", lambda p: op.searchsorted(p, relay.const(np.array([1], np.int32)))),
])
def test_rejected(message: str, build: object) -> None:
    body = build(relay.var("p", shape=(2, 3)))  # type: ignore[operator]
    with pytest.raises(TypeMismatchError, match=message):
        relay.transform.InferType()(IRModule.from_expr(body))


def test_k_must_be_one_number() -> None:
    with pytest.raises(ArgumentError, match="one number"):
        op.topk(relay.var("p", shape=(2, 3)), relay.const(np.array([1, 2])))
