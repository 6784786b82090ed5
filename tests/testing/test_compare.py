"""Assertions on arrays, expressions and gradients."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import te, testing
from anchorleg.ir import Range


def test_arrays():
    testing.assert_allclose([1.0, 2.0], np.array([1.0, 2.0 + 1e-9]))
    with pytest.raises(AssertionError, match="shapes differ"):
        testing.assert_allclose(np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(AssertionError):
        testing.assert_allclose([1.0], [1.1], rtol=1e-3)
    testing.assert_allclose([np.nan], [np.nan])


def test_integer_expressions():
    n = te.var("n")
    testing.assert_prim_expr_equal(n + n, n * 2)
    with pytest.raises(ValueError, match="not equal"):
        testing.assert_prim_expr_equal(n + 1, n)
    ranges = {n: Range(0, 10)}
    testing.check_bool_expr_is_true(n < 10, ranges)
    with pytest.raises(AssertionError, match="n = 9"):
        testing.check_bool_expr_is_true(n < 9, ranges)
    testing.check_bool_expr_is_true(n < 9, ranges, cond=n < 5)


def test_gradients():
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    testing.check_numerical_grads(lambda v: np.sum(v ** 3), [x], [3 * x ** 2])
    testing.check_numerical_grads(lambda a, b: np.sum(a * b), {"a": x, "b": x + 1}, {"a": x + 1, "b": x})
    with pytest.raises(AssertionError, match="differs from finite differences"):
        testing.check_numerical_grads(lambda v: np.sum(v ** 3), [x], [2 * x ** 2])
    with pytest.raises(AssertionError, match="shape"):
        testing.check_numerical_grads(lambda v: np.sum(v), [x], [np.ones(2)])
