"""Every case of the tables with shapes known at build time, compiled and run by the graph executor."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg import relay
from anchorleg.relay.transform.fuse_ops import is_static

from .algorithm.cases import ALL as ALGORITHM
from .image.cases import ALL as IMAGE
from .op_cases import Case, check, module
from .transform.cases import ALL as TRANSFORM
from .vision.cases import ALL as VISION

pytest.importorskip("llvmlite")


def _static(each: Case) -> bool:
    return is_static(module(each)["main"].body.checked_type)


def _arrays(result: Any) -> Any:
    return tuple(_arrays(r) for r in result) if isinstance(result, (list, tuple)) else result.numpy()


@pytest.mark.parametrize("each", [c for c in TRANSFORM + ALGORITHM + IMAGE + VISION if _static(c)], ids=repr)
def test_compiled(each: Case) -> None:
    mod = module(each)
    result = relay.create_executor("graph", mod, target="llvm").evaluate()(*each.inputs)
    check(_arrays(result), each.want, mod["main"].body.checked_type)
