"""``anchorleg micro`` and ``compile --executor aot``."""
from __future__ import annotations

import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anchorleg.cli.app import run_app
from anchorleg.micro import read_model_library_format

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture
def model(tmp_path):
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 5)).astype("float32"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"), helper.make_node("Relu", ["h"], ["y"], name="act")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [1, 8])], [value("y", TensorProto.FLOAT, [1, 5])], [w])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


@needs_compiler
def test_micro_writes_a_project_that_runs(model, tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.ones((1, 8), "float32"))
    assert run_app(["micro", model, "-o", str(tmp_path / "p"), "--board", "host", "--inputs", str(tmp_path / "in.npz"), "--run"]) == 0
    printed = capsys.readouterr().out
    assert printed.rstrip().endswith("PASS") and "planned are" in printed
    assert (tmp_path / "p" / "Makefile").is_file() and (tmp_path / "p" / "memory.svg").read_text().startswith("<svg")
    assert "product" in (tmp_path / "p" / "lib1.c").read_text()


def test_a_model_too_large_for_the_board(tmp_path, capsys, monkeypatch):
    from anchorleg.micro import BOARDS
    from anchorleg.micro.project import Project

    w = numpy_helper.from_array(np.zeros((1200, 1000), "float32"), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", TensorProto.FLOAT, [1, 1200])],
                              [value("y", TensorProto.FLOAT, [1, 1000])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    line = ["micro", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "p")]
    assert run_app(line) == 0
    assert f"and the board has {BOARDS['mps2-an385'].code} for code" in capsys.readouterr().out
    monkeypatch.setattr(Project, "missing_tools", lambda self: [])
    assert run_app([*line, "--run"]) == 1
    assert "too large for this board" in capsys.readouterr().err


@needs_compiler
def test_pools(model, tmp_path, capsys):
    assert run_app(["micro", model, "-o", str(tmp_path / "p"), "--board", "host", "--pool", "sram:4096", "--run"]) == 0
    assert "of 4096" in capsys.readouterr().out
    assert run_app(["micro", model, "-o", str(tmp_path / "q"), "--pool", "sram"]) == 1
    assert "NAME:BYTES" in capsys.readouterr().err


@pytest.mark.parametrize("target,code", [("c", "codegen/host/src/default_lib1.c"), ("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7", "codegen/host/lib/default_lib0.o")])
def test_compile_to_model_library_format(model, tmp_path, target, code):
    out = tmp_path / "m.tar"
    assert run_app(["compile", model, "-o", str(out), "--target", target, "--executor", "aot", "--output-format", "mlf"]) == 0
    assert code in read_model_library_format(out).files


def test_sizes_not_known_are_asked_for_with_those_that_are(tmp_path, capsys):
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", TensorProto.FLOAT, ["n", 3, "h", 8])],
                              [value("y", TensorProto.FLOAT, ["n", 3, "h", 8])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert run_app(["micro", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "p")]) == 1
    assert "--shape x:D0,3,D2,8" in capsys.readouterr().err
