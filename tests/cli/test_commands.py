"""Every command and option, as a person uses them."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from onnx import helper

from anchorleg.cli.progress import byte_size
from anchorleg.cli.verify_command import relative_error

from .conftest import Outcome, save

Run = Callable[..., Outcome]
X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")


@pytest.fixture
def values(tmp_path: Path) -> Path:
    np.savez(tmp_path / "in.npz", x=X)
    return tmp_path / "in.npz"


def test_help(run: Run) -> None:
    for command in ([], ["compile"], ["run"], ["show"], ["verify"], ["cache"], ["cache", "info"], ["cache", "clear"]):
        found = run(*command, "--help")
        assert found.code == 0 and found.out.startswith("Usage: anchorleg") and "..." not in found.out.split("Commands:")[-1]
    assert run("--version").out.strip().startswith("anchorleg")
    assert run("nonsense").code == 2 and run("compile").code == 2


def test_compile_and_run(model: Path, compiled: Path, values: Path, run: Run, tmp_path: Path) -> None:
    results = []
    for path in (model, compiled):
        found = run("run", path, "--inputs", values, "--print-top", 2, "--repeat", 3, "--profile", "--output", tmp_path / "out.npz")
        assert found.code == 0 and "output 0: float32[1, 4, 6, 6]" in found.out
        assert "over 3 runs" in found.out and "percent" in found.out and "conv2d" in found.out
        results.append(np.load(tmp_path / "out.npz")["arr_0"])
        top = [line for line in found.out.splitlines() if line.startswith("  [")]
        where = np.unravel_index(results[-1].argmax(), results[-1].shape)
        assert len(top) == 2 and top[0].startswith(f"  [{', '.join(map(str, where))}]")
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("level", range(5))
def test_levels(level: int, model: Path, values: Path, run: Run) -> None:
    assert run("run", model, "--opt-level", level, "--inputs", values).code == 0
    assert run("verify", model, "--opt-level", level).code == 0


def test_forms_of_inputs(compiled: Path, run: Run, values: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.raw").write_bytes(X.tobytes())
    outs = [run("run", compiled, "--print-top", 3, "--inputs", form).out.splitlines()[1:4] for form in (values, tmp_path / "x.npy", f"x={tmp_path / 'x.raw'}")]
    assert outs[0] == outs[1] == outs[2]
    assert "random values" in run("run", compiled).out


def test_image(compiled: Path, run: Run, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (20, 10), (255, 0, 0)).save(tmp_path / "red.png")
    assert run("run", compiled, "--inputs", tmp_path / "red.png").code == 0


def test_shared_library(model: Path, values: Path, run: Run, tmp_path: Path) -> None:
    assert run("compile", model, "-o", tmp_path / "m.so").code == 0
    assert run("run", tmp_path / "m.so", "--inputs", values).code == 0


@pytest.mark.parametrize("stage, word", [("onnx", "[conv0] y = Conv"), ("relay", "nn.conv2d(%x"), ("optimized", "def @main"), ("fused", "Primitive=1")])
def test_show_whole_stages(stage: str, word: str, model: Path, run: Run) -> None:
    assert word in run("show", model, "--stage", stage).out


@pytest.mark.parametrize("stage, word", [("te", "loops:"), ("tir", "@T.prim_func"), ("llvm", "define i32"), ("asm", ".text")])
def test_show_kernels(stage: str, word: str, model: Path, run: Run) -> None:
    listed = run("show", model, "--stage", stage)
    names = [line.strip() for line in listed.out.splitlines()[1:]]
    assert listed.code == 0 and any("conv2d" in n for n in names)
    for name in names:
        assert word in run("show", model, "--stage", stage, "--kernel", name).out
    assert word in run("show", model, "--stage", stage, "--kernel", "conv2d").out
    unknown = run("show", model, "--stage", stage, "--kernel", "zzz")
    assert unknown.code == 1 and names[0] in unknown.err


def test_te_names_every_primitive(model: Path, run: Run) -> None:
    text = run("show", model, "--stage", "te", "--kernel", "conv2d").out
    assert all(word in text for word in ("an input", "split ", "fuse ", "(vectorized)", "(reduction)", "computed inside"))


def test_verify_tells_the_first_difference(model: Path, run: Run) -> None:
    good = run("verify", model)
    assert good.code == 0 and "kernels agree" in good.out
    strict = run("verify", model, "--tolerance", 0)
    assert strict.code in (0, 2)
    assert strict.code == 0 or "DIFFERENT" in strict.out


@pytest.mark.parametrize("level", [0, 3])
def test_verify_of_kernels_that_take_tuples(level: int, run: Run, tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", ["x", "x", "y"], ["c"], axis=1), helper.make_node("Tanh", ["c"], ["z"])]
    found = run("verify", save(tmp_path / "m.onnx", nodes, {"x": [2, 3], "y": [2, 1]}, "z"), "--opt-level", level)
    assert found.code == 0 and "kernels agree" in found.out, found


def test_the_measure() -> None:
    want = np.array([1, np.nan, np.inf, 4], "float32")
    assert relative_error(want, want) == 0
    assert relative_error(np.array([2, np.nan, np.inf, 4]), want) == 0.25
    assert relative_error(np.array([1, 0, np.inf, 4]), want) == relative_error(want[:2], want) == float("inf")


def test_cache(run: Run, model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ANCHORLEG_CACHE_DIR", str(tmp_path))
    assert " 0 kernels" in run("cache", "info").out
    run("run", model)
    assert " 3 kernels" in run("cache", "info").out
    assert "files removed" in run("cache", "clear").out and " 0 kernels" in run("cache", "info").out


def test_sizes() -> None:
    assert [byte_size(n) for n in (0, 999, 1000, 97_540_000, 2 * 10**9)] == ["0 bytes", "999 bytes", "1.0 kB", "97.5 MB", "2.0 GB"]


def test_progress_on_a_terminal(model: Path, tmp_path: Path) -> None:
    """On a terminal the steps are drawn on stderr; the results on stdout stay plain."""
    master, slave = pty.openpty()
    env = {**os.environ, "ANCHORLEG_CACHE": "0", "TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen([sys.executable, "-m", "anchorleg", "run", str(model)], stdout=subprocess.PIPE, stderr=slave, env=env, text=True)
    os.close(slave)
    drawn = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:
            break
        if not block:
            break
        drawn += block
    out, _ = child.communicate()
    os.close(master)
    assert child.returncode == 0 and "\x1b" not in out
    assert b"compile" in drawn and b"\x1b" in drawn
