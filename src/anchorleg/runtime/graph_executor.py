"""The graph executor: a planned arena, a table of pointers, one native call for each inference.

`GraphExecutor` is the engine; `GraphModule` is upstream's Python face of it, and `create` makes one from graph JSON and
a library.

Memory.  Entries that ``__nop`` nodes join (a reshape, for instance) form a *group* and always have one address; groups
of one storage number share a place in the arena.  Placeholders have memory of their own: a parameter points into the
caller's tensors, which several executors may share, and is copied only when somebody overwrites it.  Redirecting an
input or output (zero copy) stores its address in every place of the pointer table that belongs to its group.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..support.errors import AnchorlegError, ArgumentError, ArtifactError, TypeMismatchError
from . import native as _native
from .container import ADT, ShapeTuple, String
from .device import Device, cpu, kDLCPU
from .graph_json import COPY, NOP, Graph, GraphNode, parse_graph
from .graph_runner import runner
from .module import Module, PythonModule
from .ndarray import NDArray, aligned, aligned_bytes, array, empty
from .packed_func import PackedFunc
from .packed_node import PackedNode
from .params import load_param_dict
from .profiling import BenchmarkResult, measure

_ALIGN = 128
_ZERO_COPY_ALIGN = 64


class Kernel(NamedTuple):
    """Native code of one function.

    ``address`` takes one data pointer for each input and output and then a workspace pointer, and returns 0 on success.
    The workspace has ``workspace_bytes`` plus ``workspace_bytes_per_task`` for each thread.
    """

    address: int
    workspace_bytes: int = 0
    workspace_bytes_per_task: int = 0


class _Group:
    """Entries with one address."""

    __slots__ = ("storage", "slots", "argument", "address", "size", "redirected_by", "keep")

    def __init__(self, storage: int) -> None:
        self.storage = storage
        self.slots: Any = []
        self.argument: int | None = None  # number of the placeholder in this group
        self.address = 0
        self.size = 0
        self.redirected_by: int | None = None  # number of the output whose caller's memory this group uses
        self.keep: object = None


class GraphExecutor:
    """Runs one graph.

    Parameters
    ----------
    graph : graph JSON (upstream's format) or a parsed `Graph`.
    kernels : function name → `Kernel`, or a `PackedFunc` that takes tensors (external code).
    params : name → tensor; memory is used in place when it is aligned and contiguous.
    device : where to run: one, or several for a graph that is spread over them; each of the graph's devices is taken to be the same one
        among these, or the first.
    keep : what must live as long as the executor (the library).
    ignored : names that may be set without effect: parameters that the compiler folded away.

    One executor must not be run by two threads at a time; several executors may be, and may share library and params.
    """

    def __init__(
        self, graph: "str | bytes | Graph", kernels: Mapping[str, "Kernel | PackedFunc"],
        params: Mapping[str, object] | None = None, device: "Device | Sequence[Device] | None" = None, keep: object = None,
        ignored: Collection[str] = (),
    ) -> None:
        self.graph = graph if isinstance(graph, Graph) else parse_graph(graph)
        self.devices = _devices(device)
        self.device = self.devices[0]
        self._kernels = kernels
        self._keep = (keep, kernels)
        self._ignored = frozenset(ignored)
        self._check_devices()
        self._plan_groups()
        self._plan_arena()
        self._plan_calls()
        self._plan_names()
        self._views: dict[int, NDArray] = {}
        self._after: dict[int, tuple[int, NDArray]] = {}
        self._param_names: set[str] = set()
        for name, value in (params or {}).items():
            if name in self._argument_of:
                self.bind_param(name, value)

    # -- planning ---------------------------------------------------------------------------------

    def _check_devices(self) -> None:
        """Finds the caller's device for each of the graph's: that very one, else the first of its type."""
        wanted = sorted(set(self.graph.devices), key=lambda d: (d.device_type, d.device_id))
        foreign = [d for d in (*wanted, *self.devices) if d.device_type != kDLCPU]
        if foreign:
            names = ", ".join(dict.fromkeys(map(repr, foreign)))
            raise ArgumentError(f"this executor runs on processors; the graph or the caller asks for {names}, which this process does not have")
        self._place = {d: d if d in self.devices else self.devices[0] for d in wanted}

    def _plan_groups(self) -> None:
        graph = self.graph
        self._group_of: list[_Group] = [None] * len(graph.storage)  # type: ignore[list-item]
        self.groups: list[_Group] = []
        for node in graph.nodes:
            source = self._group_of[node.inputs[0]] if node.function == NOP and node.inputs else None
            for entry in node.outputs:
                shared = source is not None and graph.storage[entry] == source.storage
                group = source if shared else self._new_group(graph.storage[entry])
                group.size = max(group.size, graph.entry_bytes(entry))
                self._group_of[entry] = group
        for number, argument in enumerate(graph.arguments):
            self._group_of[graph.nodes[argument].outputs[0]].argument = number

    def _new_group(self, storage: int) -> _Group:
        group = _Group(storage)
        self.groups.append(group)
        return group

    def _plan_arena(self) -> None:
        places = self._offsets_given() if self.graph.offsets else self._offsets_by_storage()
        self.arena_bytes = max((place + -(-group.size // _ALIGN) * _ALIGN for group, place in places), default=0)
        self.arena = aligned_bytes(self.arena_bytes)
        base = self.arena.ctypes.data
        for group, place in places:
            group.address = base + place

    def _offsets_given(self) -> list[tuple[_Group, int]]:
        """Each group in the arena with its place, as the graph says."""
        places: dict[int, tuple[_Group, int]] = {}
        for entry, group in enumerate(self._group_of):
            if group.argument is None:
                if self.graph.offsets[entry] < 0:
                    raise ArtifactError(f"the graph is malformed: entry {entry} has no place in the arena")
                places.setdefault(id(group), (group, self.graph.offsets[entry]))
        return list(places.values())

    def _offsets_by_storage(self) -> list[tuple[_Group, int]]:
        """Each group in the arena with its place: those of one storage number share one."""
        sizes: dict[int, int] = {}
        for group in self.groups:
            if group.argument is None:
                sizes[group.storage] = max(sizes.get(group.storage, 0), group.size)
        offsets, total = {}, 0
        for storage, size in sizes.items():
            offsets[storage] = total
            total += -(-size // _ALIGN) * _ALIGN
        return [(group, offsets[group.storage]) for group in self.groups if group.argument is None]

    def _plan_calls(self) -> None:
        self._calls = [
            (index, node) for index, node in enumerate(self.graph.nodes) if node.function is not None and self._acts(node)
        ]
        arities = [self._arity(node) for _, node in self._calls]
        self._table = np.zeros(max(1, sum(arities)), np.uintp)
        self._records = np.zeros((max(1, len(self._calls)), 3), np.uintp)
        self._workspace_slots: list[int] = []
        self._packed_nodes: list[PackedNode] = []
        self._segments: list[Any] = []
        position = 0
        for number, ((_, node), arity) in enumerate(zip(self._calls, arities)):
            self._plan_call(number, node, position, arity)
            position += arity
        for group in self.groups:
            group.slots = np.array(group.slots, np.intp)
            self._table[group.slots] = group.address
        self._plan_workspace()
        self._status = ctypes.c_int(0)
        self._status_address = ctypes.addressof(self._status)
        self._run_native = runner().run

    def _acts(self, node: GraphNode) -> bool:
        """Whether the node has anything to do: a ``__nop`` does only when its output lies elsewhere than its input."""
        if node.function != NOP:
            return True
        return any(self._group_of[entry] is not self._group_of[node.inputs[0]] for entry in node.outputs)

    def _arity(self, node: GraphNode) -> int:
        return len(node.inputs) + len(node.outputs) + (0 if node.function in (NOP, COPY) else 1)

    def _plan_call(self, number: int, node: GraphNode, position: int, arity: int) -> None:
        for offset, entry in enumerate((*node.inputs, *node.outputs)):
            self._group_of[entry].slots.append(position + offset)
        arguments = self._table.ctypes.data + 8 * position
        if node.function in (NOP, COPY):
            size = self.graph.entry_bytes(node.outputs[0])
            self._records[number] = (runner().copy_thunk, size, arguments)
            self._native_call(number)
            return
        kernel = self._kernels.get(node.function or "")
        if kernel is None:
            raise ArtifactError(f"the library has no function {node.function!r}, which node {node.name!r} calls: if an external compiler takes it, "
                                "import the module with its code into the library")
        if isinstance(kernel, PackedFunc) and kernel.handle:
            self._packed_nodes.append(self._packed_node(kernel, node))
            self._records[number] = (runner().packed_thunk, self._packed_nodes[-1].address, arguments)
            self._native_call(number)
            return
        if isinstance(kernel, PackedFunc):
            self._segments.append((kernel, node))
            return
        self._workspace_slots.append(position + arity - 1)
        self._records[number] = (runner().thunk(arity), kernel.address, arguments)
        self._native_call(number)

    def _packed_node(self, function: PackedFunc, node: GraphNode) -> PackedNode:
        graph = self.graph
        return PackedNode(function, [(graph.shapes[e], graph.dtypes[e], self._device_of(e)) for e in (*node.inputs, *node.outputs)])

    def _native_call(self, number: int) -> None:
        """Lengthen the last stretch of native calls, or begin one."""
        last = self._segments[-1] if self._segments else None
        if isinstance(last, list) and last[0] + last[1] == number:
            last[1] += 1
        else:
            self._segments.append([number, 1])

    def _plan_workspace(self) -> None:
        self._threads = _native.get_num_threads()
        need = 0
        for _, node in self._calls:
            kernel = self._kernels.get(node.function or "")
            if isinstance(kernel, Kernel):
                need = max(need, kernel.workspace_bytes + self._threads * kernel.workspace_bytes_per_task)
        self._workspace = aligned_bytes(need)
        self._table[np.array(self._workspace_slots, np.intp)] = self._workspace.ctypes.data
        self._thread_epoch = _native.thread_epoch()

    def _plan_names(self) -> None:
        graph = self.graph
        self.input_names = [graph.nodes[index].name for index in graph.arguments]
        self._argument_of = {name: number for number, name in enumerate(self.input_names)}
        self._argument_entry = [graph.nodes[index].outputs[0] for index in graph.arguments]
        self._memory: list[NDArray | None] = [None] * len(self.input_names)
        self._private = [True] * len(self.input_names)
        self._targets: dict[object, np.ndarray] = {}
        self.output_names = [graph.nodes[graph.entry_node[head]].name for head in graph.heads]
        base = self._records.ctypes.data
        single = len(self._segments) == 1 and isinstance(self._segments[0], list)
        self._whole = (base, len(self._calls)) if single or not self._segments else None

    # -- inputs -----------------------------------------------------------------------------------

    def _number(self, key: "str | int") -> int:
        """The number of an input given by name or number."""
        if isinstance(key, str):
            number = self._argument_of.get(key)
            if number is None:
                raise ArgumentError(f"the graph has no input {key!r}; its inputs are {_names(self._user_inputs())}")
            return number
        if not 0 <= key < len(self.input_names):
            raise ArgumentError(f"input number {key} is out of range: the graph has {len(self.input_names)} inputs")
        return int(key)

    def _user_inputs(self) -> list[str]:
        return [name for name in self.input_names if name not in self._param_names]

    def _spec(self, number: int) -> tuple[tuple[int, ...], Any]:
        entry = self._argument_entry[number]
        return self.graph.shapes[entry], self.graph.dtypes[entry]

    def _fit(self, number: int, value: object) -> np.ndarray:
        """``value`` as a numpy array of the input's shape and type, or an error that says what was expected."""
        shape, kind = self._spec(number)
        what = f"input {self.input_names[number]!r}"
        return _fit(value, shape, kind, what)

    def _point(self, group: _Group, address: int) -> None:
        group.address = address
        self._table[group.slots] = address

    def _own_memory(self, number: int) -> NDArray:
        """The executor's own memory of an input, made (zeroed) when it has none or only borrows some."""
        tensor = self._memory[number]
        group = self._group_of[self._argument_entry[number]]
        if tensor is None or not self._private[number]:
            shape, kind = self._spec(number)
            fresh = empty(shape, kind, self._device_of(self._argument_entry[number]))
            fresh.as_numpy_view()[...] = 0 if tensor is None else tensor.as_numpy_view()
            tensor = self._memory[number] = fresh
            self._private[number] = True
        if group.address != tensor.data_ptr:
            self._point(group, tensor.data_ptr)
            group.keep = None
        return tensor

    def set_input(self, key: "str | int", value: object) -> None:
        """Copy ``value`` into an input.

        Raises `ArgumentError` for an unknown name or a wrong shape, `TypeMismatchError` for a wrong element type.
        """
        target = self._targets.get(key)
        if target is None:
            target = self._prepare_input(key)
            if target is None:
                return
        source = value._np if type(value) is NDArray else value
        if type(source) is not np.ndarray or source.dtype != target.dtype or source.shape != target.shape:
            source = self._fit(self._number(key), source)
        np.copyto(target, source)

    def _prepare_input(self, key: "str | int") -> np.ndarray | None:
        if isinstance(key, str) and key in self._ignored and key not in self._argument_of:
            return None
        number = self._number(key)
        target = self._own_memory(number).as_numpy_view()
        self._views.clear()
        self._targets[number] = self._targets[self.input_names[number]] = target
        return target

    def set_inputs(self, values: Mapping[str, object]) -> None:
        """Set several inputs by name; nothing is copied when one of the names is unknown."""
        for name in values:
            if name not in self._targets and name not in self._ignored:
                self._number(name)
        for name, value in values.items():
            self.set_input(name, value)

    def set_input_zero_copy(self, key: "str | int", value: object) -> None:
        """Let an input read the caller's memory; ``value`` (tensor or numpy array) is kept alive.

        The memory must be contiguous and begin on a 64-byte border, as that of `empty` and `array` does.
        """
        number = self._number(key)
        tensor = self._shared_tensor(number, value)
        group = self._group_of[self._argument_entry[number]]
        self._forget_target(number)
        self._views.clear()
        group.keep = tensor
        self._point(group, tensor.data_ptr)

    def _shared_tensor(self, number: int, value: object) -> NDArray:
        shape, kind = self._spec(number)
        return _zero_copy(value, shape, kind, f"input {self.input_names[number]!r}")

    def _forget_target(self, number: int) -> None:
        self._targets.pop(number, None)
        self._targets.pop(self.input_names[number], None)

    def bind_param(self, name: str, value: object) -> None:
        """Let an input be a parameter: its memory is used in place (shared), or copied once when it is unaligned."""
        number = self._number(name)
        shape, kind = self._spec(number)
        source = value.as_numpy_view() if isinstance(value, NDArray) else value
        fitted = _fit(source, shape, kind, f"parameter {name!r}")
        tensor = value if isinstance(value, NDArray) and fitted is source else NDArray(fitted, kind)
        tensor = aligned(tensor, _ZERO_COPY_ALIGN)
        self._memory[number], self._private[number] = tensor, False
        self._forget_target(number)
        self._views.clear()
        self._point(self._group_of[self._argument_entry[number]], tensor.data_ptr)
        self._param_names.add(name)

    def load_params(self, param_bytes: "bytes | bytearray") -> None:
        """Bind the parameters in saved bytes; names that are no inputs are passed over."""
        for name, value in load_param_dict(param_bytes).items():
            if name in self._argument_of:
                self.bind_param(name, value)

    def share_params(self, other: "GraphExecutor", param_bytes: "bytes | bytearray") -> None:
        """Use another executor's memory for the parameters whose names are in ``param_bytes``."""
        for name in load_param_dict(param_bytes):
            if name in self._argument_of:
                self.bind_param(name, other.get_input(name))

    def get_input(self, key: "str | int") -> NDArray:
        """The tensor an input reads from."""
        number = self._number(key)
        group = self._group_of[self._argument_entry[number]]
        if isinstance(group.keep, NDArray):
            return group.keep
        tensor = self._memory[number]
        return self._own_memory(number) if tensor is None else tensor

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 when there is none of this name."""
        return self._argument_of.get(name, -1)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and element types, by name, of the inputs that are not bound parameters."""
        shapes, dtypes = {}, {}
        for name in self._user_inputs():
            shape, kind = self._spec(self._argument_of[name])
            shapes[name], dtypes[name] = ShapeTuple(shape), String(str(kind))
        return shapes, dtypes

    # -- running ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every node.  A failing kernel raises `AnchorlegError` naming its node."""
        if self._thread_epoch != _native._thread_epoch:
            self._plan_workspace()
        if self._unready:
            self._make_ready()
        whole = self._whole
        if whole is None:
            self._run_segments()
        else:
            failed = self._run_native(whole[0], whole[1], self._status_address)
            if failed >= 0:
                raise self._failure(failed)
        if self._after:
            self._copy_after()

    _unready = True

    def _make_ready(self) -> None:
        """Give memory to inputs that nobody set: they hold zeros."""
        for number in range(len(self.input_names)):
            if self._group_of[self._argument_entry[number]].address == 0:
                self._own_memory(number)
        self._unready = False

    def _run_segments(self) -> None:
        for segment in self._segments:
            if isinstance(segment, list):
                self.run_calls(segment[0], segment[1])
            else:
                self._run_external(*segment)

    def _run_external(self, function: PackedFunc, node: GraphNode) -> None:
        function(*(self.entry_view(entry) for entry in (*node.inputs, *node.outputs)))

    def run_calls(self, first: int, count: int) -> None:
        """Run a stretch of native calls, by their position in `calls`."""
        failed = self._run_native(self._records.ctypes.data + 24 * first, count, self._status_address)
        if failed >= 0:
            raise self._failure(first + failed)

    def _failure(self, number: int) -> AnchorlegError:
        node = self._calls[number][1]
        kernel = self._kernels.get(node.function or "")
        text = _native.last_error_of(kernel) if isinstance(kernel, PackedFunc) else _native.last_error_text()
        detail = f": {text}" if text else ""
        return AnchorlegError(f"node {node.name!r} (kernel {node.function!r}) failed with status {self._status.value}{detail}")

    @property
    def calls(self) -> list[tuple[int, GraphNode]]:
        """The nodes that do something, in order, each with its number in the graph."""
        return self._calls

    def run_call(self, number: int) -> None:
        """Run one of `calls`."""
        if self._unready:
            self._make_ready()
        node = self._calls[number][1]
        kernel = self._kernels.get(node.function or "")
        if isinstance(kernel, PackedFunc) and not kernel.handle:
            self._run_external(kernel, node)
        else:
            self.run_calls(number, 1)

    # -- outputs ----------------------------------------------------------------------------------

    def _output_number(self, key: "str | int") -> int:
        if isinstance(key, str):
            if key not in self.output_names:
                raise ArgumentError(f"the graph has no output {key!r}; its outputs are {_names(self.output_names)}")
            return self.output_names.index(key)
        if not 0 <= key < len(self.graph.heads):
            raise ArgumentError(f"output number {key} is out of range: the graph has {len(self.graph.heads)} outputs")
        return int(key)

    def _device_of(self, entry: int) -> Device:
        return self._place[self.graph.devices[entry]]

    def entry_view(self, entry: int) -> NDArray:
        """A tensor over the present memory of an entry."""
        if self._unready:
            self._make_ready()
        group = self._group_of[entry]
        size = self.graph.entry_bytes(entry)
        kind, shape = self.graph.dtypes[entry], self.graph.shapes[entry]
        block = (ctypes.c_uint8 * size).from_address(group.address) if size else (ctypes.c_uint8 * 0)()
        flat = np.frombuffer(block, np.uint8)
        full = (*shape, kind.lanes) if kind.lanes > 1 else shape
        owner = (self.arena, self._memory, group.keep)
        return NDArray(flat.view(kind.numpy_dtype).reshape(full), kind, self._device_of(entry), owner=_Alive(block, owner))

    def get_output(self, index: "str | int", out: NDArray | None = None) -> NDArray:
        """An output: a tensor over the executor's memory (the next run overwrites it), or copied into ``out``."""
        view = self._views.get(index)  # type: ignore[arg-type]
        if view is None:
            number = self._output_number(index)
            after = self._after.get(number)
            view = self._views[index] = after[1] if after else self._output_view(number)  # type: ignore[index]
        if out is None:
            return view
        return _checked_out(out, view, index)

    def _output_view(self, number: int) -> NDArray:
        head = self.graph.heads[number]
        group = self._group_of[head]
        if group.redirected_by == number and isinstance(group.keep, NDArray):
            return group.keep
        return self.entry_view(head)

    def set_output_zero_copy(self, key: "str | int", value: object) -> None:
        """Let an output be written to the caller's memory (contiguous, 64-byte aligned), which is kept alive."""
        number = self._output_number(key)
        head = self.graph.heads[number]
        kind, shape = self.graph.dtypes[head], self.graph.shapes[head]
        tensor = _zero_copy(value, shape, kind, f"output {number}")
        group = self._group_of[head]
        self._views.clear()
        # memory that an input or another output owns is not ours to move: copy after the run instead
        if group.argument is not None or group.redirected_by not in (None, number):
            self._after[number] = (head, tensor)
            return
        group.redirected_by, group.keep = number, tensor
        self._point(group, tensor.data_ptr)

    def _copy_after(self) -> None:
        for head, tensor in self._after.values():
            ctypes.memmove(tensor.data_ptr, self._group_of[head].address, self.graph.entry_bytes(head))

    def get_output_index(self, name: str) -> int:
        """The number of the output made by a node of this name, -1 when there is none."""
        return self.output_names.index(name) if name in self.output_names else -1

    def run_from_inputs(self, device_type: int, device_id: int, *pairs: object) -> ADT:
        """Set inputs from alternating keys and values, run, and return copies of the outputs."""
        if len(pairs) % 2:
            raise ArgumentError("run_from_inputs: expected alternating input names and values")
        for key, value in zip(pairs[::2], pairs[1::2]):
            self.set_input(key, value)  # type: ignore[arg-type]
        self.run()
        return ADT(0, [array(self.get_output(i)) for i in range(len(self.graph.heads))])


class _Alive:
    """Holds references; what a view needs to stay valid."""

    __slots__ = ("things",)

    def __init__(self, *things: object) -> None:
        self.things = things


def _devices(device: object) -> tuple[Device, ...]:
    """One device or several as a tuple; cpu(0) for none."""
    found = tuple(device) if isinstance(device, (list, tuple)) else (cpu(0) if device is None else device,)
    if not found or not all(isinstance(d, Device) for d in found):
        raise ArgumentError(f"expected a Device or a list of them, got {device!r}")
    return found


def _names(names: Collection[str], limit: int = 20) -> str:
    shown = [repr(name) for name in list(names)[:limit]]
    if len(names) > limit:
        shown.append(f"… ({len(names)} in all)")
    return ", ".join(shown) or "(none)"


def _fit(value: object, shape: tuple[int, ...], kind: Any, what: str) -> np.ndarray:
    dtype = kind.numpy_dtype
    full = (*shape, kind.lanes) if kind.lanes > 1 else tuple(shape)
    if isinstance(value, NDArray):
        value = value.as_numpy_view()
    typed = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    try:
        source = np.asarray(value) if typed else np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError) as err:
        raise TypeMismatchError(f"{what}: expected an array of {kind}, got {type(value).__name__} ({err})") from None
    if source.shape != full:
        rank = f"rank {len(full)}, shape {full}"
        raise ArgumentError(f"{what}: expected {rank}, got rank {source.ndim}, shape {source.shape}")
    if source.dtype != dtype:
        raise TypeMismatchError(f"{what}: expected dtype {kind}, got {source.dtype}; convert it with .astype({str(kind)!r})")
    return source


