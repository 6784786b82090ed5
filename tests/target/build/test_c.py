"""Loop programs built for the target c: results, checks of arguments, files, refusals."""
from __future__ import annotations

import shutil

import numpy as np
import pytest

import anchorleg
from anchorleg import te
from anchorleg.runtime import load_module
from anchorleg.runtime.ndarray import array
from anchorleg.support.errors import AnchorlegError, BuildError, UnsupportedOpError
from anchorleg.tir import op

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def add_one(size=10):
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] + 1.0, name="B")
    return te.create_schedule(b.op), [a, b]


@needs_gcc
def test_functions_check_their_arguments_and_can_be_exported(tmp_path):
    module = anchorleg.build(*add_one(), "c", name="add_one")
    assert module.type_key == "c" and "B[i] = A[i] + 1.0f;" in module.get_source() and list(module["get_func_names"]()) == ["add_one"]
    module.export_library(tmp_path / "lib.so")
    x = np.arange(10, dtype="float32")
    for one in (module, load_module(tmp_path / "lib.so")):
        out = array(np.zeros(10, "float32"))
        one["add_one"](array(x), out)
        np.testing.assert_array_equal(out.numpy(), x + 1)
    with pytest.raises(AnchorlegError, match=r"argument 1 \(B\): expected shape \(10,\), got 9"):
        module["add_one"](array(x), array(np.zeros(9, "float32")))
    with pytest.raises(AnchorlegError, match="argument 0"):
        module["add_one"](array(x.astype("float64")), array(np.zeros(10, "float32")))


@needs_gcc
def test_scratch_memory_and_scalars():
    n, scale = te.var("n", "int32"), te.var("scale", "float32")
    a = te.placeholder((64, 64), name="A")
    b = te.compute((64, 64), lambda i, j: a[i, j] * scale + op.cast(n, "float32"), name="B")
    c = te.compute((64, 64), lambda i, j: b[j, i] + b[i, j], name="C")  # needs all of B
    module = anchorleg.build(te.create_schedule(c.op), [a, n, scale, c], "c", name="mix")
    x, out = np.random.default_rng(0).random((64, 64)).astype("float32"), array(np.zeros((64, 64), "float32"))
    module["mix"](array(x), 3, 0.5, out)
    np.testing.assert_allclose(out.numpy(), (x + x.T) * 0.5 + 6, rtol=1e-6)


@needs_gcc
def test_sizes_that_arguments_tell_are_refused_unless_they_are_handed_over():
    n = te.var("n", "int64")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    with pytest.raises(UnsupportedOpError, match="needs static shapes, but n is known from the arguments only.*hand the size over"):
        anchorleg.build(te.create_schedule(b.op), [a, b], "c")
    module, out = anchorleg.build(te.create_schedule(b.op), [a, b, n], "c", name="f"), array(np.zeros(5, "float32"))
    module["f"](array(np.arange(5, dtype="float32")), out, 5)
    assert out.numpy().tolist() == [1, 2, 3, 4, 5]


@needs_gcc
@pytest.mark.parametrize("target", ["c", "llvm"])
def test_a_size_of_32_bits(target):
    n = te.var("n", "int32")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    module, out = anchorleg.build(te.create_schedule(b.op), [a, b, n], target, name="f"), array(np.zeros(5, "float32"))
    module["f"](array(np.arange(5, dtype="float32")), out, 5)
    assert out.numpy().tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(AnchorlegError, match="expected shape"):
        module["f"](array(np.arange(5, dtype="float32")), out, 6)


def test_without_a_compiler_it_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CC", "")
    monkeypatch.setattr("anchorleg.runtime.c_compiler.find_spec", lambda name: None)
    with pytest.raises(BuildError, match="needs a C compiler to run on this machine"):
        anchorleg.build(*add_one(), "c")
