"""Any schedule computes what the graph says: random schedules with odd extents against numpy."""
from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg.support.errors import ArgumentError
from anchorleg.te.lower.prim_func import schedule_to_prim_func
from anchorleg.tir.interpreter import run_primfunc

from .loops import GRAPHS, Graph, mark_loops, random_schedule


def check(func: object, g: Graph, seed: int) -> None:
    rng = np.random.RandomState(seed % 1000)
    arrays = [rng.rand(*[int(d) for d in t.shape]).astype("float32") for t in g.inputs]
    out = np.full([int(d) for d in g.output.shape], np.nan, "float32")
    run_primfunc(func, *arrays, out)
    np.testing.assert_allclose(out, g.meaning(*arrays), rtol=1e-4, atol=1e-4)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), make=st.sampled_from(GRAPHS))
def test_random_schedule_computes_the_graph(seed: int, make: object) -> None:
    rnd = random.Random(seed)
    g = make(*(rnd.choice([1, 2, 3, 5, 7]) for _ in range(3)))  # type: ignore[operator]
    s = random_schedule(rnd, g)
    mark_loops(rnd, s)
    try:
        func = schedule_to_prim_func(s, [*g.inputs, g.output])
    except ArgumentError as e:
        assert "outside of that loop" in str(e)
        return
    check(func, g, seed)


@pytest.mark.parametrize("make", GRAPHS, ids=lambda f: f.__name__)
def test_default_schedule_computes_the_graph(make: object) -> None:
    from anchorleg import te

    g = make(3, 5, 4)  # type: ignore[operator]
    check(schedule_to_prim_func(te.create_schedule(g.output.op), [*g.inputs, g.output]), g, 0)