def _zero_copy(value: object, shape: tuple[int, ...], kind: Any, what: str) -> NDArray:
    fitted = _fit(value, shape, kind, what)
    if not fitted.flags.c_contiguous:
        raise ArgumentError(f"{what}: zero copy needs contiguous memory, got strides {fitted.strides}")
    if fitted.ctypes.data % _ZERO_COPY_ALIGN and fitted.nbytes:
        raise ArgumentError(
            f"{what}: zero copy needs memory that begins on a {_ZERO_COPY_ALIGN}-byte border, got address "
            f"{fitted.ctypes.data:#x}; runtime.empty and runtime.array give such memory"
        )
    return value if isinstance(value, NDArray) else NDArray(fitted, kind)


def _checked_out(out: object, view: NDArray, index: object) -> NDArray:
    if isinstance(out, np.ndarray):
        out = NDArray(out)
    if not isinstance(out, NDArray):
        raise TypeMismatchError(f"output {index}: expected out to be an NDArray, got {type(out).__name__}")
    if out.shape != view.shape:
        raise ArgumentError(f"output {index}: expected out of shape {view.shape}, got {out.shape}")
    return out.copyfrom(view.as_numpy_view() if _converts(view, out) else view)


def _converts(view: NDArray, out: NDArray) -> bool:
    """Whether a result of another type becomes one of the caller's, as numbers do in numpy: integers floats, not floats integers."""
    return view.dtype != out.dtype and np.can_cast(view.as_numpy_view().dtype, out.as_numpy_view().dtype, "same_kind")


