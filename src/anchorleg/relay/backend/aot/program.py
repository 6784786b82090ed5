"""The main function as a list of steps: kernel calls and copies over named memory.

``main`` (fused, typed) → graph nodes → ``Program``.  Results are written where the caller wants them; what lies between is
planned by lifetimes, and an element-wise kernel writes over an input that nobody reads afterwards.
"""
from __future__ import annotations

import hashlib
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from ....ir.op import OpPattern
from ....ir.visit import post_order
from ....runtime.dtype import DataType
from ....support.errors import ArgumentError
from ....support.names import NameSupply, c_identifier
from ...expr import Call
from ...function import Function
from ..graph_executor_codegen import GraphCode
from ..graph_nodes import Entry, GraphNode, TensorInfo
from ..graph_plan_memory import alias_roots
from ..kernels import expression_children
from ..memory import BufferInfo

INPUT, OUTPUT, CONSTANT, WORKSPACE = "input", "output", "constant", "workspace"


class Place(NamedTuple):
    """Memory: an input, output or constant by number, or the workspace buffer of that number."""

    kind: str
    index: int


class Tensor(NamedTuple):
    """A tensor at the model's border, or a constant: its name as the model says it, its C name, its type."""

    name: str
    symbol: str
    info: TensorInfo
    data: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of the data."""
        return tensor_bytes(self.info)


class KernelCall(NamedTuple):
    """A call of a kernel; ``scratch`` is the workspace buffer with the kernel's own memory (None: it needs none)."""

    kernel: str
    args: tuple[Place, ...]
    scratch: Place | None
    origin: str
    in_place: bool = False


class Copy(NamedTuple):
    """A copy of ``size`` bytes."""

    source: Place
    target: Place
    size: int
    origin: str


class Program(NamedTuple):
    """All of ``main``: borders, constants, workspace buffers, steps in order.

    ``input_places`` and ``output_places`` say where the model's inputs and results lie: with the caller, or in the workspace.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    constants: list[Tensor]
    buffers: list[BufferInfo]
    steps: list[Any]
    input_places: list[Place]
    output_places: list[Place]


def tensor_bytes(info: TensorInfo) -> int:
    """Bytes of a tensor's data."""
    dtype = DataType(info.dtype)
    bits = 8 if info.dtype == "bool" else dtype.bits
    return (int(np.prod(info.shape, dtype=np.int64)) * bits * dtype.lanes + 7) // 8


class Choices(NamedTuple):
    """What a program may do: let kernels write over an input that is read no more; keep one of several equal constants; hold the
    model's inputs and results in the workspace."""

    in_place: bool = False
    merge_constants: bool = False
    workspace_io: bool = False


def build_program(code: GraphCode, functions: dict[str, Function], scratch_of: Callable[[str], int], output_names: Sequence[str] = (),
                  choices: Choices = Choices()) -> Program:
    """A flattened ``main`` as a program; ``scratch_of(kernel)`` gives the bytes a kernel needs of its own."""
    return _Lowering(code, functions, scratch_of, output_names, choices).run()


