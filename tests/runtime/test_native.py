"""Native libraries: linking, missing names, foreign machines, packed calls, shared libraries."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from anchorleg.runtime import array, empty, llvm, load_module, native
from anchorleg.runtime.native import NativeLibrary
from anchorleg.support.errors import AnchorlegError, ArgumentError, ArtifactError, TypeMismatchError

ECHO = """
; returns its first argument: value and type code
define i32 @echo(ptr %args, ptr %codes, i32 %n, ptr %ret, ptr %rcode, ptr %res) {
  %v = load i64, ptr %args, align 8
  %c = load i32, ptr %codes, align 4
  store i64 %v, ptr %ret, align 8
  store i32 %c, ptr %rcode, align 4
  ret i32 0
}
"""


@pytest.fixture(scope="module")
def echo():
    return native.packed_function(NativeLibrary.from_objects([llvm.compile_text(ECHO)], ["echo"]), "echo")


@pytest.mark.parametrize("value", [0, -5, 1 << 40, 2.5, "text", "", None])
def test_values_round_trip(echo, value):
    assert echo(value) == value


def test_numpy_numbers(echo):
    assert echo(np.int32(7)) == 7 and echo(np.float32(0.5)) == 0.5 and echo(True) == 1


def test_unsupported_argument(echo):
    with pytest.raises(TypeMismatchError, match="argument 1: a dict"):
        echo(1, {})


def test_function_keeps_its_library(echo):
    function = native.packed_function(NativeLibrary.from_objects([llvm.compile_text(ECHO)], ["echo"]), "echo")
    gc.collect()
    assert function(3) == 3


def test_tensor_argument_and_error_text(library):
    rank = library["rank"]
    assert rank(array(np.zeros((2, 3)))) == 2
    assert rank(np.zeros((1, 2, 3), np.float32)) == 3
    with pytest.raises(AnchorlegError, match="rank: bad rank"):
        rank(empty(()))


def test_missing_names_are_an_error_not_a_crash():
    code = llvm.compile_text("declare void @nowhere_to_be_found()\ndefine void @f() {\n call void @nowhere_to_be_found()\n ret void\n}")
    with pytest.raises(ArtifactError, match="nowhere_to_be_found"):
        NativeLibrary.from_objects([code], ["f"], name="broken")
    with pytest.raises(ArtifactError, match="absent"):
        NativeLibrary.from_objects([llvm.compile_text(ECHO)], ["absent"])


def test_damaged_code():
    code = llvm.compile_text(ECHO)
    for bad in (code[:100], b"", b"not an object at all", code[: len(code) // 2]):
        with pytest.raises(ArtifactError):
            NativeLibrary.from_objects([bad], ["echo"])


def test_foreign_machines():
    code = [llvm.compile_text(ECHO)]
    with pytest.raises(ArtifactError, match="was built for sparc-sun-solaris"):
        NativeLibrary.from_objects(code, ["echo"], "sparc-sun-solaris")
    with pytest.raises(ArtifactError, match="lacks: avx9000, zzz"):
        NativeLibrary.from_objects(code, ["echo"], "", ["zzz", "avx9000"])


def test_imports_and_process_symbols():
    code = llvm.compile_text("""
declare double @cos(double)
@given = external global i64
define i64 @f() {
  %c = call double @cos(double 0.0)
  %i = fptosi double %c to i64
  %g = load i64, ptr @given
  %r = add i64 %i, %g
  ret i64 %r
}""")
    import ctypes

    cell = ctypes.c_int64(41)
    library = NativeLibrary.from_objects([code], ["f"], imports={"given": ctypes.addressof(cell)})
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library["f"])() == 42


def test_lookup():
    library = NativeLibrary.from_addresses({"a": 16}, name="table")
    assert "a" in library and library.address("b") is None
    with pytest.raises(ArgumentError, match="no symbol 'b'"):
        library["b"]


def test_no_such_shared_library(tmp_path):
    (tmp_path / "lib.so").write_bytes(b"\x7fELF nonsense")
    with pytest.raises(ArtifactError, match="cannot load the shared library|is cut short"):
        load_module(tmp_path / "lib.so")
    with pytest.raises(ArtifactError, match="No such file"):
        load_module(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("hello")
    with pytest.raises(ArtifactError, match="neither"):
        load_module(tmp_path / "text.so")


def test_set_num_threads():
    before = native.get_num_threads()
    try:
        native.set_num_threads(before + 1)
        assert native.get_num_threads() == before + 1
        with pytest.raises(ArgumentError):
            native.set_num_threads(0)
    finally:
        native.set_num_threads(before)
