"""Functions of external compilers in programs compiled ahead of time: as C, as objects, in files and projects."""
from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.ir import IRModule
from anchorleg.micro import create_project, export_model_library_format
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.relay.backend.aot.foreign import Foreign, c_adapter, llvm_adapter
from anchorleg.relay.backend.graph_nodes import TensorInfo
from anchorleg.relay.op.annotation import compiler_begin, compiler_end
from anchorleg.relay.transform import InferType, MergeCompilerRegions, PartitionGraph
from anchorleg.runtime.aot_executor import AotModule
from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.module import PythonModule, load_module
from anchorleg.runtime.registry import register_func, remove_global_func
from anchorleg.support.errors import ArgumentError, ArtifactError, BuildError
from anchorleg.testing import target_hooks

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
A = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
B = np.linspace(2, 5, 6, dtype="float32").reshape(2, 3)
WAYS = {
    "llvm": ("llvm", "cpp", {}), "c": ("c", "cpp", {}), "c, crt, packed": ("c", "crt", {}),
    "c, crt, unpacked": ("c", "crt", {"interface-api": "c", "unpacked-api": True}),
}
each_way = pytest.mark.parametrize("way", list(WAYS))


def begin(expr: Any, compiler: str = "ccompiler") -> Any:
    return compiler_begin(expr, compiler)


def model(constant: Any) -> IRModule:
    """``tanh(a + constant) * (a - b)``, the sum and the difference by the example compiler."""
    a, b = (relay.var(n, shape=(2, 3)) for n in "ab")
    total = compiler_end(relay.add(begin(a), begin(constant)), "ccompiler")
    difference = compiler_end(relay.subtract(begin(a), begin(b)), "ccompiler")
    mod = InferType()(IRModule.from_expr(relay.Function([a, b], relay.multiply(relay.tanh(total), difference))))
    return PartitionGraph()(MergeCompilerRegions()(mod))


def build(mod: IRModule, way: str, **more: Any) -> Any:
    target, runtime, options = WAYS[way]
    return relay.build(mod, target, executor=Executor("aot", options), runtime=Runtime(runtime), **more)


def run(lib: Any, **inputs: np.ndarray) -> np.ndarray:
    module = AotModule(lib["default"](cpu(0)))
    module.run(**(inputs or {"a": A, "b": B}))
    return module.get_output(0).numpy()


@each_way
@pytest.mark.parametrize("constant", [relay.const(B), relay.const(np.float32([1, 2, 3]))])
def test_external_code_and_its_constants(way: str, constant: Any) -> None:
    want = np.tanh(A + constant.data.numpy()) * (A - B)
    lib = build(model(constant), way)
    for _ in range(2):
        np.testing.assert_allclose(run(lib), want, rtol=1e-5)


@each_way
@pytest.mark.parametrize("hook, want", [({}, A - B), ({"tir_to_runtime": 1}, A * B)])
def test_loop_programs_of_target_kinds(way: str, hook: dict[str, Any], want: np.ndarray) -> None:
    p, q, a, b = (relay.var(n, shape=(2, 3)) for n in "pqab")
    func = relay.Function([p, q], relay.add(p, q)).with_attr({"Primitive": 1, "Compiler": target_hooks.NAME, "global_symbol": "hooked", **hook})
    mod = IRModule.from_expr(relay.Function([a, b], relay.negative(relay.Call(func, [a, b]))))
    np.testing.assert_allclose(run(build(mod, way)), -want, rtol=1e-6)


@pytest.mark.parametrize("link", [True, False])
def test_files_have_the_external_code(tmp_path: Path, link: bool) -> None:
    lib = build(model(relay.const(B)), "llvm")
    file = lib.export_library(tmp_path / "model.so", link=link)
    np.testing.assert_allclose(run(load_module(file)), np.tanh(A + B) * (A - B), rtol=1e-5)


