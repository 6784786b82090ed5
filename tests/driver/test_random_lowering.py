"""Lowering with all passes keeps the meaning: random schedules with marked loops, interpreted and compiled, against numpy."""
from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg.driver import build, lower
from anchorleg.runtime.ndarray import array
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.interpreter import run_primfunc

from ..te.lower.loops import GRAPHS, Graph, mark_loops, random_schedule


def scheduled(seed: int, make: object) -> tuple[Graph, object]:
    rnd = random.Random(seed)
    g = make(*(rnd.choice([1, 2, 3, 5, 7, 16]) for _ in range(3)))  # type: ignore[operator]
    s = random_schedule(rnd, g)
    mark_loops(rnd, s)
    return g, s


def data(g: Graph, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.RandomState(seed % 1000)
    return [rng.rand(*[int(d) for d in t.shape]).astype("float32") for t in g.inputs], np.full([int(d) for d in g.output.shape], np.nan, "float32")


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), make=st.sampled_from(GRAPHS))
def test_lowered_function_computes_the_graph(seed: int, make: object) -> None:
    g, s = scheduled(seed, make)
    try:
        func = lower(s, [*g.inputs, g.output])["main"]
    except ArgumentError as e:
        assert "outside of that loop" in str(e)
        return
    arrays, out = data(g, seed)
    run_primfunc(func, *arrays, out)
    np.testing.assert_allclose(out, g.meaning(*arrays), rtol=1e-4, atol=1e-4)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), make=st.sampled_from(GRAPHS))
def test_compiled_function_computes_the_graph(seed: int, make: object) -> None:
    g, s = scheduled(seed, make)
    try:
        module = build(s, [*g.inputs, g.output], target="llvm", name="f")
    except ArgumentError as e:
        assert "outside of that loop" in str(e)
        return
    arrays, out = data(g, seed)
    given_arrays = [array(x) for x in (*arrays, out)]
    module["f"](*given_arrays)
    np.testing.assert_allclose(given_arrays[-1].numpy(), g.meaning(*arrays), rtol=1e-4, atol=1e-4)
