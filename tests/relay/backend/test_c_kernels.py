"""The target c with the graph executor and the virtual machine: kernels are C code, compiled by the machine's compiler."""
from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.module import IRModule
from anchorleg.micro import export_model_library_format, read_model_library_format
from anchorleg.runtime import cpu, load_module
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.support.errors import BuildError

RNG = np.random.default_rng(0)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def network():
    x = relay.var("x", shape=(1, 3, 16, 16), dtype="float32")
    y = relay.nn.conv2d(x, relay.const(RNG.standard_normal((8, 3, 3, 3)).astype("float32")), padding=(1, 1))
    y = relay.nn.softmax(relay.exp(relay.nn.max_pool2d(y, (2, 2), (2, 2)) * relay.const(0.1)), axis=1)
    return IRModule.from_expr(relay.Function([x], relay.nn.dense(relay.nn.batch_flatten(y), relay.const(RNG.standard_normal((5, 512)).astype("float32")))))


def result(lib, x):
    module = GraphModule(lib["default"](cpu(0)))
    module.run(x=x)
    return module.get_output(0).numpy()


@needs_gcc
def test_the_graph_executor_runs_c_code(tmp_path):
    mod, x = network(), RNG.standard_normal((1, 3, 16, 16)).astype("float32")
    lib, expected = relay.build(mod, target="c"), result(relay.build(mod, target="llvm"), x)
    np.testing.assert_allclose(result(lib, x), expected, rtol=1e-4, atol=1e-5)
    assert lib.get_lib().type_key == "c" and lib.get_lib().get_source().startswith("/* Kernels */")
    assert lib.get_lib().get_source("c").count("int32_t tvmgen_default_fused_nn_conv2d") == 2  # declared and defined
    for name in ("lib.so", "lib.tar"):
        lib.export_library(tmp_path / name)
        np.testing.assert_array_equal(result(load_module(tmp_path / name), x), result(lib, x))


@needs_gcc
def test_the_code_is_the_c_compilers(monkeypatch, tmp_path):
    """A compiler that turns every sum into a difference."""
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\nfor f in "$@"; do case "$f" in *.c) sed -i "s/p0\\[\\(.*\\)\\] + p1/p0[\\1] - p1/" "$f";; esac; done\nexec gcc "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    x, y = (relay.var(n, shape=(4,), dtype="float32") for n in "xy")
    lib = relay.build(IRModule.from_expr(relay.Function([x, y], x + y)), target="c")
    module = GraphModule(lib["default"](cpu(0)))
    module.run(x=np.full(4, 5, "float32"), y=np.full(4, 2, "float32"))
    assert module.get_output(0).numpy().tolist() == [3] * 4


@needs_gcc
def test_the_virtual_machine_runs_c_code():
    x = np.arange(8, dtype="float32").reshape(2, 4)
    for rows in (2, relay.Any()):  # kernels for sizes that only inputs tell are left to the operators' rules
        v = relay.var("x", shape=(rows, 4), dtype="float32")
        exe = relay.vm.compile(IRModule.from_expr(relay.Function([v], relay.nn.softmax(v))), target="c")
        np.testing.assert_allclose(VirtualMachine(exe, cpu(0)).invoke("main", x).numpy(), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)


def test_without_a_compiler_it_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CC", "")
    monkeypatch.setattr("anchorleg.runtime.c_compiler.find_spec", lambda name: None)
    v = relay.var("x", shape=(3, 4), dtype="float32")
    mod = IRModule.from_expr(relay.Function([v], relay.nn.softmax(v)))
    for attempt in (lambda: relay.build(mod, target="c"), lambda: relay.vm.compile(mod, target="c")):
        with pytest.raises(BuildError, match="needs a C compiler to run on this machine, and none was found: set CC"):
            attempt()
    relay.build(mod, target="c", executor=relay.backend.Executor("aot"))  # text for another machine needs none here


@needs_gcc
def test_the_model_library_format_has_the_c_text(tmp_path):
    export_model_library_format(relay.build(network(), target="c"), tmp_path / "model.tar")
    sources = read_model_library_format(tmp_path / "model.tar").sources()
    (name, text), = sources.items()
    (tmp_path / name).write_bytes(text)
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", name, "-o", os.devnull], cwd=tmp_path, check=True)
