"""Register tiles over an axis whose extent is not known."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import build, lower, te
from anchorleg.ir.visit import post_order
from anchorleg.runtime import ndarray
from anchorleg.tir import stmt as ts

RNG = np.random.default_rng(2)
TILE, TERMS = 4, 8


def tiled(padded: bool) -> tuple[Any, list[Any]]:
    """Sums over rows of a matrix of unknown width, in tiles of columns; ``padded``: of a copy with a column of zeros at each side."""
    n = te.size_var("n", "int64")
    x, w = te.placeholder((TERMS, n), name="x"), te.placeholder((TERMS, 16), name="w")
    source: Any = x
    if padded:
        source = te.compute((TERMS, n + 2), lambda k, j: te.if_then_else(te.all(j >= 1, j <= n), x(k, j - 1), 0.0), name="padded")
    k = te.reduce_axis((0, TERMS), name="k")
    total = te.compute((n, 16), lambda j, lane: te.sum(source(k, j) * w(k, lane), axis=k), name="total")
    out = te.compute((n, 16), lambda j, lane: total(j, lane) + 1.0, name="out")
    s = te.create_schedule(out.op)
    jo, ji = s[out].split(out.op.axis[0], factor=TILE)
    s[out].unroll(ji)
    s[out].vectorize(out.op.axis[1])
    s[total].set_scope("local")
    s[total].compute_at(s[out], jo)
    j, lane = total.op.axis
    s[total].reorder(k, j, lane)
    s[total].unroll(j)
    s[total].vectorize(lane)
    return s, [x, w, out]


@pytest.mark.parametrize("padded", [False, True])
def test_one_computation_serves_whole_tiles_and_the_last_one(padded: bool) -> None:
    s, args = tiled(padded)
    body = lower(s, args)["main"].body
    loops = [n for n in post_order(body, lambda n: n.children()) if isinstance(n, ts.For) and n.loop_var.name == "k"]
    assert len(loops) == (2 if padded else 1)  # that of the copy has the same name
    assert ("T.min(n - 1, " in str(body)) != padded  # the copy has the entries past the end; the input has not


@pytest.mark.parametrize("padded", [False, True])
def test_every_width(padded: bool) -> None:
    s, args = tiled(padded)
    run = build(s, args, target="llvm")
    for n in (0, 1, 2, TILE - 1, TILE, TILE + 1, 29):
        x, w = RNG.standard_normal((TERMS, n)).astype("float32"), RNG.standard_normal((TERMS, 16)).astype("float32")
        out = ndarray.array(np.full((n, 16), np.nan, "float32"))
        run(ndarray.array(x), ndarray.array(w), out)
        source = np.pad(x, ((0, 0), (1, 1)))[:, :n] if padded else x
        np.testing.assert_allclose(out.numpy(), source.T @ w + 1, rtol=1e-5, atol=1e-5)


def test_a_shorter_computation_where_one_entry_alone_is_wanted() -> None:
    s, args = tiled(False)
    total = next(stage for stage in s.stages if stage.op.name == "total")
    total.pragma(total.op.axis[0], "often_single", True)
    body = lower(s, args)["main"].body
    loops = [n for n in post_order(body, lambda n: n.children()) if isinstance(n, ts.For) and n.loop_var.name == "k"]
    tiles = [any(isinstance(n, ts.For) for n in post_order(loop.body, lambda n: n.children())) for loop in loops]
    assert sorted(tiles) == [False, True] and "pragma" not in str(body)
    run = build(s, args, target="llvm")
    for n in (1, 2, TILE, TILE + 1, TILE + 2):
        x, w = RNG.standard_normal((TERMS, n)).astype("float32"), RNG.standard_normal((TERMS, 16)).astype("float32")
        out = ndarray.array(np.full((n, 16), np.nan, "float32"))
        run(ndarray.array(x), ndarray.array(w), out)
        np.testing.assert_allclose(out.numpy(), x.T @ w + 1, rtol=1e-5, atol=1e-5)
