"""A small model, and the command line run in this process."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from anchorleg.cli.app import run_app


class Outcome(NamedTuple):
    """What a command ended with."""

    code: int
    out: str
    err: str


def save(path: Path, nodes: list[Any], inputs: dict[str, Any], output: str, weights: dict[str, np.ndarray] | None = None,
         domains: tuple[str, ...] = ()) -> Path:
    """A float32 model in a file."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value(n, 1, s) for n, s in inputs.items()], [value(output, 1, None)],
                              [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: Any) -> Path:
    """A convolution and a relu, of input ``x`` (1, 3, 8, 8)."""
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32")
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv0"), helper.make_node("Relu", ["y"], ["z"], name="relu0")]
    return save(tmp_path_factory.mktemp("model") / "ok.onnx", nodes, {"x": [1, 3, 8, 8]}, "z", {"w": weight})


@pytest.fixture(scope="session")
def compiled(model: Path) -> Path:
    """The model, compiled."""
    path = model.with_name("ok.anchor")
    assert run_app(["compile", str(model), "-o", str(path)]) == 0
    return path


@pytest.fixture
def run(capfd: Any) -> Callable[..., Outcome]:
    """``run("show", path, …)``: the exit code and what was written."""
    def call(*args: Any) -> Outcome:
        capfd.readouterr()
        code = run_app([str(a) for a in args])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture
def refused(run: Callable[..., Outcome]) -> Callable[..., str]:
    """Runs a command that must fail with one paragraph on stderr, and gives that."""
    def call(*args: Any, code: int = 1) -> str:
        found = run(*args)
        assert found.code == code, found
        assert "Traceback" not in found.err and "internal error" not in found.err
        assert found.err.startswith("anchorleg: ") and "\n\n" not in found.err and len(found.err) < 2000
        return found.err

    return call
