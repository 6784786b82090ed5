"""`VirtualMachine`: runs an executable's functions."""
from __future__ import annotations

import ctypes
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...support.errors import AnchorlegError, ArgumentError, InternalError
from .. import native as _native
from ..container import ADT
from ..device import Device, cpu, kDLCPU
from ..module import PythonModule
from ..ndarray import NDArray, aligned_bytes, numpyasarray
from ..profiling import BenchmarkResult
from .executable import Executable
from .image import Image, image_of
from .native_core import core
from .values import Border, ClosureValue, ParamPlan, type_of_words

_STACK_BYTES = 64 << 20  # of address space; touched only as deep as calls go
_STEPS = 1 << 26         # instructions between two looks at signals
_IDLE_BYTES = 256 << 20  # free blocks kept for the next run


class Held:
    """An object that Python refers to; its reference goes back to the machine that made it."""

    __slots__ = ("owner", "address")

    def __init__(self, owner: _Memory, address: int) -> None:
        self.owner, self.address = owner, address

    def __del__(self) -> None:
        self.owner.returned.append(self.address)


class _Memory:
    """A machine's words, stack and pools.  It lives until nothing made in it is referred to any more."""

    def __init__(self, image: Image, naive: bool) -> None:
        self.core, self.image = core(), image
        c = self.core
        self.words = np.zeros(64, np.int64)
        self.address = self.words.ctypes.data
        self.returned: deque[int] = deque()
        free, stack = np.zeros(272, np.int64), np.empty(_STACK_BYTES // 8, np.int64)
        args, tensors, temps = np.zeros(image.most_args + 8, np.int64), np.zeros(image.most_args + 8, np.int64), np.zeros(image.most_steps + 8, np.int64)
        self._keep = [free, stack, args, tensors, temps]
        for where, value in ((c.M_FREE, free.ctypes.data), (c.M_NAIVE, int(naive)), (c.M_STACK, stack.ctypes.data),
                             (c.M_LIMIT, stack.ctypes.data + stack.nbytes), (c.M_FUNCTIONS, image.functions.ctypes.data),
                             (c.M_CONSTANTS, image.constants.ctypes.data), (c.M_KERNELS, image.kernel_table.ctypes.data),
                             (c.M_ARGS, args.ctypes.data), (c.M_TENSORS, tensors.ctypes.data), (c.M_TEMPS, temps.ctypes.data)):
            self.words[where // 8] = value
        self.epoch = -1
        self.workspace: Any = None
        self.held: Counter[int] = Counter()  # objects that Python refers to

    def hold(self, address: int) -> Held:
        """Takes an object's reference over for Python."""
        self.held[address] += 1
        return Held(self, address)

    def take_back(self) -> None:
        """Releases what Python let go of."""
        while self.returned:
            address = self.returned.popleft()
            self.held[address] -= 1
            if not self.held[address]:
                del self.held[address]
            self.core.release(self.address, address)

    def settle(self) -> None:
        """Before a run: takes back what Python let go of, and sees to the scratch memory."""
        self.take_back()
        if self.epoch != _native._thread_epoch:
            self.epoch = _native._thread_epoch
            self.workspace = aligned_bytes(self.image.workspace_bytes(_native.get_num_threads()))
            self.words[self.core.M_WORKSPACE // 8] = self.workspace.ctypes.data

    def tidy(self) -> None:
        """After a run: frees cells that only refer to each other; gives memory back to the system when much lies idle."""
        if self.words[self.core.M_CELLS // 8]:
            roots = np.array([*self.held, 0], np.int64)
            self.core.collect_cycles(self.address, roots.ctypes.data, len(roots) - 1)
        if self.words[self.core.M_IDLE // 8] > _IDLE_BYTES:
            self.core.trim(self.address, _IDLE_BYTES)

    def __del__(self) -> None:
        c = self.core
        if c is None:
            return
        try:
            self.take_back()
            c.trim(self.address, 0)
            _free_lists(self)
        except Exception:  # the interpreter is going down
            pass


def _free_lists(memory: _Memory) -> None:
    """Frees the slabs of small objects."""
    c = memory.core
    slab = int(memory.words[c.M_SLABS // 8])
    while slab:
        following = ctypes.c_int64.from_address(slab).value
        _libc_free(slab)
        slab = following
    memory.words[c.M_SLABS // 8] = 0


_free_function: Any = None


def _libc_free(address: int) -> None:
    global _free_function
    if _free_function is None:
        _free_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", ctypes.CDLL(None)))
    _free_function(address)


class VirtualMachine:
    """Runs functions of an executable.

    Parameters
    ----------
    exe : what ``relay.vm.compile`` gave (or its ``.mod``).
    device : where to run: a cpu, or a list of them; each of the program's devices is taken to be the same one among these, or the first
        of its type.
    memory_cfg : ``"pooled"`` (default: freed memory is used again), ``"naive"`` (it goes back to the system at once), or a
        dict from devices to one of these.

    One machine runs in one thread at a time; any number of machines may share an executable.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, exe: Any, device: Any, memory_cfg: str | Mapping[Any, str] | None = None) -> None:
        if not isinstance(exe, Executable):
            raise ArgumentError(f"exe is expected to be an Executable (or its .mod), got {type(exe).__name__}")
        self._exec = exe
        self._places = _places(device, exe.devices)
        self.device, self._spread = self._places[0], any(p.device_id for p in self._places)
        self._memory = _Memory(image_of(exe), _is_naive(memory_cfg))
        self._inputs: dict[str, list[Any]] = {}
        self._outputs: list[NDArray] | None = None
        self._targets: dict[str, list[NDArray]] = {}
        self._border = Border(self._memory.core, self._memory.address, self._memory, exe)
        self._busy = False
        self._params: dict[str, tuple[int, list[str], list[Any]]] = {}
        self._plans: dict[str, list[ParamPlan | None]] = {}

    @property
    def module(self) -> VirtualMachine:
        """The machine (upstream's callers reach functions through this)."""
        return self

    def __getitem__(self, name: str) -> Any:
        from ..packed_func import PackedFunc

        found = {"invoke": self.invoke, "invoke_stateful": self.invoke_stateful, "set_input": self.set_input, "get_output": lambda i: self.get_outputs()[i],
                 "get_num_outputs": lambda: len(self.get_outputs()), "get_input_index": lambda n, f="main": self.get_input_index(n, f),
                 "set_one_input": lambda f, k, v: self.set_one_input(f, **({k: v} if isinstance(k, str) else {self._signature(f)[1][k]: v})),
                 "run": self.run}.get(name)
        if found is None:
            raise ArgumentError(f"the virtual machine has no function {name!r}")
        return PackedFunc(found, name)

    # -- inputs

    def _signature(self, func_name: str) -> tuple[int, list[str], list[Any]]:
        found = self._params.get(func_name)
        if found is None:
            index = self._exec.function_index(func_name)
            names = list(self._exec.functions[index].params)
            specs = list(self._exec.param_types.get(func_name, [])) or [None] * len(names)
            found = self._params[func_name] = (index, names, specs)
        return found

    def _arguments(self, func_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        _, names, _ = self._signature(func_name)
        if not kwargs:
            values = list(args)
        else:
            unknown = [k for k in kwargs if k not in names]
            if unknown:
                raise ArgumentError(f"function {func_name!r} has no parameter {', '.join(map(repr, unknown))}; it has: {', '.join(names)}")
            rest = iter(args)
            values = []
            for n in names:
                if n in kwargs:
                    values.append(kwargs[n])
                else:
                    values.append(next(rest, _MISSING))
            if next(rest, _MISSING) is not _MISSING:
                raise ArgumentError(f"function {func_name!r} takes {len(names)} arguments, got {len(args) + len(kwargs)}")
            missing = [n for n, v in zip(names, values) if v is _MISSING]
            if missing:
                raise ArgumentError(f"function {func_name!r} needs values for: {', '.join(missing)}")
        if len(values) != len(names):
            raise ArgumentError(f"function {func_name!r} takes {len(names)} arguments ({', '.join(names)}), got {len(values)}")
        return values

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets all arguments of a function for a later call without arguments."""
        self._inputs[func_name] = self._arguments(func_name, args, kwargs)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets one argument: ``set_one_input(name, parameter=value)`` or ``(name, number, value)``."""
        _, names, _ = self._signature(func_name)
        if kwargs:
            if len(kwargs) != 1:
                raise ArgumentError(f"set_one_input takes one argument, got {len(kwargs)}")
            (key, value), = kwargs.items()
        elif len(args) == 2:
            key, value = args
            key = names[key] if isinstance(key, int) and 0 <= key < len(names) else key
        else:
            raise ArgumentError("set_one_input: give parameter=value, or a number and a value")
        if key not in names:
            raise ArgumentError(f"function {func_name!r} has no parameter {key!r}; it has: {', '.join(names)}")
        current = self._inputs.setdefault(func_name, [_MISSING] * len(names))
        current[names.index(key)] = value

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The number of a parameter, -1 for an unknown name."""
        names = self._signature(func_name)[1]
        return names.index(input_name) if input_name in names else -1

    # -- running

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs ``main``."""
        return self.invoke("main", *args, **kwargs)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Runs a function; without arguments, on what `set_input` set."""
        if callable(getattr(func_name, "held", None)):
            raise ArgumentError("invoke: give the name of a function")
        if args or kwargs:
            values = self._arguments(func_name, args, kwargs)
        else:
            values = self._inputs.get(func_name) or self._arguments(func_name, (), {})
            if any(v is _MISSING for v in values):
                raise ArgumentError(f"function {func_name!r}: not all inputs have been set")
        return self._run(func_name, values)

    def _placed(self, func_name: str, result: Any) -> Any:
        """A function's result, whose tensors say on which device they are."""
        devices = self._exec.functions[self._signature(func_name)[0]].devices
        place = self._places[devices[-1]] if devices else self.device
        stack = [result] if place.device_id else []
        while stack:
            value = stack.pop()
            if isinstance(value, ADT):
                stack.extend(value)
            elif isinstance(value, NDArray):
                value.device = place
        return result

    def _run(self, func_name: str, values: Sequence[Any]) -> Any:
        if self._busy:
            raise ArgumentError("this machine is running already: use one machine per thread (they can share the executable)")
        self._busy = True
        memory, border = self._memory, self._border
        try:
            memory.settle()
            self._enter(func_name, values)
            self._loop()
            result = border.value_of(int(memory.words[memory.core.M_RESULT // 8]))
            return self._placed(func_name, result) if self._spread else result
        finally:
            memory.tidy()
            border.let_go()
            self._busy = False

    def _enter(self, func_name: str, values: Sequence[Any]) -> None:
        core_, address = self._memory.core, self._memory.address
        index, names, specs = self._signature(func_name)
        made: list[int] = []
        try:
            plans = self._plans.get(func_name)
            if plans is None:
                plans = self._plans[func_name] = [ParamPlan(s) if isinstance(s, list) else None for s in specs]
            for v, n, s, plan in zip(values, names, specs, plans):
                made.append(plan is not None and self._border.quick(v, plan) or self._border.object_of(v, s, n))
            words = (ctypes.c_int64 * max(1, len(made)))(*made)
            if core_.start(address, index, ctypes.addressof(words), len(made)):
                raise AnchorlegError(f"function {func_name!r} has too many registers for the stack")
        except Exception:
            for o in made:
                core_.release(address, o)
            raise

    def _loop(self) -> None:
        memory = self._memory
        core_, words = memory.core, memory.words
        steps = core_.M_STEPS // 8
        words[steps] = _STEPS
        while True:
            status = core_.run(memory.address)
            if status == 0:
                return
            try:
                if status == 1:
                    self._host_call()
                elif status == 2:
                    words[steps] = _STEPS
                else:
                    raise self._failure()
            except BaseException:
                core_.unwind(memory.address)
                raise

    def _failure(self) -> AnchorlegError:
        """The error that the loop noted, in words."""
        c, words, image = self._memory.core, self._memory.words, self._memory.image
        what, a, b = (int(words[w // 8]) for w in (c.M_ERROR, c.M_ERROR_A, c.M_ERROR_B))
        where = image.where(int(words[c.M_PC // 8]))
        if what == c.E_SHAPE:
            entry = self._exec.packed[a]
            return ArgumentError(f"{entry.payload['texts'][b]} (in {entry.name}; {where})")
        if what == c.E_KERNEL:
            text = (_native.last_error_of(image.host[a]) if a in image.host else _native.last_error_text()) or f"status {b}"
            return AnchorlegError(f"{self._exec.packed[a].name} failed: {text} ({where})")
        texts = {c.E_MEMORY: f"out of memory: {a} bytes were asked for", c.E_STACK: "calls are nested too deep for the stack",
                 c.E_FATAL: "no clause of a match fits the value" if a == 15 else f"instruction {a} is not known",
                 c.E_RESHAPE: "a reshape does not keep the number of elements", c.E_ROW: "a row to replace lies outside of the data",
                 c.E_VALUE: f"a size makes no sense: {a} (limit {b})"}
        kind = ArgumentError if what in (c.E_RESHAPE, c.E_ROW, c.E_VALUE) else AnchorlegError
        return kind(f"{texts.get(what, f'failure {what}')} ({where})")

    # -- functions that Python evaluates

    def _host_call(self) -> None:
        """Runs the host function at the machine's place and goes on behind it."""
        memory = self._memory
        c, words = memory.core, memory.words
        pc, frame = int(words[c.M_PC // 8]), int(words[c.M_FRAME // 8])
        _, index, count = _read(pc, 3)
        registers = _read(pc + 24, count)
        entry = self._exec.packed[index]
        places = [frame + 32 + 8 * r for r in registers]
        arrays = [_array_at(ctypes.c_int64.from_address(p).value) for p in (places if entry.kind == "external" else places[:entry.num_inputs])]
        function = _host_function(self, index, entry)
        if entry.kind == "external":
            function(*map(numpyasarray, arrays))
        else:
            self._store_all(entry, places[entry.num_inputs:], function(arrays))
        words[c.M_PC // 8] = pc + 24 + 8 * count

    def _store_all(self, entry: Any, places: Sequence[int], results: Sequence[np.ndarray]) -> None:
        if len(results) != entry.num_outputs:
            raise InternalError(f"{entry.name}: {entry.num_outputs} results are expected, got {len(results)}")
        for place, result in zip(places, results):
            self._store(place, np.ascontiguousarray(result) if np.ndim(result) else np.asarray(result))

    def _store(self, place: int, result: np.ndarray) -> None:
        """Copies a result into the tensor a register holds, or puts a new tensor there."""
        current = ctypes.c_int64.from_address(place).value
        if current & 1 or current == 0:
            current = self._new_tensor(result)
            self._memory.core.set_register(self._memory.address, place, current)
        target = _array_at(current)
        if target.shape != result.shape:
            raise ArgumentError(f"a result has shape {result.shape}, {target.shape} was expected")
        np.copyto(target, result, casting="unsafe")

    def _new_tensor(self, like: np.ndarray) -> int:
        from ..dtype import dtype_name
        from .translate import dtype_words

        code, item = dtype_words(dtype_name(like.dtype))
        shape = (ctypes.c_int64 * max(1, like.ndim))(*like.shape)
        made = self._memory.core.new_tensor(self._memory.address, like.ndim, code, item, like.size, ctypes.addressof(shape))
        if not made:
            raise AnchorlegError(f"out of memory: {like.nbytes} bytes were asked for")
        return made

    # -- outputs

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Runs a function and keeps its results for `get_outputs` (in the tensors that `set_outputs` gave, if it did)."""
        found = _flat(self.invoke(func_name, *args, **kwargs))
        targets = self._targets.pop(func_name, None)
        if targets is None:
            self._outputs = found
            return
        if len(targets) != len(found):
            raise ArgumentError(f"function {func_name!r} has {len(found)} results, {len(targets)} output tensors were given")
        self._outputs = [t.copyfrom(f) for t, f in zip(targets, found)]

    def invoke_with_outputs(self, func_name: str, input_args: Any, output_args: Any) -> None:
        """Runs a function and copies its results into the given tensors."""
        if isinstance(input_args, Mapping):
            self.set_input(func_name, **input_args)
        elif input_args:
            self.set_input(func_name, *input_args)
        targets = list(output_args.values()) if isinstance(output_args, Mapping) else list(output_args)
        self.set_outputs(func_name, *targets)
        self.invoke_stateful(func_name)

    def set_outputs(self, func_name: str, *args: Any) -> None:
        """Tensors that the next stateful call of a function copies its results to."""
        self._targets[func_name] = list(args)

    def get_outputs(self) -> list[NDArray]:
        """The results of the last stateful call."""
        if self._outputs is None:
            raise ArgumentError("there are no outputs: call invoke_stateful first")
        return list(self._outputs)

    def benchmark(self, device: Device | None = None, *args: Any, func_name: str = "main", repeat: int = 5, number: int = 5,
                  min_repeat_ms: float | None = None, limit_zero_time_iterations: int = 100, end_to_end: bool = False,
                  cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1, **kwargs: Any) -> BenchmarkResult:
        """Times a function on the given arguments (or on what `set_input` set)."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        timed = PythonModule({"invoke": lambda *_: self.invoke(func_name)})
        return timed.time_evaluator("invoke", device or self.device, number=number, repeat=repeat, min_repeat_ms=min_repeat_ms or 0,
                                    limit_zero_time_iterations=limit_zero_time_iterations, cooldown_interval_ms=cooldown_interval_ms,
                                    repeats_to_cooldown=repeats_to_cooldown)(func_name)


class _Missing:
    def __repr__(self) -> str:
        return "(not set)"


_MISSING = _Missing()


def _places(device: Any, wanted: Sequence[tuple[int, int]]) -> list[Device]:
    """The caller's device for each of the program's."""
    devices = list(device) if isinstance(device, (list, tuple)) else [device if device is not None else cpu(0)]
    for d in devices or [None]:
        if not isinstance(d, Device):
            raise ArgumentError(f"device is expected to be a Device or a list of them, got {type(d).__name__}")
        if d.device_type != kDLCPU:
            raise ArgumentError(f"this virtual machine runs on processors, got {d!r}, which this process does not have")
    foreign = [repr(Device(*w)) for w in wanted if w[0] != kDLCPU]
    if foreign:
        raise ArgumentError(f"this virtual machine runs on processors; the program places values on {', '.join(foreign)}, which this process does not have")
    return [d if (d := Device(*w)) in devices else devices[0] for w in wanted]


def _is_naive(config: Any) -> bool:
    kinds = list(config.values()) if isinstance(config, Mapping) else [config]
    for k in kinds:
        if k not in (None, "naive", "pooled"):
            raise ArgumentError(f"memory_cfg is expected to be 'naive', 'pooled' or a dict from devices to these, got {k!r}")
    return "naive" in kinds


def _flat(value: Any) -> list[NDArray]:
    return [f for v in value for f in _flat(v)] if isinstance(value, ADT) else [value]


def _read(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))


def _array_at(address: int) -> np.ndarray:
    """A numpy view of a tensor object's data."""
    _, _, data, _, rank, code, item = _read(address, 7)
    shape, kind = _read(address + 56, rank), type_of_words(code)
    size = item
    for d in shape:
        size *= d
    if size == 0:
        return np.empty(shape, kind.numpy_dtype)
    return np.frombuffer((ctypes.c_uint8 * size).from_address(data), kind.numpy_dtype).reshape(shape)


def _host_function(vm: VirtualMachine, index: int, entry: Any) -> Any:
    found = vm._memory.image.host.get(index)
    if found is None:
        from ..registry import get_global_func

        maker = get_global_func("relay.vm.host_function", allow_missing=True)
        if maker is None:
            import importlib

            importlib.import_module("anchorleg.relay.backend.vm_host")
            maker = get_global_func("relay.vm.host_function")
        found = vm._memory.image.host[index] = maker(entry.payload)
    if hasattr(found, "address"):
        packed = found

        def call(arrays: list[np.ndarray]) -> list[Any]:
            raise InternalError(f"{packed}: no native entry")

        return call
    return found


__all__ = ["ClosureValue", "VirtualMachine"]