class _Lowering:
    def __init__(self, code: GraphCode, functions: dict[str, Function], scratch_of: Callable[[str], int], output_names: Sequence[str],
                 choices: Choices) -> None:
        self.code, self.functions, self.scratch_of, self.choices = code, functions, scratch_of, choices
        self.roots = alias_roots(code.nodes)
        self.places: dict[Entry, Place] = {}
        self.inputs: list[Tensor] = []
        self.constants: list[Tensor] = []
        self.sizes: list[tuple[str, int, str]] = []
        self.life: list[list[int]] = []
        self.steps: list[Any] = []
        self.input_places: list[Place] = []
        self.output_places: list[Place] = []
        self.equal = _EqualConstants()
        self.last = self._last_reads()
        self.results = {self._root(h) for h in code.heads}
        self.outputs = self._outputs(output_names)
        self.overwritable = {name: overwritable_inputs(f) for name, f in functions.items()} if choices.in_place else {}

    def _root(self, entry: Entry) -> Entry:
        return self.roots.get(entry, entry)

    def _last_reads(self) -> dict[Entry, int]:
        last: dict[Entry, int] = {}
        for n, node in enumerate(self.code.nodes):
            for i in range(len(node.outputs)):
                last.setdefault(self._root(Entry(n, i)), n)
            if not node.is_alias:
                for entry in node.inputs:
                    last[self._root(entry)] = n
        return last

    def _outputs(self, given: Sequence[str]) -> list[Tensor]:
        heads = self.code.heads
        names = list(given) or (["output"] if len(heads) == 1 else [f"output{i}" for i in range(len(heads))])
        if len(names) != len(heads):
            raise ArgumentError(f"output_tensor_names names {len(names)} results, but the model has {len(heads)}")
        return _bordered([(name, self.code.nodes[e.node].outputs[e.index]) for name, e in zip(names, heads)], "output")

    def run(self) -> Program:
        self._declare()
        self._results()
        for n, node in enumerate(self.code.nodes):
            if not node.is_input and not node.is_alias:
                self._call(n, node)
        self._copies()
        self._keep_results()
        buffers = [BufferInfo(name, size, first, last, origin) for (name, size, origin), (first, last) in zip(self.sizes, self.life)]
        return Program(self.inputs, self.outputs, self.constants, buffers, self.steps, self.input_places, self.output_places)

    def _declare(self) -> None:
        """Inputs and constants."""
        found: list[tuple[str, TensorInfo]] = []
        names = NameSupply()
        for n, node in enumerate(self.code.nodes):
            if not node.is_input:
                continue
            if node.name in self.code.params:
                self.places[Entry(n)] = self._constant(node, names)
            else:
                found.append((node.name, node.outputs[0]))
                self.input_places.append(self._border(INPUT, len(self.input_places), node.name, node.outputs[0]))
                self.places[Entry(n)] = self.input_places[-1]
        self.inputs = _bordered(found, "input")

    def _constant(self, node: GraphNode, names: NameSupply) -> Place:
        data = self.code.params[node.name]
        same = self.equal.find(data, len(self.constants)) if self.choices.merge_constants else len(self.constants)
        if same == len(self.constants):
            self.constants.append(Tensor(node.name, names.fresh(f"{c_identifier(node.name)}_constant"), node.outputs[0], data))
        return Place(CONSTANT, same)

    def _border(self, kind: str, number: int, name: str, info: TensorInfo) -> Place:
        """Where an input or a result lies; in the workspace an input is there from the start."""
        return self._buffer(f"{kind} {name!r}", tensor_bytes(info), "", 0) if self.choices.workspace_io else Place(kind, number)

    def _results(self) -> None:
        """A kernel's result that is one of the model's is written to the caller's memory (or to its own place in the workspace)."""
        for i, head in enumerate(self.code.heads):
            self.output_places.append(self._border(OUTPUT, i, self.outputs[i].name, self.outputs[i].info))
            if self.output_places[i].kind == WORKSPACE:
                self.life[self.output_places[i].index] = [len(self.code.nodes), 0]
            root = self._root(head)
            if root not in self.places:
                self.places[root] = self.output_places[i]

    def _keep_results(self) -> None:
        """Results in the workspace outlive the last step."""
        for place in self.output_places:
            if place.kind == WORKSPACE:
                self.life[place.index][1] = max(0, len(self.steps) - 1)

    def _call(self, n: int, node: GraphNode) -> None:
        step = len(self.steps)
        kernel = str(node.func_name)
        arguments = [self.places[self._root(e)] for e in node.inputs]
        taken = self._taken(n, node, kernel, arguments)
        results = [self._result(Entry(n, i), info, node, step, taken) for i, info in enumerate(node.outputs)]
        scratch = self._scratch(kernel, step)
        for place in arguments:
            self._alive(place, step)
        self.steps.append(KernelCall(kernel, (*arguments, *results), scratch, origin_of(node, self.functions.get(kernel)), taken is not None))

    def _taken(self, n: int, node: GraphNode, kernel: str, arguments: list[Place]) -> Place | None:
        """The workspace buffer of an input that the kernel may write its result over."""
        if len(node.outputs) != 1 or Entry(n, 0) in self.places:
            return None
        size = tensor_bytes(node.outputs[0])
        for i in self.overwritable.get(kernel, ()):
            root, place = self._root(node.inputs[i]), arguments[i]
            if root in self.results:
                continue
            if place.kind == WORKSPACE and self.last[root] == n and self.sizes[place.index][1] == size and arguments.count(place) == 1:
                return place
        return None

    def _result(self, entry: Entry, info: TensorInfo, node: GraphNode, step: int, taken: Place | None) -> Place:
        found = self.places.get(entry)
        if found is None:
            found = taken if taken is not None else self._buffer(f"{node.name}_out{entry.index or ''}", tensor_bytes(info), str(node.func_name), step)
            self.places[entry] = found
        self._alive(found, step)
        return found

    def _alive(self, place: Place, step: int) -> None:
        if place.kind == WORKSPACE:
            first, last = self.life[place.index]
            self.life[place.index] = [min(first, step), max(last, step)]

    def _scratch(self, kernel: str, step: int) -> Place | None:
        size = self.scratch_of(kernel)
        return self._buffer(f"{kernel}_scratch", size, kernel, step) if size else None

    def _buffer(self, name: str, size: int, origin: str, step: int) -> Place:
        self.sizes.append((name, max(1, size), origin))
        self.life.append([step, step])
        return Place(WORKSPACE, len(self.sizes) - 1)

    def _copies(self) -> None:
        """Results that are inputs, constants, or another result as well."""
        for i, head in enumerate(self.code.heads):
            source, target = self.places[self._root(head)], self.output_places[i]
            if source != target:
                self._alive(source, len(self.steps))
                self._alive(target, len(self.steps))
                self.steps.append(Copy(source, target, self.outputs[i].nbytes, self.outputs[i].name))


