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


def test_sizes_of_random_values(dynamic: Any, run: Any, tmp_path: Any) -> None:
    file = str(tmp_path / "m.alx")
    run("compile", str(dynamic), "-o", file)
    assert "with 16 for each unknown dimension of x (--shape gives others)" in run("run", file).out
    done = run("run", file, "--shape", "x:7,4")
    assert "float32[7, 4]" in done.out and "16" not in done.out
    assert "argument 'x': expected shape (?, 4), got (7, 5)" in run("run", file, "--shape", "x:7,5").err
    assert "no input 'z'; it has: x" in run("run", file, "--shape", "z:7,4").err
    np.savez(tmp_path / "in.npz", x=np.ones((2, 4), np.float32))
    assert "give one of them" in run("run", file, "--shape", "x:7,4", "--inputs", str(tmp_path / "in.npz")).err
    assert "--target can't change it" in run("run", file, "--target", "llvm").err
