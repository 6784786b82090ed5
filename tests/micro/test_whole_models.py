"""Standard networks as C: every interface, both compilers without a warning, under sanitizers, and ONNX Runtime's results."""
from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.networks import NETWORKS

from ..cases.random_networks import difference
from .whole_models import INTERFACES, check, exact_results

pytest.importorskip("onnxruntime")
needs_compilers = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("clang") is None, reason="needs gcc and clang")


def hold(name: str, folder: Path, interfaces: tuple[str, ...] = tuple(INTERFACES)) -> None:
    found = check(NETWORKS[name](), {}, folder, interfaces=interfaces)
    assert found.warnings == {}
    assert set(found.errors) == {*interfaces, "guarded"} and max(found.errors.values()) <= 1e-5
    assert found.workspace <= found.lower_bound * 1.05


@needs_compilers
def test_mlp(tmp_path: Path) -> None:
    hold("mlp", tmp_path, ("c", "cpp-packed"))


@needs_compilers
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "mlp"])
def test_larger_ones(name: str, tmp_path: Path) -> None:
    hold(name, tmp_path)


def test_double_precision_shows_whose_error_it_is() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["w"], to=TensorProto.FLOAT), helper.make_node("Exp", ["w"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = np.array([0.1, 1, 7], "float32")
    (y,) = exact_results(model, {}, {"x": x})
    assert y.dtype == np.float64 and difference(y, np.exp(x.astype("float64"))) < 1e-15
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT and isinstance(model, onnx.ModelProto)
