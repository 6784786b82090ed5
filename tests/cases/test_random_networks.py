"""Random networks at every optimisation level, held against ONNX Runtime."""
from __future__ import annotations

import numpy as np
import pytest

from .random_networks import FAMILIES, compiled, difference, reference, tolerance

pytest.importorskip("onnxruntime")

LEVELS = (0, 1, 2, 3, 4)
QUICK = [(family, seed) for family in FAMILIES for seed in range(3)]


def hold(family: str, seed: int, level: int) -> None:
    model, values = FAMILIES[family](seed)
    wanted = reference(model, values)
    got = compiled(model, values, level)
    assert len(got) == len(wanted)
    for name, g, w in zip(model.graph.output, got, wanted):
        assert difference(g, w) <= tolerance(family), f"{family} {seed} level {level}: {name.name} {difference(g, w):.2e}"


@pytest.mark.parametrize("family, seed", QUICK)
def test_a_few(family: str, seed: int) -> None:
    hold(family, seed, LEVELS[(seed * 3 + len(family)) % len(LEVELS)])


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_many(family: str, level: int) -> None:
    for seed in range(100, 115):
        hold(family, seed, level)


def test_the_measure_sees_what_is_wrong() -> None:
    want = np.array([1, np.nan, np.inf, 1000], "float32")
    assert difference(want, want) == 0
    assert difference(np.array([1.5, np.nan, np.inf, 1000], "float32"), want) > 1e-4
    for wrong in ([1, 2, np.inf, 1000], [1, np.nan, -np.inf, 1000], [np.nan, np.nan, np.inf, 1000]):
        assert difference(np.array(wrong, "float32"), want) == np.inf
    assert difference(want[:3], want) == difference(want.astype("float64"), want) == np.inf
