"""What goes wrong for a user is told in one paragraph, with an exit code, and leaves nothing half-written."""
from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from anchorleg.cli.app import run_app

from .conftest import save

Refused = Callable[..., str]


def npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("name, shape, dtype, expected", [
    ("q", (1, 3, 8, 8), "float32", "no input 'q'; it has: x"),
    ("x", (3, 8, 8), "float32", "expected rank 4, shape (1, 3, 8, 8), got rank 3"),
    ("x", (1, 3, 8, 9), "float32", "expected rank 4, shape (1, 3, 8, 8), got rank 4, shape (1, 3, 8, 9)"),
    ("x", (1, 3, 8, 8), "float64", "expected dtype float32, got float64"),
])
@pytest.mark.parametrize("fresh", [True, False])
def test_wrong_inputs(name: str, shape: Any, dtype: str, expected: str, fresh: bool, model: Path, compiled: Path, refused: Refused, tmp_path: Path) -> None:
    assert expected in refused("run", model if fresh else compiled, "--inputs", npz(tmp_path / "in.npz", **{name: np.zeros(shape, dtype)}))


def test_unreadable_inputs(compiled: Path, refused: Refused, tmp_path: Path) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"abc")
    assert "numpy.savez" in refused("run", compiled, "--inputs", bad)
    assert "takes 768" in refused("run", compiled, "--inputs", f"x={bad.rename(tmp_path / 'raw.bin')}")
    assert "there is no file" in refused("run", compiled, "--inputs", "none.npz")
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    assert "plain arrays" in refused("run", compiled, "--inputs", tmp_path / "objects.npz")


@pytest.mark.parametrize("kind, expected", [
    ("cut", "cut short"), ("empty", "is empty"), ("noise", "not an ONNX model"), ("text", "not an ONNX model"), ("missing", "no such file"), ("folder", "is a folder"),
])
def test_models_that_are_none(kind: str, expected: str, model: Path, refused: Refused, tmp_path: Path) -> None:
    path, whole = tmp_path / f"{kind}.onnx", model.read_bytes()
    content = {"cut": whole[: len(whole) // 2], "empty": b"", "noise": random.Random(1).randbytes(500), "text": b"hello\n"}
    if kind == "folder":
        path.mkdir()
    elif kind in content:
        path.write_bytes(content[kind])
    for command in (["compile", path, "-o", tmp_path / "out"], ["run", path], ["show", path], ["verify", path]):
        assert expected in refused(*command)
    assert not (tmp_path / "out").exists()


def test_flipped_bits_in_a_model(model: Path, tmp_path: Path, capfd: Any) -> None:
    data, rng = model.read_bytes(), random.Random(0)
    for n in range(120):
        at = rng.randrange(len(data))
        path = tmp_path / "flipped.onnx"
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
        code = run_app(["show", str(path)])
        err = capfd.readouterr().err
        assert code in (0, 1) and "Traceback" not in err and "internal error" not in err, (at, err)


def test_unsupported_operators_are_all_named(refused: Refused, tmp_path: Path) -> None:
    nodes = [helper.make_node("Foo", ["x"], ["y"], name="my foo"), helper.make_node("Bar", ["y"], ["z"], name="my bar", domain="acme")]
    text = refused("compile", save(tmp_path / "m.onnx", nodes, {"x": [2]}, "z", domains=("acme",)), "-o", tmp_path / "out")
    assert all(word in text for word in ("Foo", "'my foo'", "Bar", "'my bar'", "acme", "export the model"))
    assert not (tmp_path / "out").exists()


def test_shapes_that_do_not_fit_name_the_node(refused: Refused, tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["z"], name="the_node")], {"x": [2, 3]}, "z", {"w": np.ones((2, 3), "float32")})
    assert "the_node" in refused("compile", path, "-o", tmp_path / "out")


def test_missing_external_data(model: Path, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.load(str(model)), str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert "weights.bin, which does not exist: put it beside the model" in refused("run", path)


@pytest.mark.parametrize("target, expected", [
    ("foo", "'foo'"), ("llvm -mcpu=nope", "no such processor"), ("llvm -mtriple=foo-bar-baz", "no such target"), ("llvm -mattr=+nope", "no such feature"),
    ("llvm --nope=1", "no option 'nope'"), ("cuda", "expected a target that LLVM compiles"), ("", "empty target"),
])
def test_targets(target: str, expected: str, model: Path, refused: Refused, tmp_path: Path) -> None:
    assert expected in refused("compile", model, "-o", tmp_path / "out", "--target", target)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shape, expected", [("q:1,2", "no input named 'q'"), ("x:a", "whole numbers"), ("x", "NAME:D0,D1"), ("x:-1", "negative")])
def test_shape_option(shape: str, expected: str, model: Path, refused: Refused) -> None:
    assert expected in refused("run", model, "--shape", shape)


def test_unknown_sizes(refused: Refused, tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["z"])], {"x": ["n", 2]}, "z")
    assert "--shape x:" in refused("verify", path)


def test_options_that_come_too_late(compiled: Path, refused: Refused) -> None:
    assert "compiled already, so --opt-level, --shape" in refused("run", compiled, "--opt-level", 1, "--shape", "x:1")
    assert "takes a model" in refused("show", compiled)


