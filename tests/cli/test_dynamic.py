"""Models with sizes that are not known run on the virtual machine, and the command says why."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .conftest import save


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: Any) -> Any:
    nodes = [helper.make_node("Tanh", ["x"], ["y"])]
    return save(tmp_path_factory.mktemp("dynamic") / "any.onnx", nodes, {"x": ["rows", 4]}, "y")


def test_run_says_why_and_takes_any_size(dynamic: Any, run: Any, tmp_path: Any) -> None:
    value = np.random.default_rng(0).standard_normal((7, 4)).astype("float32")
    np.savez(tmp_path / "in.npz", x=value)
    done = run("run", str(dynamic), "--inputs", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz"), "--profile")
    assert done.code == 0 and "virtual machine, as dimensions of x are not known" in done.out and "fused_tanh" in done.out
    np.testing.assert_allclose(next(iter(np.load(tmp_path / "out.npz").values())), np.tanh(value), rtol=1e-5)


def test_compiled_files_run(dynamic: Any, run: Any, tmp_path: Any) -> None:
    assert "virtual machine" in run("compile", str(dynamic), "-o", str(tmp_path / "m.alx")).out
    assert "float32[16, 4]" in run("run", str(tmp_path / "m.alx")).out


def test_the_graph_executor_refuses(dynamic: Any, run: Any) -> None:
    done = run("run", str(dynamic), "--executor", "graph")
    assert done.code != 0 and "--shape x:" in done.err
