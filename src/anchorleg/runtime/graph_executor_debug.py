"""The graph executor node by node: times of each, intermediate values, and a table of where time goes."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..support.errors import ArgumentError
from ..support.files import atomic_write
from .device import Device
from .graph_executor import GraphExecutor, GraphExecutorModule, GraphModule, kernels_of
from .module import Module
from .ndarray import NDArray, array
from .profiling import BenchmarkResult, measure


@dataclass(frozen=True)
class NodeTime:
    """One node's share of a run: its name, kernel, seconds, output shapes and argument bytes."""

    name: str
    function: str
    seconds: float
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    bytes: int


class Report:
    """Per-node times of one run; prints as a table."""

    def __init__(self, calls: Sequence[NodeTime], total: float) -> None:
        self.calls = tuple(calls)
        self.total = total

    def table(self, sort: bool = True, aggregate: bool = True, limit: int | None = None) -> str:
        """The times as text: ``sort`` by time, ``aggregate`` nodes that call the same kernel, show ``limit`` rows."""
        rows = self._rows(aggregate)
        if sort:
            rows.sort(key=lambda row: -row[2])
        spent = sum(row[2] for row in rows) or 1.0
        cells = [("kernel", "calls", "time (us)", "percent", "MB", "output")]
        for name, calls, seconds, size, shape in rows[:limit]:
            share = f"{100 * seconds / spent:.1f}"
            cells.append((name, str(calls), f"{seconds * 1e6:.1f}", share, f"{size / 1e6:.2f}", shape))
        cells.append(("total of the kernels", str(len(self.calls)), f"{spent * 1e6:.1f}", "", "", ""))
        return _columns(cells)

    def _rows(self, aggregate: bool) -> list[tuple[str, int, float, int, str]]:
        rows: dict[object, tuple[str, int, float, int, str]] = {}
        for index, call in enumerate(self.calls):
            shape = ", ".join(f"{kind}{list(extent)}" for extent, kind in zip(call.shapes, call.dtypes))
            name = call.function if aggregate else call.name
            key = call.function if aggregate else index
            old = rows.get(key, (name, 0, 0.0, 0, shape))
            rows[key] = (name, old[1] + 1, old[2] + call.seconds, old[3] + call.bytes, shape)
        return list(rows.values())

    def csv(self) -> str:
        """One line for each node: name, kernel, microseconds, bytes."""
        lines = [f'"{c.name}","{c.function}",{c.seconds * 1e6:.3f},{c.bytes}' for c in self.calls]
        return "\n".join(["name,kernel,us,bytes", *lines])

    def json(self) -> str:
        """The report as JSON text."""
        calls = [
            {"name": c.name, "kernel": c.function, "us": c.seconds * 1e6, "bytes": c.bytes,
             "shapes": [list(s) for s in c.shapes], "dtypes": list(c.dtypes)} for c in self.calls
        ]
        return json.dumps({"total_us": self.total * 1e6, "calls": calls})

    def __str__(self) -> str:
        return self.table()


def _columns(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    left = {0, len(widths) - 1}
    lines = []
    for row in cells:
        parts = (text.ljust(w) if i in left else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths)))
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