# -- upstream's face ------------------------------------------------------------------------------------

_FUNCTIONS = (
    "set_input_zero_copy", "set_output_zero_copy", "run", "get_output", "get_input_index",
    "get_output_index", "load_params", "run_from_inputs", "get_input_info",
)


class GraphExecutorModule(PythonModule):
    """The executor as a `Module`: its operations are functions found by name."""

    type_key = "GraphExecutor"

    def __init__(self, executor: GraphExecutor) -> None:
        self.executor = executor
        functions: dict[str, Callable] = {name: getattr(executor, name) for name in _FUNCTIONS}
        functions |= {
            "set_input": executor.set_input,
            "get_input": self._get_input,
            "get_num_inputs": lambda: len(executor.input_names),
            "get_num_outputs": lambda: len(executor.graph.heads),
            "share_params": lambda other, data: executor.share_params(_executor_of(other), data),
        }
        super().__init__(functions)

    def _get_input(self, key: "str | int") -> NDArray | None:
        """Upstream answers None, not an error, for an unknown name."""
        if isinstance(key, str) and self.executor.get_input_index(key) < 0:
            return None
        return self.executor.get_input(key)


def _executor_of(module: object) -> GraphExecutor:
    inner = getattr(module, "module", module)
    executor = getattr(inner, "executor", inner)
    if not isinstance(executor, GraphExecutor):
        raise TypeMismatchError(f"expected a graph executor module, got {type(module).__name__}")
    return executor


