"""Modules: lookup, imports, timing, sources."""

from __future__ import annotations

import subprocess
import sys

import pytest

from anchorleg.runtime import BenchmarkResult, cpu, enabled, get_global_func, num_threads, register_func, remove_global_func, system_lib
from anchorleg.runtime.module import PythonModule
from anchorleg.runtime.profiling import measure
from anchorleg.support.errors import ArgumentError


def test_lookup_and_imports():
    inner = PythonModule({"f": lambda: "inner", "g": lambda: "g"})
    outer = PythonModule({"f": lambda: "outer"}, entry="f")
    outer.import_module(inner)
    assert outer["f"]() == outer() == "outer" and outer.get_function("g", query_imports=True)() == "g"
    with pytest.raises(AttributeError):
        outer.get_function("g")
    assert outer.implements_function("g", True) and not outer.implements_function("h", True)
    assert outer.imported_modules == [inner]
    with pytest.raises(ArgumentError, match="import itself"):
        inner.import_module(outer)
    with pytest.raises(ArgumentError, match="cannot be saved"):
        outer.save("x")


def test_time_evaluator():
    calls = []
    module = PythonModule({"f": calls.append})
    result = module.time_evaluator("f", cpu(0), number=3, repeat=4)(1)
    assert len(result.results) == 4 and len(calls) == 13
    module.time_evaluator("f", cpu(0), number=1, repeat=2, cache_flush_bytes=1024)(1)


def test_min_repeat():
    calls = []
    measure(lambda: calls.append(1), number=1, repeat=1, min_repeat_ms=2)
    assert len(calls) > 100


def test_result():
    result = BenchmarkResult([0.001, 0.002, 0.006])
    assert (result.mean, result.median, result.max, result.min) == pytest.approx((0.003, 0.002, 0.006, 0.001))
    assert str(result).splitlines()[2].split() == ["3.0000", "2.0000", "6.0000", "1.0000", "2.1602"]


def test_sources(library):
    with pytest.raises(ArgumentError, match="no source of format 'll'"):
        library.get_source()
    library._sources["ll"] = lambda: "define"
    assert library.get_source("ll") == "define"


def test_system_library():
    register_func("testlib.f", lambda: 4)
    try:
        assert system_lib("testlib.")["f"]() == 4
    finally:
        remove_global_func("testlib.f")
    assert get_global_func("testlib.f", allow_missing=True) is None


def test_enabled():
    assert enabled("llvm -mcpu=x") and enabled("cpu") and not enabled("nonsense") and num_threads() >= 1


def test_importing_the_runtime_loads_no_llvm_and_no_compiler():
    script = (
        "import sys, anchorleg.runtime, anchorleg.contrib.graph_executor\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('llvmlite', 'onnx')]\n"
        "rooms = {m.split('.')[1] for m in sys.modules if m.startswith('anchorleg.')}\n"
        "assert not loaded, loaded\n"
        "assert rooms <= {'runtime', 'support', 'contrib'}, rooms\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