class GraphModuleDebug(GraphModule):
    """A `GraphModule` that can stop at any node.

    Parameters
    ----------
    module : a graph executor module.
    device, graph_json_str : kept for upstream's signature.
    dump_root : folder for times and tensors, written by `run` when given.
    """

    def __init__(
        self, module: Module, device: "Device | Sequence[Device] | None" = None, graph_json_str: str | None = None,
        dump_root: str | None = None,
    ) -> None:
        super().__init__(module)
        self.device = device
        self.dump_root = Path(dump_root) if dump_root else None
        self.last_report: Report | None = None

    def run(self, **input_dict: object) -> None:
        """Run node by node; the times are kept in ``last_report``."""
        self.last_report = self.profile(**input_dict)
        if self.dump_root is not None:
            self._dump(self.dump_root)

    def profile(self, collectors: object = None, **input_dict: object) -> Report:
        """Run node by node and report each node's time; one untimed run comes first."""
        if input_dict:
            self._executor.set_inputs(input_dict)
        self._run()
        executor, clock = self._executor, time.perf_counter_ns
        times = []
        begin = clock()
        for number in range(len(executor.calls)):
            start = clock()
            executor.run_call(number)
            times.append((clock() - start) * 1e-9)
        total = (clock() - begin) * 1e-9
        self._run()  # leaves redirected outputs in order, and every output as a plain run would
        return Report([self._describe(n, seconds) for n, seconds in enumerate(times)], total)

    def _describe(self, number: int, seconds: float) -> NodeTime:
        graph = self._executor.graph
        _, node = self._executor.calls[number]
        size = sum(graph.entry_bytes(entry) for entry in (*node.inputs, *node.outputs))
        shapes = tuple(graph.shapes[entry] for entry in node.outputs)
        dtypes = tuple(str(graph.dtypes[entry]) for entry in node.outputs)
        return NodeTime(node.name, node.function or "", seconds, shapes, dtypes, size)

    def run_individual(
        self, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0, limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1,
    ) -> list[float]:
        """Mean seconds of each node, each measured by itself; placeholders and views count 0."""
        self._run()
        seconds = [0.0] * len(self._executor.graph.nodes)
        for position, (index, _) in enumerate(self._executor.calls):
            result = measure(
                lambda p=position: self._executor.run_call(p), number, repeat, min_repeat_ms,
                limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown,
            )
            seconds[index] = result.mean
        self._run()
        return seconds

    def run_individual_node(
        self, index: int, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100, cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Time one node, given by its number in the graph; nodes with nothing to do take 0."""
        for position, (node_index, _) in enumerate(self._executor.calls):
            if node_index == index:
                self._run()
                return measure(
                    lambda: self._executor.run_call(position), number, repeat, min_repeat_ms,
                    limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown,
                )
        return BenchmarkResult([0.0] * repeat)

    def debug_get_output(self, node: "str | int", out: NDArray | None = None, output: int = 0) -> NDArray:
        """Run up to a node, by name or number, and return a copy of its output (or fill ``out``)."""
        index = self._node_number(node)
        executor = self._executor
        for position, (node_index, _) in enumerate(executor.calls):
            if node_index > index:
                break
            executor.run_call(position)
        outputs = executor.graph.nodes[index].outputs
        if not 0 <= output < len(outputs):
            raise ArgumentError(f"node {node!r} has {len(outputs)} outputs, there is no number {output}")
        value = executor.entry_view(outputs[output])
        return array(value) if out is None else out.copyfrom(value)

    get_node_output = debug_get_output
    execute_node = debug_get_output

    def _node_number(self, node: "str | int") -> int:
        nodes = self._executor.graph.nodes
        if isinstance(node, int) and 0 <= node < len(nodes):
            return node
        for index, candidate in enumerate(nodes):
            if candidate.name == node:
                return index
        raise ArgumentError(f"the graph has no node {node!r}; it has {len(nodes)} nodes, see debug_nodes()")

    def debug_nodes(self) -> list[str]:
        """The names of the graph's nodes, in order."""
        return [node.name for node in self._executor.graph.nodes]

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """The last run's times as a table."""
        return self.last_report.table(sort_by_time, aggregate=False) if self.last_report else ""

    def exit(self) -> None:
        """Nothing is left behind; kept for upstream's callers."""

    def _dump(self, root: Path) -> None:
        from .params import save_param_dict

        root.mkdir(parents=True, exist_ok=True)
        graph = self._executor.graph
        tensors: Mapping[str, NDArray] = {
            f"{graph.nodes[index].name}____{n}": self.debug_get_output(index, output=n)
            for index, node in self._executor.calls for n in range(len(node.outputs))
        }
        atomic_write(root / "output_tensors.params", bytes(save_param_dict(tensors)))
        if self.last_report is not None:
            atomic_write(root / "execution_trace.json", self.last_report.json().encode())


def create(
    graph_json_str: "str | bytes", libmod: object, device: "Device | list[Device]", dump_root: str | None = None
) -> GraphModuleDebug:
    """A `GraphModuleDebug` from graph JSON, a library and a device."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    if not devices or not all(isinstance(dev, Device) for dev in devices):
        raise ArgumentError(f"debug_executor.create: expected a Device or a list of them, got {device!r}")
    executor = GraphExecutor(graph_json_str, kernels_of(libmod), device=devices, keep=libmod)
    return GraphModuleDebug(GraphExecutorModule(executor), devices, None, dump_root)
