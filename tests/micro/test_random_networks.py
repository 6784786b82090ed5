"""Random small networks as C: under sanitizers on this machine and on emulated boards, what the graph executor and ONNX Runtime compute."""
from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anchorleg.micro import create_project

from ..cases import random_networks, random_selections
from ..cases.random_networks import compiled, difference, reference, tolerance
from .guarded import run_guarded
from .whole_models import build

pytest.importorskip("onnxruntime")
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
FAMILIES = {**random_networks.FAMILIES, **random_selections.FAMILIES}
QUICK = [("selection", 0), ("selection", 7), ("quantized", 3), ("conv", 5), ("recurrent", 1), ("elementwise_i64", 2)]
SLOW = [(family, seed) for family in FAMILIES for seed in range(10, 14)]
ON_BOARDS = [("selection", 3, "mps2-an385"), ("quantized", 2, "mps2-an385"), ("quantized", 5, "riscv32"), ("dense_f16", 1, "riscv32")]


@functools.lru_cache(maxsize=4)
def made(family: str, seed: int) -> tuple[Any, dict[str, np.ndarray], list[np.ndarray], Any]:
    """A network, its inputs, ONNX Runtime's results, and the C sources."""
    model, values = FAMILIES[family](seed)
    return model, values, reference(model, values, rewrite=family != "quantized"), build(model, {})


def hold(family: str, got: list[np.ndarray], wanted: list[np.ndarray], what: str) -> None:
    for g, w in zip(got, wanted, strict=True):
        if w.dtype.kind == "f":
            assert difference(g, w) <= tolerance(family), what
        else:
            np.testing.assert_array_equal(g, w, err_msg=what)


def under_guard(family: str, seed: int, folder: Path) -> None:
    model, values, wanted, factory = made(family, seed)
    got = run_guarded(factory, folder, values)
    hold(family, got, compiled(model, values, 3), "the graph executor")
    hold(family, got, wanted, "ONNX Runtime")


@needs_compiler
@pytest.mark.parametrize("family, seed", QUICK)
def test_a_few(family: str, seed: int, tmp_path: Path) -> None:
    under_guard(family, seed, tmp_path)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("family, seed", SLOW)
def test_many(family: str, seed: int, tmp_path: Path) -> None:
    under_guard(family, seed, tmp_path)


def on_board(family: str, seed: int, board: str, folder: Path) -> None:
    _, values, wanted, factory = made(family, seed)
    project = create_project(factory, folder, board, values)
    if project.missing_tools():
        pytest.skip(f"needs {', '.join(project.missing_tools())}")
    assert project.make() == "", "the cross compiler warned"
    hold(family, project.results(project.make("run", timeout=120)), wanted, board)


@pytest.mark.parametrize("family, seed, board", ON_BOARDS)
def test_a_few_on_boards(family: str, seed: int, board: str, tmp_path: Path) -> None:
    on_board(family, seed, board, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["mps2-an385", "riscv32"])
@pytest.mark.parametrize("family, seed", [(f, s) for f in ("selection", "quantized", "recurrent", "elementwise", "elementwise_f64", "dense_f16") for s in (20, 21)])
def test_many_on_boards(family: str, seed: int, board: str, tmp_path: Path) -> None:
    on_board(family, seed, board, tmp_path)