class _EqualConstants:
    """Constants by content."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, bytes], int] = {}

    def find(self, data: Any, number: int) -> int:
        """The number of the first constant with this dtype and these bytes; ``number``, which is remembered, when there is none."""
        values = np.ascontiguousarray(data.numpy() if hasattr(data, "numpy") else data)
        return self.known.setdefault((str(values.dtype), hashlib.sha256(values.reshape(-1).view(np.uint8)).digest()), number)


def _bordered(found: Sequence[tuple[str, TensorInfo]], what: str) -> list[Tensor]:
    """Tensors with C names; two that become one in C are an error."""
    symbols: dict[str, str] = {}
    for name, _ in found:
        symbol = c_identifier(name)
        if symbol in symbols:
            raise ArgumentError(f"Sanitized {what} tensor name clash: {symbols[symbol]!r} and {name!r} are both {symbol!r} in C; rename one of them")
        symbols[symbol] = name
    return [Tensor(name, symbol, info) for symbol, (name, info) in zip(symbols, found)]


def overwritable_inputs(func: Function) -> list[int]:
    """Numbers of the parameters a kernel may write its result over: every operator that depends on them computes an element from
    the element at the same place."""
    shapes = {id(p): p.checked_type for p in func.params}
    depends: dict[int, set[int]] = {id(p): {i} for i, p in enumerate(func.params)}
    bad: set[int] = set()
    result = func.body.checked_type
    for node in post_order(func.body, expression_children):
        if id(node) in depends:
            continue
        used: set[int] = set().union(*(depends.get(id(c), set()) for c in expression_children(node)))
        depends[id(node)] = used
        if not _elementwise(node, result):
            bad |= used
    same = [i for i, p in enumerate(func.params) if _same_type(shapes[id(p)], result)]
    return [i for i in same if i not in bad and i in depends[id(func.body)]]


def _elementwise(node: Any, result: Any) -> bool:
    if not isinstance(node, Call):
        return not expression_children(node)
    pattern = int(node.op.get_attr("TOpPattern", OpPattern.OPAQUE))
    return pattern <= OpPattern.BROADCAST and getattr(node.checked_type, "dims", None) == getattr(result, "dims", ())


def _same_type(a: Any, b: Any) -> bool:
    dims = getattr(a, "dims", None)
    return dims is not None and dims == getattr(b, "dims", ()) and DataType(a.dtype).itemsize == DataType(b.dtype).itemsize


def origin_of(node: GraphNode, func: Function | None) -> str:
    """The names of the model's nodes behind a kernel call."""
    spans = [node.origin]
    if func is not None:
        spans += [n.span for n in post_order(func.body, expression_children) if isinstance(n, Call)]
    names: dict[str, None] = {}
    for span in spans:
        for part in getattr(span, "spans", (span,)):
            source = getattr(part, "source_name", None)
            if source is not None and source.name:
                names.setdefault(source.name)
    return ", ".join(list(names)[:8]) + (", …" if len(names) > 8 else "")
