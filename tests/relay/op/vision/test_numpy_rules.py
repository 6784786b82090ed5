"""The numpy rules of the operators of object detection, and what they refuse."""
from __future__ import annotations

from typing import Any, Callable

import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay.op import vision
from anchorleg.support.errors import TypeMismatchError

from ..op_cases import Case, run_numpy_rule
from .cases import ALL


@pytest.mark.parametrize("each", ALL, ids=repr)
def test_numpy_rule(each: Case) -> None:
    run_numpy_rule(each)


@pytest.mark.parametrize("message, build", [
    ("rank 3", lambda p: vision.get_valid_counts(p, 0.5)),
    ("stride", lambda p: vision.yolo_reorg(p, 2)),
    ("rois", lambda p: vision.roi_align(p, relay.var("r", shape=(3, 4)), (2, 2), 1.0)),
    ("the number of anchors", lambda p: vision.multibox_transform_loc(relay.var("c", shape=(1, 2, 3)), relay.var("l", shape=(1, 12)), relay.var("a", shape=(1, 4, 4)))),
])
def test_rejected(message: str, build: Callable[..., Any]) -> None:
    body = build(relay.var("p", shape=(1, 3, 4, 4)))
    body = body.astuple() if isinstance(body, relay.TupleWrapper) else body
    with pytest.raises(TypeMismatchError, match=message):
        relay.transform.InferType()(IRModule.from_expr(body))