def python_call(run_: Any) -> IRModule:
    register_func("relay.ext.test_foreign", lambda func: PythonModule({"ext_0": run_}), override=True)
    p, q, a, b = (relay.var(n, shape=(2, 3)) for n in "pqab")
    func = relay.Function([p, q], relay.add(p, q)).with_attr({"Primitive": 1, "Compiler": "test_foreign", "global_symbol": "ext_0"})
    return IRModule.from_expr(relay.Function([a, b], relay.Call(func, [a, b])))


def test_python_code_runs_in_this_process_only(tmp_path: Path) -> None:
    lib = build(python_call(lambda a, b, out: out.copyfrom(a.numpy() - b.numpy())), "llvm")
    np.testing.assert_array_equal(run(lib), A - B)
    with pytest.raises(ArtifactError, match="module of kind 'python' with ext_0 cannot be written"):
        lib.export_library(tmp_path / "model.so")
    with pytest.raises(BuildError, match="external functions ext_0 are not C code; export an archive"):
        lib.export_library(tmp_path / "model.so", link=True)
    with pytest.raises(BuildError, match="the target c takes external functions as C code only: the module of kind 'python' with ext_0"):
        build(python_call(len), "c")
    remove_global_func("relay.ext.test_foreign")


def test_a_function_that_fails_says_why() -> None:
    def fail(a: Any, b: Any, out: Any) -> None:
        raise ValueError("too hot")

    with pytest.raises(ArgumentError, match="status -1: ext_0: ValueError: too hot"):
        run(build(python_call(fail), "llvm"))
    remove_global_func("relay.ext.test_foreign")


def test_code_from_elsewhere_is_missed() -> None:
    mod = python_call(len)
    register_func("relay.ext.test_foreign", lambda func: None, override=True)
    with pytest.raises(ArtifactError, match="there is no code for the external function 'ext_0': import the module with it"):
        run(build(mod, "llvm"))
    remove_global_func("relay.ext.test_foreign")


def test_objects_without_a_runtime_take_no_constants() -> None:
    options = {"interface-api": "c", "unpacked-api": True}
    with pytest.raises(BuildError, match="need constants, which an object file for the crt runtime does not hand over"):
        relay.build(model(relay.const(B)), "llvm", executor=Executor("aot", options), runtime=Runtime("crt"))


def test_archives_have_the_sources_and_headers(tmp_path: Path) -> None:
    export_model_library_format(build(model(relay.const(B)), "c, crt, unpacked"), tmp_path / "model.tar")
    a, b = (relay.var(n, shape=(2, 3)) for n in "ab")
    plain = PartitionGraph()(InferType()(IRModule.from_expr(relay.Function([a, b], compiler_end(relay.add(begin(a), begin(b)), "ccompiler")))))
    objects = relay.build(plain, "llvm", executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}), runtime=Runtime("crt"))
    export_model_library_format(objects, tmp_path / "objects.tar")
    for name, source in (("model.tar", "default_lib2.c"), ("objects.tar", "default_external0.c")):
        with tarfile.open(tmp_path / name) as archive:
            names = [n.removeprefix("./") for n in archive.getnames()]
            assert f"codegen/host/src/{source}" in names and "codegen/host/include/tvm/runtime/c_runtime_api.h" in names


def test_a_project_builds_and_runs(tmp_path: Path) -> None:
    printed = create_project(build(model(relay.const(B)), "c, crt, unpacked"), tmp_path, board="host", inputs={"a": A, "b": B}).make("run")
    assert "PASS" in printed


def test_adapters_make_tensors_of_pointers() -> None:
    func = Foreign("f", (TensorInfo((2, 3), "int8"),), (TensorInfo((), "bool"),), (np.float32([1]),))
    kernel = c_adapter(func)
    assert kernel.prototype == "int32_t f_by_pointers(const void* a0, void* a1)" and kernel.written == (False, True)
    assert "{(void*)a0, {kDLCPU, 0}, 2, {0, 8, 1}, shape0, 0, 0}" in kernel.body and "__init_f(args, codes, 1" in kernel.body
    text = llvm_adapter(func)
    assert "define i32 @f_by_pointers(ptr %a0, ptr %a1, ptr %workspace)" in text and "[2 x i64] [i64 2, i64 3]" in text
