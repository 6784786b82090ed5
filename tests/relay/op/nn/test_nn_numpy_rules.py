"""The numpy rule of every operator against another implementation."""
from __future__ import annotations

import cases_conv
import cases_dense
import cases_misc
import cases_pool
import pytest
from nn_harness import assert_close, by_numpy

CASES = [*cases_conv.CASES, *cases_dense.CASES, *cases_pool.CASES, *cases_misc.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_numpy_rule(case):
    got = by_numpy(case)
    if case.ref is not None:
        assert_close(got, case.ref(*case.args), case.tol)
