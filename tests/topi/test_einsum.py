"""Einstein's sums of tensors whose sizes are known, and of such as come with the arguments."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import te, topi
from anchorleg.driver.build_module import build
from anchorleg.runtime.ndarray import array
from anchorleg.support.errors import ArgumentError


def run(equation: str, shapes: list[tuple[Any, ...]], arrays: list[np.ndarray]) -> np.ndarray:
    operands = [te.placeholder(s, name=f"p{i}") for i, s in enumerate(shapes)]
    result = topi.einsum(equation, *operands)
    kernel = build(te.create_schedule([result.op]), [*operands, result], "llvm")
    out = array(np.full(np.einsum(equation, *arrays).shape, 7, "float32"))
    kernel(*map(array, arrays), out)
    return out.numpy()


@pytest.mark.parametrize("equation, shapes", [
    ("ii", [(5, 5)]), ("ij->ji", [(2, 3)]), ("...j, j", [(5, 5), (5,)]), ("..., ...", [(), (2, 3)]), ("ij, ij -> i", [(1, 4), (2, 4)]),
    ("...ik, ...jk, ...hk -> i...jh", [(3, 4, 4), (1, 5, 3, 8, 4), (2, 5, 3, 6, 4)]), ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
])
def test_known_sizes(equation, shapes):
    arrays = [np.random.default_rng(i).standard_normal(s).astype("float32") for i, s in enumerate(shapes)]
    np.testing.assert_allclose(run(equation, shapes, arrays), np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("left, right", [((2, 3), (3, 4)), ((2, 3), (1, 4)), ((2, 1), (3, 4))])
def test_sizes_from_the_arguments(dtype, left, right):
    k, j, n = (te.var(name, dtype) for name in "kjn")
    arrays = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in (left, right)]
    np.testing.assert_allclose(run("ij,jk->ik", [(2, k), (j, n)], arrays), np.einsum("ij,jk->ik", *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("equation, shapes, text", [
    ("ij,jk->ik", [(2, 3), (4, 4)], "'j' has the sizes"), ("ii", [(1, 3)], "one operand has the label 'i'"), ("ij", [(3,)], "2 labels"),
    ("i,j", [(3,)], "does not fit 1 operands"), ("i..j", [(3, 3)], "does not fit"), ("ij->ii", [(3, 3)], "occur twice"), ("...->", [(3,)], "no '...'"),
])
def test_what_does_not_fit_is_refused(equation, shapes, text):
    with pytest.raises(ArgumentError, match=text):
        topi.einsum(equation, *(te.placeholder(s) for s in shapes))
