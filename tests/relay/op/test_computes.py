"""Every case of the tables, through the operator's own compute and schedule, under the definition of the loop language."""
from __future__ import annotations

import pytest

from anchorleg import relay

from .algorithm.cases import ALL as ALGORITHM
from .image.cases import ALL as IMAGE
from .op_cases import Case, module, run_compute
from .transform.cases import ALL as TRANSFORM
from .vision.cases import ALL as VISION


def _one_call(each: Case) -> bool:
    body = module(each)["main"].body
    call = body.tuple_value if isinstance(body, relay.TupleGetItem) else body
    return isinstance(call, relay.Call)


@pytest.mark.parametrize("each", [c for c in TRANSFORM + ALGORITHM + IMAGE + VISION if _one_call(c)], ids=repr)
def test_compute(each: Case) -> None:
    run_compute(each)
