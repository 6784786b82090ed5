"""The numpy rules of the image operators, and what they refuse."""
from __future__ import annotations

from typing import Any, Callable

import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay.op import image
from anchorleg.support.errors import ArgumentError, TypeMismatchError

from ..op_cases import Case, run_numpy_rule
from .cases import ALL


@pytest.mark.parametrize("each", ALL, ids=repr)
def test_numpy_rule(each: Case) -> None:
    run_numpy_rule(each)


@pytest.mark.parametrize("message, build", [
    ("does not fit", lambda p: image.resize2d(p, (2, 2), layout="NHW")),
    ("fit an axis", lambda p: image.dilation2d(p, relay.var("w", shape=(3, 9, 9)))),
    ("rank 5", lambda p: image.grid_sample(p, relay.var("g", shape=(2, 2, 1, 1)), layout="NCDHW")),
    ("dimension 1 of grid", lambda p: image.grid_sample(p, relay.var("g", shape=(2, 3, 1, 1)))),
])
def test_rejected(message: str, build: Callable[..., Any]) -> None:
    body = build(relay.var("p", shape=(2, 3, 4, 5)))
    with pytest.raises(TypeMismatchError, match=message):
        relay.transform.InferType()(IRModule.from_expr(body))


@pytest.mark.parametrize("build", [lambda p: image.resize2d(p, (2, 2), method="area"), lambda p: image.resize2d(p, (2,)),
                                   lambda p: image.grid_sample(p, p, padding_mode="wrap")])
def test_bad_arguments(build: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError):
        build(relay.var("p", shape=(2, 3, 4, 5)))


def test_size_may_be_an_expression() -> None:
    x, size = relay.var("x", shape=(1, 3, 4, 5)), relay.var("size", shape=(2,), dtype="int64")
    body = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, size], image.resize2d(x, size))))["main"].body
    assert body.op.name == "dyn.image.resize2d" and [isinstance(d, int) for d in body.checked_type.dims] == [True, True, False, False]
