"""The native loop that runs a graph's nodes, and the small functions that spread an argument table into a call.

A node is three words: a *thunk*, the kernel's address, and the address of the node's argument pointers.  The thunk for
*n* arguments loads *n* pointers and calls the kernel; `al_graph_run` walks the nodes.  Nothing has to be compiled for a
new graph, however many nodes it has, and an argument is redirected by storing another pointer in the table.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable

from . import llvm as _llvm
from .native import NativeLibrary
from .packed_node import THUNK

_COMMON_ARITIES = range(1, 25)

_LOOP = """
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

; runs nodes in order; returns -1, or the index of the node that failed, whose status is stored
define i64 @al_graph_run(ptr %nodes, i64 %count, ptr %status) {
entry:
  %none = icmp sle i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i2, %next ]
  %node = getelementptr inbounds [3 x ptr], ptr %nodes, i64 %i
  %fnat = getelementptr inbounds ptr, ptr %node, i64 1
  %argsat = getelementptr inbounds ptr, ptr %node, i64 2
  %thunk = load ptr, ptr %node, align 8
  %fn = load ptr, ptr %fnat, align 8
  %args = load ptr, ptr %argsat, align 8
  %r = call i32 %thunk(ptr %fn, ptr %args)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %next, label %failed
next:
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %count
  br i1 %more, label %loop, label %done
failed:
  store i32 %r, ptr %status, align 4
  ret i64 %i
done:
  ret i64 -1
}

; a copy node: the "kernel address" is the number of bytes, the arguments are source and destination
define i32 @al_call_copy(ptr %fn, ptr %args) {
  %to = getelementptr inbounds ptr, ptr %args, i64 1
  %src = load ptr, ptr %args, align 8
  %dst = load ptr, ptr %to, align 8
  %size = ptrtoint ptr %fn to i64
  call void @llvm.memmove.p0.p0.i64(ptr %dst, ptr %src, i64 %size, i1 false)
  ret i32 0
}
"""


def _thunk(arity: int) -> str:
    lines = [f"define i32 @al_call_{arity}(ptr %fn, ptr %args) {{"]
    for i in range(arity):
        lines.append(f"  %p{i} = getelementptr inbounds ptr, ptr %args, i64 {i}")
        lines.append(f"  %a{i} = load ptr, ptr %p{i}, align 8")
    arguments = ", ".join(f"ptr %a{i}" for i in range(arity))
    return "\n".join([*lines, f"  %r = call i32 %fn({arguments})", "  ret i32 %r", "}"])


class Runner:
    """The native loop of this process and its thunks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[NativeLibrary] = []
        self._thunks: dict[int, int] = {}
        base = self._load(_LOOP + THUNK, _COMMON_ARITIES, ["al_graph_run", "al_call_copy", "al_call_packed_node"])
        self.copy_thunk, self.packed_thunk = base["al_call_copy"], base["al_call_packed_node"]
        self.run_address = base["al_graph_run"]
        self.run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(self.run_address)

    def _load(self, head: str, arities: Iterable[int], extra: list[str]) -> NativeLibrary:
        wanted = list(arities)
        text = "\n".join([f'target triple = "{_llvm.host_triple()}"', head, *map(_thunk, wanted)])
        symbols = extra + [f"al_call_{n}" for n in wanted]
        library = NativeLibrary.from_objects([_llvm.compile_cached(text)], symbols, name="anchorleg-runner")
        self._libraries.append(library)
        self._thunks.update({n: library[f"al_call_{n}"] for n in wanted})
        return library

    def thunk(self, arity: int) -> int:
        """The address of the function that calls a kernel with ``arity`` pointers."""
        found = self._thunks.get(arity)
        if found is None:
            with self._lock:
                if arity not in self._thunks:
                    self._load("", [arity], [])
                found = self._thunks[arity]
        return found


_runner: Runner | None = None
_runner_lock = threading.Lock()


def runner() -> Runner:
    """The process's runner, made at first use."""
    global _runner
    if _runner is None:
        with _runner_lock:
            if _runner is None:
                _runner = Runner()
    return _runner
