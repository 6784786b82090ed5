"""An executable in memory as the native loop wants it: words of code, constants as objects, records of kernels.

An image is read only and shared by all machines of an executable.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...support.errors import ArgumentError, ArtifactError
from ..device import cpu
from ..dtype import DataType
from ..graph_executor import Kernel, kernels_of
from ..graph_runner import runner
from ..ndarray import aligned
from ..packed_func import PackedFunc
from ..packed_node import PackedNode
from .executable import Executable, PackedEntry
from .native_core import core
from .translate import Translator, dtype_words

_KIND = {"kernel": 0, "shape": 1, "host": 2}
_OUT = 16  # the step of a shape program that writes a size


class Image:
    """The tables of one executable."""

    def __init__(self, exe: Executable) -> None:
        core()
        self.exe = exe
        self._keep: list[Any] = []
        self.constants = self._place_constants()
        self.kernels: dict[int, Kernel] = {}
        self.host: dict[int, Any] = {}
        self.most_args, self.most_steps = 64, 16
        self.kernel_table = self._place_kernels()
        self.translated = [Translator(f, exe.constant_data).run() for f in exe.functions]
        self.functions = self._place_functions()

    def words(self, values: Any) -> np.ndarray:
        """A table of words that lives as long as the image."""
        table = np.array(values if len(values) else [0], np.int64)
        self._keep.append(table)
        return table

    def _place_constants(self) -> np.ndarray:
        """Tensor objects for the constants, never freed."""
        addresses = []
        for i, data in enumerate(self.exe.constant_data):
            if data is None:
                name = self.exe.late_names.get(i, f"number {i}")
                raise ArgumentError(f"constant {name!r} is bound late and not there yet: call load_late_bound_consts first")
            tensor = aligned(data)
            code, item = dtype_words(tensor.dtype)
            self._keep.append(tensor)
            addresses.append(self.words([-1, 1, tensor.data_ptr, 0, len(tensor.shape), code, item, *tensor.shape]).ctypes.data)
        return self.words(addresses)

    def _place_kernels(self) -> np.ndarray:
        found = kernels_of(self.exe.lib) if self.exe.lib is not None else {}
        return self.words([self._record(i, entry, found).ctypes.data for i, entry in enumerate(self.exe.packed)])

    def _record(self, i: int, entry: PackedEntry, found: Any) -> np.ndarray:
        total = entry.num_inputs + entry.num_outputs
        self.most_args = max(self.most_args, total + len(entry.implicit) + 2)
        if entry.kind == "shape":
            return self.words([1, self._program(entry)])
        if entry.kind == "host":
            return self.words([2])
        kernel = found.get(entry.name)
        if kernel is None:
            raise ArtifactError(f"the library has no function {entry.name!r} that the executable calls"
                                + (": import the module with its code into the library" if entry.kind == "external" else ""))
        if not isinstance(kernel, Kernel):
            self.host[i] = kernel
            return self._native_node(kernel, entry) if kernel.handle and entry.payload else self.words([2])
        self.kernels[i] = kernel
        where = self.words([w for pair in entry.implicit for w in pair])
        return self.words([0, kernel.address, runner().thunk(total + len(entry.implicit) + 1), len(entry.implicit), where.ctypes.data])

    def _native_node(self, function: PackedFunc, entry: PackedEntry) -> np.ndarray:
        """A packed function of native code whose tensors' shapes are known: the loop calls it itself."""
        node = PackedNode(function, [(tuple(shape), DataType(dtype), cpu(0)) for shape, dtype in entry.payload])
        self._keep.append(node)
        return self.words([0, node.address, runner().packed_thunk, 0, 0])

    def _program(self, entry: PackedEntry) -> int:
        steps = entry.payload["steps"]
        self.most_steps = max(self.most_steps, len(steps) + 1)
        flat = [len(steps)]
        for op, a, b, c in steps:
            flat += [op, a + entry.num_inputs if op == _OUT else a, b, c]
        return self.words(flat).ctypes.data

    def _place_functions(self) -> np.ndarray:
        table = []
        for func, code in zip(self.exe.functions, self.translated):
            words = np.zeros(max(1, len(code.words)), np.int64)
            words[:len(code.words)] = code.place(words.ctypes.data)
            self._keep.append(words)
            table += [words.ctypes.data, func.register_file_size]
            self.most_args = max(self.most_args, len(func.params) + 2)
        return self.words(table)

    def workspace_bytes(self, threads: int) -> int:
        """The scratch memory that the most demanding kernel needs."""
        return max((k.workspace_bytes + threads * k.workspace_bytes_per_task for k in self.kernels.values()), default=0) + 64

    def where(self, pc: int) -> str:
        """The function and instruction at an address, for messages."""
        for func, code, start in zip(self.exe.functions, self.translated, self.functions[::2]):
            at = (pc - int(start)) // 8
            if 0 <= at < max(1, len(code.words)):
                number = next((s for s, p in zip(reversed(code.sources), reversed(code.places)) if p <= at), 0)
                return f"function {func.name!r}, instruction {number} ({func.instructions[number].text()})"
        return "an unknown place"


def image_of(exe: Executable) -> Image:
    """The executable's image, made at first use."""
    if exe._image is None:
        exe._image = Image(exe)
    return exe._image


__all__ = ["Image", "image_of"]