class GraphModule:
    """A graph executor with upstream's methods.

    Parameters
    ----------
    module : what ``lib["default"](device)`` returns.

    Example
    -------
    >>> module = GraphModule(lib["default"](cpu(0)))    # doctest: +SKIP
    >>> module.set_input("x", x); module.run(); y = module.get_output(0).numpy()    # doctest: +SKIP
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._executor = _executor_of(module)
        self._set_one = self._executor.set_input
        self._run = self._executor.run
        self._get_output = self._executor.get_output

    def set_input(self, key: "str | int | None" = None, value: object = None, **params: object) -> None:
        """Copy values into inputs: one by name or number, or several as keywords."""
        if key is not None:
            self._set_one(key, value)
        if params:
            self._executor.set_inputs(params)

    def set_input_zero_copy(self, key: "str | int | None" = None, value: object = None, **params: object) -> None:
        """Let inputs read the caller's memory, without copying."""
        if key is not None:
            self._executor.set_input_zero_copy(key, value)
        for name, tensor in params.items():
            self._executor.set_input_zero_copy(name, tensor)

    def set_output_zero_copy(self, key: "str | int", value: object) -> None:
        """Let an output be written to the caller's memory, without copying."""
        self._executor.set_output_zero_copy(key, value)

    def run(self, **input_dict: object) -> None:
        """Set the given inputs and run."""
        if input_dict:
            self._executor.set_inputs(input_dict)
        self._run()

    def get_num_outputs(self) -> int:
        return len(self._executor.graph.heads)

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return len(self._executor.input_names)

    def get_input(self, index: "str | int", out: NDArray | None = None) -> NDArray | None:
        """The tensor of an input (None for an unknown name), or its values copied into ``out``."""
        if isinstance(index, str) and self._executor.get_input_index(index) < 0:
            return None
        tensor = self._executor.get_input(index)
        return tensor if out is None else tensor.copyto(out)

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 for an unknown name."""
        return self._executor.get_input_index(name)

    def get_output_index(self, name: str) -> int:
        """The number of an output by the name of the node that makes it, -1 for an unknown name."""
        return self._executor.get_output_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and element types of the inputs that are not parameters."""
        return self._executor.get_input_info()

    def get_output(self, index: "str | int", out: NDArray | None = None) -> NDArray:
        """An output tensor (overwritten by the next run), or its values copied into ``out``."""
        return self._get_output(index, out)

    def debug_get_output(self, node: "str | int", out: NDArray | None = None) -> NDArray:
        """Intermediate values are the debug executor's business."""
        raise NotImplementedError("debug_get_output: use contrib.debugger.debug_executor instead of graph_executor")

    def load_params(self, params_bytes: "bytes | bytearray") -> None:
        """Bind parameters saved by ``save_param_dict``."""
        self._executor.load_params(params_bytes)

    def share_params(self, other: "GraphModule", params_bytes: "bytes | bytearray") -> None:
        """Use another module's memory for the parameters named in ``params_bytes``."""
        self._executor.share_params(_executor_of(other), params_bytes)

    def __getitem__(self, key: str) -> PackedFunc:
        return self.module[key]

    def benchmark(
        self, device: Device | None = None, func_name: str = "run", repeat: int = 5, number: int = 5,
        min_repeat_ms: float | None = None, limit_zero_time_iterations: int = 100, end_to_end: bool = False,
        cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1, **kwargs: object,
    ) -> BenchmarkResult:
        """Time ``func_name``; with ``end_to_end`` the copies of inputs and outputs too.  Keywords are inputs."""
        options = (number, repeat, min_repeat_ms or 0, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        if end_to_end:
            pairs = [item for pair in kwargs.items() for item in pair]
            where = device or cpu(0)
            run = self._executor.run_from_inputs
            return measure(lambda: run(where.device_type, where.device_id, *pairs), *options)
        if kwargs:
            self._executor.set_inputs(kwargs)
        return self.module.time_evaluator(func_name, device, *options)()


def kernels_of(library: object) -> Mapping[str, "Kernel | PackedFunc"]:
    """The kernels of a library module: its ``fast_kernels()``, else packed functions of it and of what it imports, called through Python."""
    if isinstance(library, Mapping):
        return library
    fast = getattr(library, "fast_kernels", None)
    if fast is not None and not library._imports:  # type: ignore[attr-defined]
        return fast()
    return _PackedKernels(library, fast() if fast is not None else {})  # type: ignore[arg-type]


class _PackedKernels(Mapping):
    """Kernels, and packed functions of a module, looked up when a graph names them."""

    def __init__(self, module: Module, fast: "Mapping[str, Kernel]") -> None:
        self._module, self._fast = module, fast

    def get(self, name: str, default: object = None) -> Any:
        return self._fast.get(name) or self._module._find(name, True) or default

    def __getitem__(self, name: str) -> "Kernel | PackedFunc":
        return self._fast.get(name) or self._module.get_function(name, True)

    def __iter__(self):  # noqa: ANN204
        return iter(())

    def __len__(self) -> int:
        return 0


def create(graph_json_str: "str | bytes", libmod: object, device: "Device | list[Device]") -> GraphModule:
    """A `GraphModule` from graph JSON, a library and a device; set the parameters with `load_params` or `set_input`."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    if not devices or not all(isinstance(dev, Device) for dev in devices):
        raise ArgumentError(f"graph_executor.create: expected a Device or a list of them, got {device!r}")
    executor = GraphExecutor(graph_json_str, kernels_of(libmod), device=devices, keep=libmod)
    return GraphModule(GraphExecutorModule(executor))
