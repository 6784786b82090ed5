"""Running a model compiled ahead of time: one call of its entry with pointers to inputs, results and working memory."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..support.errors import ArgumentError, ArtifactError
from .artifact import pack_tensors, unpack_tensors
from .compiled import CompiledModule
from .device import Device, cpu
from .module import Module, PythonModule, register_loader
from .native import get_num_threads, last_error_text
from .ndarray import NDArray, array, empty, tensor_at
from .packed_func import PackedFunc
from .profiling import BenchmarkResult, measure

_ALIGNMENT = 64


class TensorFacts(NamedTuple):
    """An input or a result: the model's name, the C name, shape, dtype."""

    name: str
    symbol: str
    shape: tuple[int, ...]
    dtype: str


class AotFacts(NamedTuple):
    """How a model's entry is called.

    ``structures`` are the arrays of pointers it takes, in order: of "inputs", "outputs", "workspace_pools" and "params";
    ``pools`` the bytes of each pool, ``scratch`` further bytes (fixed, per thread) that come as one more pool.  ``maps`` names the two
    functions that say where inputs and results lie, for models that hold them in their workspace.  ``own_memory`` says that the code has
    working memory of its own, so that one run is at a time.
    """

    entry: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    structures: tuple[str, ...]
    pools: tuple[tuple[str, int], ...] = ()
    scratch: tuple[int, int] | None = None
    params: tuple[str, ...] = ()
    maps: tuple[str, str] | None = None
    own_memory: bool = False

    def to_json(self) -> dict:
        """The facts as plain data."""
        return {"entry": self.entry, "inputs": [list(t) for t in self.inputs], "outputs": [list(t) for t in self.outputs],
                "structures": list(self.structures), "pools": [list(p) for p in self.pools],
                "scratch": list(self.scratch) if self.scratch else None, "params": list(self.params),
                **({"maps": list(self.maps)} if self.maps else {}), **({"own_memory": True} if self.own_memory else {})}

    @staticmethod
    def from_json(data: Mapping) -> AotFacts:
        """The facts from plain data."""
        def tensors(rows: Sequence) -> tuple[TensorFacts, ...]:
            return tuple(TensorFacts(str(n), str(s), tuple(map(int, shape)), str(d)) for n, s, shape, d in rows)

        scratch, maps = data.get("scratch"), data.get("maps")
        return AotFacts(str(data["entry"]), tensors(data["inputs"]), tensors(data["outputs"]), tuple(map(str, data["structures"])),
                        tuple((str(n), int(s)) for n, s in data["pools"]), (int(scratch[0]), int(scratch[1])) if scratch else None,
                        tuple(map(str, data["params"])), (str(maps[0]), str(maps[1])) if maps else None, bool(data.get("own_memory")))


def pool_contents_name(pool: str) -> str:
    """The name under which a factory keeps what a pool of constants holds."""
    return f"contents of {pool}"


