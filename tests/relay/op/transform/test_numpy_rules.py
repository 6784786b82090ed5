"""The numpy rules of the transform operators, and their result types, on one table of cases."""
from __future__ import annotations

import pytest

from ..op_cases import Case, run_numpy_rule
from .cases import ALL


@pytest.mark.parametrize("each", ALL, ids=repr)
def test_numpy_rule(each: Case) -> None:
    run_numpy_rule(each)
