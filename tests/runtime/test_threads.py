"""The thread pool: every task once, nesting, several launchers, fork, thread counts, both ways of waiting."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from anchorleg.runtime import llvm, native, threads

# task i adds i + 1 to cell i of the closure; odd tasks of `fussy` fail
WORK = """
declare i32 @al_parallel_launch(ptr, ptr, i32)
define i32 @mark(i32 %t, i32 %n, ptr %cells) {
  %p = getelementptr i32, ptr %cells, i32 %t
  %old = load i32, ptr %p, align 4
  %v = add i32 %t, 1
  %new = add i32 %old, %v
  store i32 %new, ptr %p, align 4
  ret i32 0
}
define i32 @fussy(i32 %t, i32 %n, ptr %cells) {
  %odd = and i32 %t, 1
  ret i32 %odd
}
define i32 @outer(i32 %t, i32 %n, ptr %cells) {
  %off = mul i32 %t, 10
  %p = getelementptr i32, ptr %cells, i32 %off
  %r = call i32 @al_parallel_launch(ptr @mark, ptr %p, i32 10)
  ret i32 %r
}
define i32 @many(i32 %times, ptr %cells, i32 %tasks) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %loop ]
  %r = call i32 @al_parallel_launch(ptr @mark, ptr %cells, i32 %tasks)
  %i2 = add i32 %i, 1
  %more = icmp slt i32 %i2, %times
  br i1 %more, label %loop, label %out
out:
  ret i32 %r
}
"""
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_MANY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class Pool:
    """A pool of its own, with the work above linked to it."""

    def __init__(self, count: int, condvar: bool) -> None:
        text = threads.runtime_text(llvm.host_triple(), condvar)
        self.base = native._link([llvm.compile_text(text)], list(threads.EXPORTS), {}, "pool")
        known = {name: self.base[name] for name in threads.EXPORTS}
        self.work = native._link([llvm.compile_text(WORK)], ["mark", "fussy", "outer", "many"], known, "work")
        ctypes.CFUNCTYPE(None, ctypes.c_int)(self.base["al_set_num_threads"])(count)
        self.launch = _LAUNCH(self.base["al_parallel_launch"])
        self.many = _MANY(self.work["many"])


_pools: dict = {}


@pytest.fixture(params=[(1, False), (2, False), (4, False), (3, True)], ids=["1", "2", "4", "3-condvar"])
def pool(request) -> Pool:
    # workers cannot be stopped, so pools live as long as the process
    if request.param not in _pools:
        _pools[request.param] = Pool(*request.param)
    return _pools[request.param]


def run(pool: Pool, name: str, cells: np.ndarray, tasks: int) -> int:
    return pool.launch(pool.work[name], cells.ctypes.data, tasks)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 255, 256, 257, 1000])
def test_every_task_once(pool, tasks):
    cells = np.zeros(tasks, np.int32)
    for _ in range(20):
        assert run(pool, "mark", cells, tasks) == 0
    np.testing.assert_array_equal(cells, 20 * np.arange(1, tasks + 1))


def test_back_to_back_with_changing_sizes(pool):
    cells = np.zeros(64, np.int32)
    expected = np.zeros(64, np.int64)
    for round_ in range(200):
        tasks = 1 + round_ * 7 % 64
        assert pool.many(5, cells.ctypes.data, tasks) == 0
        expected[:tasks] += 5 * np.arange(1, tasks + 1)
    np.testing.assert_array_equal(cells, expected)


def test_wakes_after_sleep(pool):
    cells = np.zeros(8, np.int32)
    for _ in range(5):
        time.sleep(0.005)
        run(pool, "mark", cells, 8)
    np.testing.assert_array_equal(cells, 5 * np.arange(1, 9))


def test_default_task_count_is_the_number_of_threads(pool):
    count = ctypes.CFUNCTYPE(ctypes.c_int)(pool.base["al_num_threads"])()
    cells = np.zeros(16, np.int32)
    run(pool, "mark", cells, 0)
    assert np.count_nonzero(cells) == count


def test_error_of_a_task_is_returned(pool):
    cells = np.zeros(8, np.int32)
    assert run(pool, "fussy", cells, 8) == 1
    assert run(pool, "fussy", cells, 1) == 0
    assert run(pool, "mark", cells, 8) == 0


def test_nested(pool):
    cells = np.zeros(80, np.int32)
    assert run(pool, "outer", cells, 8) == 0
    np.testing.assert_array_equal(cells.reshape(8, 10), np.tile(np.arange(1, 11), (8, 1)))


def test_several_python_threads(pool):
    blocks = [np.zeros(16, np.int32) for _ in range(4)]

    def work(cells: np.ndarray) -> None:
        for _ in range(20):
            pool.many(20, cells.ctypes.data, 16)

    workers = [threading.Thread(target=work, args=(block,)) for block in blocks]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for block in blocks:
        np.testing.assert_array_equal(block, 400 * np.arange(1, 17))


SCRIPT = """
import ctypes, os, sys
from anchorleg.runtime import native, llvm
import numpy as np
body = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
code = llvm.compile_text('''
define i32 @mark(i32 %t, i32 %n, ptr %cells) {
  %p = getelementptr i32, ptr %cells, i32 %t
  store i32 1, ptr %p, align 4
  ret i32 0
}''')
library = native.NativeLibrary.from_objects([code], ["mark"])
launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(
    native.runtime_library()["al_parallel_launch"])
def go():
    cells = np.zeros(32, np.int32)
    for _ in range(50):
        cells[:] = 0
        launch(library["mark"], cells.ctypes.data, 32)
        assert cells.all()
go()
print(native.get_num_threads(), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else -1)
sys.stdout.flush()
pid = os.fork()
go()
if pid == 0:
    print("child", native.get_num_threads())
    sys.stdout.flush()
    os._exit(0)
_, status = os.waitpid(pid, 0)
print("status", status)
"""


def _script(count: int) -> list[str]:
    env = {**os.environ, "ANCHORLEG_NUM_THREADS": str(count), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("count", [1, 3])
def test_after_fork(count):
    lines = _script(count)
    assert lines[0].split()[0] == str(count)
    assert f"child {count}" in lines and "status 0" in lines
    if lines[0].split()[1] != "-1":
        assert int(lines[0].split()[1]) == count  # one thread starts no workers


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin23", "riscv64-unknown-linux-gnu"])
def test_text_is_valid_for_other_systems(triple):
    module = llvm.binding().parse_assembly(threads.runtime_text(triple) + threads.error_text())
    module.verify()