@pytest.mark.parametrize("target, expected", [
    ("llvm -mtriple=aarch64-linux-gnu", "was built for aarch64-linux-gnu"),
    ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -mattr=+avx10.2,+avx512fp16", "processor features that this machine"),
])
def test_code_for_another_machine(target: str, expected: str, model: Path, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "other.anchor"
    assert run_app(["compile", str(model), "-o", str(path), "--target", target]) == 0
    text = refused("run", path)
    assert ("was built for x86_64" in text or expected in text) and "build it again" in text and str(path) in text


def _result(path: Path, values: Path, output: Path) -> tuple[int, bytes]:
    output.unlink(missing_ok=True)
    code = run_app(["run", str(path), "--inputs", str(values), "--output", str(output)])
    return code, output.read_bytes() if output.exists() else b""


def test_flipped_bits_in_an_artifact(compiled: Path, tmp_path: Path, capfd: Any) -> None:
    """Wherever a bit is flipped, the file is refused or gives the very same result."""
    data, rng, output = compiled.read_bytes(), random.Random(0), tmp_path / "out.npz"
    values = npz(tmp_path / "in.npz", x=np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32"))
    _, wanted = _result(compiled, values, output)
    refusals = 0
    for n in range(200):
        at = rng.randrange(len(data))
        path = tmp_path / f"{n}.anchor"
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
        code, got = _result(path, values, output)
        err = capfd.readouterr().err
        assert (code, got) == (0, wanted) or code == 1 and err.startswith("anchorleg: ") and "Traceback" not in err, (at, code, err)
        refusals += code
    assert refusals > 150


@pytest.mark.parametrize("suffix", [".anchor", ".so"])
def test_artifacts_cut_short(suffix: str, model: Path, refused: Refused, tmp_path: Path) -> None:
    whole = tmp_path / f"whole{suffix}"
    assert run_app(["compile", str(model), "-o", str(whole)]) == 0
    data = whole.read_bytes()
    for size in (0, 1, 100, len(data) // 4, len(data) // 2, len(data) * 9 // 10, len(data) - 30, len(data) - 1):
        path = tmp_path / f"cut{size}{suffix}"
        path.write_bytes(data[:size])
        refused("run", path)


def test_altered_code_in_a_shared_library(model: Path, refused: Refused, tmp_path: Path) -> None:
    whole = tmp_path / "whole.so"
    assert run_app(["compile", str(model), "-o", str(whole)]) == 0
    data = whole.read_bytes()
    if not data.startswith(b"\x7fELF"):
        pytest.skip("no C compiler is here to link with")
    for at in range(500, data.index(b"PK\x03\x04"), 2000):
        path = tmp_path / f"{at}.so"
        path.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1:])
        assert "its code was altered" in refused("run", path)


def test_files_that_are_something_else(refused: Refused, tmp_path: Path) -> None:
    assert "none that this package wrote" in refused("run", npz(tmp_path / "a.npz", x=np.zeros(3)))
    other = tmp_path / "b.txt"
    other.write_text("hello")
    assert "neither an exported library" in refused("run", other)


@pytest.mark.parametrize("where", ["missing/out", "."])
def test_results_that_cannot_be_written(where: str, model: Path, compiled: Path, refused: Refused, tmp_path: Path) -> None:
    for command in (["compile", model, "-o"], ["run", compiled, "--output"]):
        assert "folder" in refused(*command, tmp_path / where)
    assert not list(tmp_path.iterdir())


def _limited(args: list[Any], **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that may write no file beyond 4,000 bytes, as on a disk that fills up."""
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    return subprocess.run([sys.executable, "-m", "anchorleg", *map(str, args)], capture_output=True, text=True, preexec_fn=limit, env={**os.environ, **env})


def test_a_full_disk(model: Path, compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("before")
    for output in ("new", "kept"):
        done = _limited(["compile", model, "-o", tmp_path / output], ANCHORLEG_CACHE_DIR=str(tmp_path / "cache"))
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert f"cannot write {tmp_path / output}" in done.stderr and "nothing was left behind" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "cache") == ["kept"] and (tmp_path / "kept").read_text() == "before"
    big = save(tmp_path / "big.onnx", [helper.make_node("Relu", ["x"], ["z"])], {"x": [5000]}, "z")
    done = _limited(["run", big, "--output", tmp_path / "out.npz"], ANCHORLEG_CACHE="0")
    assert done.returncode == 1 and "cannot write" in done.stderr and not (tmp_path / "out.npz").exists()


def test_a_cache_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for place in (blocked / "cache", Path("/proc/nowhere")):
        done = subprocess.run([sys.executable, "-m", "anchorleg", "run", str(model)], capture_output=True, text=True,
                              env={**os.environ, "ANCHORLEG_CACHE_DIR": str(place)})
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def test_a_bug_is_told_as_one(model: Path, run: Any, monkeypatch: Any) -> None:
    from anchorleg.cli import show_command

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(show_command, "import_model", broken)
    plain = run("show", model)
    assert plain.code == 70 and "internal error: RuntimeError: broken" in plain.err and "Traceback" not in plain.err
    assert "Traceback" in run("--traceback", "show", model).err