class _Memory:
    """Aligned memory that nothing moves."""

    def __init__(self, size: int) -> None:
        self.block = np.zeros(max(1, size) + _ALIGNMENT, np.uint8)
        address = self.block.ctypes.data
        self.address = -(-address // _ALIGNMENT) * _ALIGNMENT


class _Turn:
    """A lock for the runs of one entry: whoever has loaded the code, its own memory is there once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_TURNS: "weakref.WeakValueDictionary[int, _Turn]" = weakref.WeakValueDictionary()
_TURNS_LOCK = threading.Lock()


def _turn_of(address: int) -> _Turn:
    """The lock of the entry at an address of this process."""
    with _TURNS_LOCK:
        found = _TURNS.get(address)
        if found is None:
            found = _TURNS[address] = _Turn()
        return found


def _address(tensor: NDArray) -> int:
    handle = tensor.handle.contents
    return (handle.data or 0) + handle.byte_offset


class AotExecutor:
    """One instance of a model: its inputs, its results, its working memory.

    Parameters
    ----------
    code : the code, with what it imports.
    facts : how it is called.
    params : parameter name → tensor, for models whose parameters are not linked in.
    """

    def __init__(self, code: CompiledModule, facts: AotFacts, params: Mapping[str, NDArray], device: Device) -> None:
        self.facts, self.device, self._code, self._params = facts, device, code, dict(params)
        self._library = code.native()
        self._input_numbers = {**{t.symbol: i for i, t in enumerate(facts.inputs)}, **{t.name: i for i, t in enumerate(facts.inputs)}}
        self._output_numbers = {**{t.symbol: i for i, t in enumerate(facts.outputs)}, **{t.name: i for i, t in enumerate(facts.outputs)}}
        self._pools = [_Memory(size) for _, size in facts.pools]
        for (name, _), memory in zip(facts.pools, self._pools):
            contents = self._params.get(pool_contents_name(name))
            if contents is not None:
                ctypes.memmove(memory.address, _address(contents), contents.nbytes)
        if facts.scratch is not None:
            self._pools.append(_Memory(facts.scratch[0] + get_num_threads() * facts.scratch[1]))
        self.inputs = [empty(t.shape, t.dtype, device) for t in facts.inputs]
        self.outputs = [empty(t.shape, t.dtype, device) for t in facts.outputs]
        self._mapped_inputs, self._mapped_outputs = self._mapped(facts.inputs, 0), self._mapped(facts.outputs, 1)
        self._turn = _turn_of(self._library[facts.entry]) if facts.own_memory else _Turn()
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * len(facts.structures))(self._library[facts.entry])
        self._arguments = self._bind()

    def _mapped(self, tensors: Sequence[TensorFacts], which: int) -> list[NDArray]:
        """The places in the workspace that a model names for its inputs or results; none for models that take pointers."""
        if self.facts.maps is None or not tensors:
            return []
        members = [(f"m{i}", ctypes.c_void_p) for i in range(len(tensors))]
        structure = type("Pointers", (ctypes.Structure,), {"_fields_": members})
        pools = (ctypes.c_void_p * max(1, len(self._pools)))(*(p.address for p in self._pools))
        given = [ctypes.addressof(pools)] if "workspace_pools" in self.facts.structures else []
        found = ctypes.CFUNCTYPE(structure, *[ctypes.c_void_p] * len(given))(self._library[self.facts.maps[which]])(*given)
        return [tensor_at(getattr(found, name), t.shape, t.dtype, self) for (name, _), t in zip(members, tensors)]

    def _bind(self) -> list[Any]:
        pointers = {
            "inputs": [_address(t) for t in self.inputs], "outputs": [_address(t) for t in self.outputs],
            "workspace_pools": [p.address for p in self._pools], "params": [_address(self._params[n]) for n in self.facts.params],
        }
        return [(ctypes.c_void_p * max(1, len(pointers[s])))(*pointers[s]) for s in self.facts.structures]

    def run(self) -> None:
        """One inference."""
        with self._turn.lock:
            for place, value in zip(self._mapped_inputs, self.inputs):
                place.copyfrom(value)
            status = self._call(*self._arguments)
            for place, result in zip(self._mapped_outputs, self.outputs):
                result.copyfrom(place)
        if status != 0:
            text = last_error_text() or self._code.foreign_error()
            raise ArgumentError(f"{self.facts.entry}: the model failed with status {status}" + (f": {text}" if text else ""))

    def input_number(self, key: "str | int") -> int:
        """The number of an input by name (as in the model, or as in C) or number."""
        return _number(key, self._input_numbers, len(self.inputs), "input")

    def output_number(self, key: "str | int") -> int:
        """The number of a result by name or number."""
        return _number(key, self._output_numbers, len(self.outputs), "output")

    def set_input(self, key: "str | int", value: object) -> None:
        """Copy a value into an input."""
        target = self.inputs[self.input_number(key)]
        target.copyfrom(value if isinstance(value, NDArray) else np.asarray(value, dtype=None))

    def set_input_zero_copy(self, key: "str | int", value: NDArray) -> None:
        """Let an input be the caller's memory."""
        number = self.input_number(key)
        self._check(value, self.facts.inputs[number])
        self.inputs[number] = value
        self._arguments = self._bind()

    def set_output_zero_copy(self, key: "str | int", value: NDArray) -> None:
        """Let a result be written to the caller's memory."""
        number = self.output_number(key)
        self._check(value, self.facts.outputs[number])
        self.outputs[number] = value
        self._arguments = self._bind()

    def _check(self, value: NDArray, facts: TensorFacts) -> None:
        if tuple(value.shape) != facts.shape or str(value.dtype) != facts.dtype:
            raise ArgumentError(f"{facts.name!r} is expected to be {facts.dtype}{list(facts.shape)}, got {value.dtype}{list(value.shape)}")


def _number(key: "str | int", names: Mapping[str, int], count: int, what: str) -> int:
    if isinstance(key, str):
        if key not in names:
            raise ArgumentError(f"Invalid {what} name. {key!r} is not one of: {', '.join(names)}")
        return names[key]
    if not 0 <= int(key) < count:
        raise ArgumentError(f"Invalid {what} number {key}: there are {count}")
    return int(key)


class AotExecutorModule(PythonModule):
    """The functions of one instance, by upstream's names."""

    type_key = "AotExecutor"

    def __init__(self, executor: AotExecutor) -> None:
        self.executor = executor
        super().__init__({
            "set_input": executor.set_input, "run": executor.run, "get_input": lambda key: executor.inputs[executor.input_number(key)],
            "get_output": self._get_output, "get_num_outputs": lambda: len(executor.outputs), "get_num_inputs": lambda: len(executor.inputs),
            "get_input_index": executor.input_number, "get_output_index": executor.output_number,
            "get_input_name": lambda i: executor.facts.inputs[int(i)].name, "get_output_name": lambda i: executor.facts.outputs[int(i)].name,
            "get_input_info": self._info, "set_input_zero_copy": executor.set_input_zero_copy, "set_output_zero_copy": executor.set_output_zero_copy,
        })

    def _get_output(self, key: "str | int", out: NDArray | None = None) -> NDArray:
        found = self.executor.outputs[self.executor.output_number(key)]
        return found if out is None else found.copyto(out)

    def _info(self) -> dict[str, dict]:
        inputs = self.executor.facts.inputs
        return {"shape": {t.name: t.shape for t in inputs}, "dtype": {t.name: t.dtype for t in inputs}}


class AotModule:
    """A model compiled ahead of time, with upstream's methods.

    Parameters
    ----------
    module : what ``lib["default"](device)`` returns.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        executor = getattr(module, "executor", None)
        if not isinstance(executor, AotExecutor):
            raise ArgumentError(f"AotModule is made of what an ahead-of-time library's ['default'](device) returns, got {module!r}")
        self._executor = executor

    def set_input(self, key: "str | int | None" = None, value: object = None, **params: object) -> None:
        """Copy values into inputs: one by name or number, or several as keywords."""
        if key is not None:
            self._executor.set_input(key, value)
        for name, one in params.items():
            self._executor.set_input(name, one)

    def run(self, **input_dict: object) -> None:
        """Set the given inputs and run."""
        self.set_input(**input_dict)
        self._executor.run()

    def get_num_outputs(self) -> int:
        """How many results there are."""
        return len(self._executor.outputs)

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return len(self._executor.inputs)

    def get_input(self, index: "str | int", out: NDArray | None = None) -> NDArray:
        """An input's tensor; copied into ``out`` when given."""
        found = self._executor.inputs[self._executor.input_number(index)]
        return found if out is None else found.copyto(out)

    def get_input_index(self, name: str) -> int:
        """The number of the input called ``name``."""
        return self._executor.input_number(name)

    def get_input_name(self, index: int) -> str:
        """The name of an input."""
        return self._executor.facts.inputs[self._executor.input_number(index)].name

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs, by name."""
        inputs = self._executor.facts.inputs
        return {t.name: t.shape for t in inputs}, {t.name: t.dtype for t in inputs}

    def get_output(self, index: "str | int", out: NDArray | None = None) -> NDArray:
        """A result's tensor; copied into ``out`` when given."""
        found = self._executor.outputs[self._executor.output_number(index)]
        return found if out is None else found.copyto(out)

    def set_input_zero_copy(self, key: "str | int", value: NDArray) -> None:
        """Let an input read the caller's memory."""
        self._executor.set_input_zero_copy(key, value)

    def set_output_zero_copy(self, key: "str | int", value: NDArray) -> None:
        """Let a result be written to the caller's memory."""
        self._executor.set_output_zero_copy(key, value)

    def __getitem__(self, key: str) -> PackedFunc:
        return self.module[key]

    def benchmark(self, device: Device, func_name: str = "run", repeat: int = 5, number: int = 5, min_repeat_ms: float = 0,
                  limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: float = 0,
                  repeats_to_cooldown: int = 1, **kwargs: object) -> BenchmarkResult:
        """Times inferences, as the graph executor's method of this name does."""
        def once() -> None:
            self.run(**kwargs) if end_to_end else self._executor.run()

        self.set_input(**kwargs)
        return measure(once, number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown, None)


class AotExecutorFactory(Module):
    """A model ready to run: ``factory["default"](device)`` makes an instance.

    Parameters
    ----------
    lib : the code: a `CompiledModule`, or a module with ``host_code()`` that gives one.
    facts : how its entry is called.
    params : parameters that are not linked into the code.
    name : the model's name.
    """

    type_key = "AotExecutorFactory"

    def __init__(self, lib: Module, facts: AotFacts, params: Mapping[str, object] | None = None, name: str = "default") -> None:
        super().__init__()
        self.lib, self.facts, self.libmod_name, self.name = lib, facts, name, name
        self.linked_params = {k: v if isinstance(v, NDArray) else array(v) for k, v in (params or {}).items()}

    def executor(self, *devices: Device) -> AotExecutor:
        """A new instance on the one device given."""
        if len(devices) > 1 or devices and not isinstance(devices[0], Device):
            raise ArgumentError(f"Check failed: devices_.size() == 1 ({len(devices)} vs. 1) : Expect exactly 1 device passed.")
        return AotExecutor(self._code(), self.facts, self.linked_params, devices[0] if devices else cpu(0))

    def _code(self) -> CompiledModule:
        host: Callable[[], CompiledModule] | None = getattr(self.lib, "host_code", None)
        found = host() if host is not None else self.lib
        if not isinstance(found, CompiledModule):
            raise ArgumentError(f"a library of kind {self.lib.type_key!r} cannot run on this machine")
        return found

    def _own_function(self, name: str) -> PackedFunc | None:
        makers: dict[str, Callable] = {
            self.name: lambda *devices: AotExecutorModule(self.executor(*devices)), "list_module_names": lambda: [self.name],
        }
        makers.setdefault("default", makers[self.name])
        found = makers.get(name)
        return PackedFunc(found, name, keep=self) if found else self.lib._find(name, True)

    @property
    def module(self) -> "AotExecutorFactory":
        return self

    def get_lib(self) -> Module:
        """The code."""
        return self.lib

    @property
    def is_binary_serializable(self) -> bool:
        return True

    def export_library(self, file_name: "str | os.PathLike[str]", **options: Any) -> str:
        """Write code and parameters to one file that `load_module` reads; C code is compiled (``cc``, ``options`` for the compiler)."""
        from .export import export

        index, members = pack_tensors(self.linked_params)
        facts = {"kind": "aot", "name": self.name, "params": index, "aot": self.facts.to_json()}
        writer = getattr(self.lib, "export_shared", None)
        if writer is not None:
            return writer(file_name, facts, members, **options)
        return export(file_name, self._code(), facts, members, **options)

    def __repr__(self) -> str:
        return f"AotExecutorFactory({self.name!r})"


def _load(manifest: Mapping, members: Mapping[str, memoryview], path: Path) -> AotExecutorFactory:
    try:
        facts = AotFacts.from_json(manifest["aot"])
        name = str(manifest["name"])
    except (KeyError, ValueError, TypeError) as err:
        raise ArtifactError(f"{path}: the model's description is malformed ({type(err).__name__}: {err})") from err
    code = CompiledModule.from_artifact(manifest, members, path)
    return AotExecutorFactory(code, facts, unpack_tensors(manifest.get("params", ()), members), name)


register_loader("aot", _load)
