"""The pytest plugin and the fixtures, by running pytest on small files."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAD = "import pytest\nfrom anchorleg import testing\n"


def run_pytest(tmp_path, text, *args, targets="llvm"):
    (tmp_path / "test_it.py").write_text(HEAD + text)
    env = {**os.environ, "TVM_TEST_TARGETS": targets}
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "anchorleg.testing.plugin", "-p", "no:cacheprovider", "-v", "-rA", *args,
                           str(tmp_path / "test_it.py")], capture_output=True, text=True, env=env, cwd=tmp_path)
    return done.stdout + done.stderr


def test_targets_and_devices(tmp_path):
    out = run_pytest(tmp_path, """
def test_default(target, dev): assert target == "llvm" and dev.exist
@testing.parametrize_targets("llvm", "cuda")
def test_two(target): pass
@testing.known_failing_targets("llvm")
def test_failing(target): assert False
@testing.exclude_targets("llvm")
def test_excluded(target): pass
@testing.requires_cuda
def test_needs_cuda(): assert False
@testing.uses_gpu
def test_anywhere(): pass
@testing.requires_package("no_such_package_here")
def test_package(): assert False
""")
    assert "test_default[llvm] PASSED" in out and "test_two[llvm] PASSED" in out and "test_two[cuda] SKIPPED" in out
    assert "test_failing[llvm] XFAIL" in out and "test_needs_cuda SKIPPED" in out and "test_anywhere PASSED" in out
    assert "test_package SKIPPED" in out and " failed" not in out.splitlines()[-1], out


def test_parameters(tmp_path):
    out = run_pytest(tmp_path, """
size = testing.parameter(1, 2)
kind = testing.parameter(by_dict={"a": 10, "b": 20})
left, right = testing.parameters((1, 2), (3, 4))
calls = []
@testing.fixture(cache_return_value=True)
def costly(size):
    calls.append(size)
    return [size]
def test_all(size, kind): pass
def test_pairs(left, right): assert right == left + 1
def test_cached(costly, kind):
    assert len(costly) == 1
    costly.append("changed")
def test_calls(): assert sorted(calls) == [1, 2]
class TestInside:
    inner = testing.parameter("x", "y")
    def test_inner(self, inner): assert inner in "xy"
""")
    assert out.count("test_all[") >= 4 and "test_pairs[1-2]" in out and "test_pairs[3-4]" in out and "test_pairs[1-4]" not in out
    assert " failed" not in out.splitlines()[-1] and "error" not in out.splitlines()[-1], out


def test_comparing_passes(tmp_path):
    out = run_pytest(tmp_path, """
from anchorleg import relay
from anchorleg.ir import IRModule
X = relay.var("x", shape=(2,))
def program(body): return relay.transform.InferType()(IRModule.from_expr(relay.Function([X], body)))
class TestSame(testing.CompareBeforeAfter):
    transform = relay.transform.SimplifyExpr()
    def before(self): return program(relay.reshape(relay.reshape(X, (1, 2)), (2, 1)))
    def expected(self): return program(relay.reshape(X, (2, 1)))
class TestDiffers(TestSame):
    def expected(self): return program(relay.reshape(X, (1, 2)))
class TestRaises(testing.CompareBeforeAfter):
    transform = relay.transform.InferType()
    Before = IRModule({"main": relay.Function([X], relay.add(X, relay.const([1.0, 2.0, 3.0])))})
    expected = TypeError
""")
    assert "TestSame::test_compare PASSED" in out and "TestDiffers::test_compare FAILED" in out and "TestRaises::test_compare PASSED" in out, out


@pytest.mark.parametrize("flag, expected", [("USE_LLVM", "ON"), ("USE_CUDA", "OFF")])
def test_build_options(flag, expected):
    from anchorleg.support import libinfo

    assert libinfo()[flag] == expected
