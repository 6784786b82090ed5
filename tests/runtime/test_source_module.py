"""C code as a module, the constants it needs, and both in exported files."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anchorleg.runtime import c_compiler, ndarray
from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.compiled import CompiledModule
from anchorleg.runtime.const_loader import ConstLoaderModule
from anchorleg.runtime.module import Module, PythonModule, load_module
from anchorleg.runtime.registry import get_global_func, register_func, remove_global_func
from anchorleg.runtime.source_module import CSourceModule, open_library
from anchorleg.support.errors import AnchorlegError, ArgumentError, ArtifactError, BuildError

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

TWICE = """#include <tvm/runtime/c_backend_api.h>
TVM_DLL int32_t twice(TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code) {
    DLTensor* in = (DLTensor*)args[0].v_handle;
    DLTensor* out = (DLTensor*)args[1].v_handle;
    if (num_args != 2 || type_codes[0] != kTVMDLTensorHandle) { TVMAPISetLastError("twice takes two tensors"); return -1; }
    for (int64_t i = 0; i < in->shape[0]; ++i) ((float*)out->data)[i] = 2 * ((float*)in->data)[i];
    return 0;
}
"""
PLUS = """#include <tvm/runtime/c_runtime_api.h>
static const float* more;
TVM_DLL int32_t __init_plus(TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code) {
    more = (const float*)((DLTensor*)args[0].v_handle)->data;
    return num_args != 1;
}
TVM_DLL int32_t plus(TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code) {
    DLTensor* in = (DLTensor*)args[0].v_handle;
    for (int64_t i = 0; i < in->shape[0]; ++i) ((float*)((DLTensor*)args[1].v_handle)->data)[i] = ((float*)in->data)[i] + more[i];
    return 0;
}
"""


def call(module: Module, name: str) -> list[float]:
    out = ndarray.empty((3,), "float32")
    module.get_function(name, True)(ndarray.array(np.array([1, 2, 3], "float32")), out)
    return out.numpy().tolist()


def plus() -> ConstLoaderModule:
    loader = ConstLoaderModule({"c0": np.array([10, 20, 30], "float32")}, {"plus": ["c0"]})
    loader.import_module(CSourceModule(PLUS, "c", ["plus"], ["c0"]))
    return loader


def test_the_code_is_text() -> None:
    module = get_global_func("runtime.CSourceModuleCreate")(TWICE, "c", ["twice"], [])
    assert isinstance(module, CSourceModule) and module.get_source() == TWICE and module.format == "c"
    assert module["get_symbol"]() == "twice" and module["get_const_vars"]() == [] and module["get_func_names"]() == ["twice"]
    assert module.implements_function("twice") and not module.implements_function("thrice")
    with pytest.raises(ArgumentError, match="c or cc, got 'f90'"):
        CSourceModule("", "f90")


@needs_compiler
def test_its_functions_run() -> None:
    module = CSourceModule(TWICE, "c", ["twice"])
    assert call(module, "twice") == [2, 4, 6]
    with pytest.raises(AnchorlegError, match="twice takes two tensors"):
        module["twice"](1)


@needs_compiler
def test_cplusplus() -> None:
    text = "#include <vector>\nextern \"C\" {\n" + TWICE.replace("return 0;", "std::vector<int> none; return (int)none.size();") + "}\n"
    assert call(CSourceModule(text, "cc", ["twice"]), "twice") == [2, 4, 6]


@needs_compiler
def test_code_that_the_compiler_refuses_is_shown() -> None:
    with pytest.raises(BuildError, match=r"(?s)the C compiler failed.*bogus"):
        call(CSourceModule("bogus", "c", ["f"]), "f")


def test_without_a_compiler_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compiler, "find_compiler", lambda: None)
    with pytest.raises(BuildError, match="needs a C compiler.*none was found: set CC"):
        call(CSourceModule(TWICE, "c", ["twice"]), "twice")


@needs_compiler
def test_constants_are_handed_over_once() -> None:
    loader = plus()
    assert call(loader, "plus") == [11, 22, 33] == call(loader, "plus")
    assert loader["get_const_var_ndarray"]()["c0"].numpy().tolist() == [10, 20, 30]


def test_a_python_module_gets_the_list_of_its_constants() -> None:
    got: list[list[float]] = []
    loader = get_global_func("runtime.ConstLoaderModuleCreate")({"a": np.float32([1]), "b": np.float32([2])}, {"f": ["b", "a"]})
    loader.import_module(PythonModule({"f": lambda: 7, "__init_f": lambda tensors: got.append([t.numpy()[0] for t in tensors])}))
    assert loader.implements_function("f") and not got
    assert loader["f"]() == 7 == loader["f"]() and got == [[2, 1]]


def test_constants_that_are_missing_or_refused_are_named() -> None:
    with pytest.raises(ArgumentError, match="'f' needs the constants b, which nobody gave; there are: a"):
        ConstLoaderModule({"a": np.float32([1])}, {"f": ["a", "b"]})
    loader = ConstLoaderModule({}, {"f": []})
    loader.import_module(PythonModule({"f": lambda: 7, "__init_f": lambda tensors: 3}))
    with pytest.raises(BuildError, match="__init_f refused the constants.*returned 3"):
        loader["f"]


@needs_compiler
@pytest.mark.parametrize("link", [True, False])
def test_imported_code_and_constants_are_in_the_file(tmp_path: Path, link: bool) -> None:
    root = CompiledModule([], {})
    root.import_module(plus())
    root.import_module(CSourceModule(TWICE, "c", ["twice"]))
    file = root.export_library(tmp_path / "model.so", link=link)
    for _ in range(2):
        loaded = load_module(file)
        assert call(loaded, "plus") == [11, 22, 33] and call(loaded, "twice") == [2, 4, 6]
        if not link:
            file = loaded.export_library(tmp_path / "again.tar", link=False)


def test_c_code_is_not_compiled_for_the_wrong_machine(tmp_path: Path) -> None:
    root = CompiledModule([], {}, "riscv64-unknown-linux-gnu")
    root.import_module(CSourceModule(TWICE, "c", ["twice"]))
    for link in (True, False, None):
        with pytest.raises(BuildError, match="functions twice are C code.*but the model is for riscv64-unknown-linux-gnu: name a compiler for that with cc="):
            root.export_library(tmp_path / "model.so", link=link)


class Archived(PythonModule):
    """A module of a kind of its own."""

    type_key = "test_archived"

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__({"number": lambda: number})

    def save_to_bytes(self) -> bytes:
        return str(self.number).encode()


def test_modules_of_other_kinds_write_and_read_themselves(tmp_path: Path) -> None:
    root = CompiledModule([], {})
    root.import_module(Archived(5))
    file = root.export_library(tmp_path / "model.tar")
    with pytest.raises(ArtifactError, match="kind 'test_archived'; register runtime.module.loadbinary_test_archived"):
        load_module(file)
    register_func("runtime.module.loadbinary_test_archived", lambda data: Archived(int(data)))
    assert load_module(file).get_function("number", True)() == 5
    register_func("runtime.module.loadbinary_test_archived", lambda data: 3, override=True)
    with pytest.raises(ArtifactError, match="return a runtime Module, got int"):
        load_module(file)
    remove_global_func("runtime.module.loadbinary_test_archived")


def test_a_module_that_lives_in_this_process_only_is_named(tmp_path: Path) -> None:
    root = CompiledModule([], {})
    root.import_module(PythonModule({"accelerated": lambda: None}))
    with pytest.raises(ArtifactError, match="module of kind 'python' with accelerated cannot be written.*CSourceModuleCreate"):
        root.export_library(tmp_path / "model.tar")
    assert not (tmp_path / "model.tar").exists()


@needs_compiler
def test_an_opened_library_knows_its_names() -> None:
    module = open_library(CSourceModule(TWICE, "c", ["twice"]).shared_library(), ["twice"])
    assert call(module, "twice") == [2, 4, 6] and not module.implements_function("TVMGetLastError")
