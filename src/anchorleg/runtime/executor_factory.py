"""`GraphExecutorFactory`: a compiled model (code, graph, parameters) that makes executors."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..support.errors import ArgumentError, ArtifactError
from .artifact import pack_tensors, unpack_tensors
from .compiled import CompiledModule
from .device import Device
from .graph_executor import GraphExecutor, GraphExecutorModule, kernels_of
from .graph_json import Graph, parse_graph
from .module import Module, register_loader
from .ndarray import NDArray, array
from .packed_func import PackedFunc


class GraphExecutorFactory(Module):
    """A model ready to run.

    ``factory["default"](device)`` makes an executor module whose parameters are bound; all executors of one factory
    share its code and parameters.  Unpacks as ``graph_json, lib, params``.

    Parameters
    ----------
    graph_json : the graph in upstream's JSON form.
    lib : the kernels.
    params : name → tensor or numpy array.
    name : the function that makes an executor.
    ignored : names of parameters that the compiler folded away; setting them has no effect.
    """

    type_key = "GraphExecutorFactory"

    def __init__(
        self, graph_json: str, lib: Module, params: Mapping[str, object] | None = None, name: str = "default",
        ignored: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.graph_json = graph_json
        self.lib = lib
        self.params: dict[str, NDArray] = {
            key: value if isinstance(value, NDArray) else array(value) for key, value in (params or {}).items()
        }
        self.libmod_name = self.name = name
        self.ignored = tuple(ignored)
        self._graph: Graph | None = None

    def executor(self, *devices: Device | None) -> GraphExecutor:
        """A new executor; a model that is spread over several devices is given them all."""
        if self._graph is None:
            self._graph = parse_graph(self.graph_json)
        return GraphExecutor(self._graph, kernels_of(self.lib), self.params, [d for d in devices if d is not None] or None, self, self.ignored)

    def _own_function(self, name: str) -> PackedFunc | None:
        makers = {
            self.name: self._make, "debug_create": self._make_debug, "get_graph_json": lambda: self.graph_json,
            "get_graph_params": lambda: self.params, "list_module_names": lambda: [self.name],
            "remove_params": self.remove_params,
        }
        found = makers.get(name)
        return PackedFunc(found, name, keep=self) if found else self.lib._find(name, True)

    def _make(self, device: "Device | None" = None, *more: Device) -> GraphExecutorModule:
        return GraphExecutorModule(self.executor(device, *more))

    def _make_debug(self, name: object = None, device: "Device | None" = None, *more: Device) -> GraphExecutorModule:
        return GraphExecutorModule(self.executor(*(d for d in (name, device, *more) if isinstance(d, Device))))

    def get_graph_json(self) -> str:
        return self.graph_json

    get_executor_config = get_graph_json

    def get_params(self) -> dict[str, NDArray]:
        return self.params

    def remove_params(self) -> "GraphExecutorFactory":
        """The model without its parameters, which its executors then get by `load_params` or as inputs."""
        return GraphExecutorFactory(self.graph_json, self.lib, {}, self.name, self.ignored)

    def get_lib(self) -> Module:
        return self.lib

    @property
    def module(self) -> "GraphExecutorFactory":
        return self

    def __iter__(self) -> Iterator[object]:
        return iter((self.graph_json, self.lib, self.params))

    @property
    def is_binary_serializable(self) -> bool:
        return True

    def export_library(self, file_name: "str | os.PathLike[str]", **options: object) -> str:
        """Write model, code and parameters to one file that `load_module` reads; options as in `export.export`."""
        from .export import export

        if not isinstance(self.lib, CompiledModule):
            raise ArgumentError(f"export_library: a library of kind {self.lib.type_key!r} has no code to write")
        index, members = pack_tensors(self.params)
        facts = {"kind": "graph", "name": self.name, "params": index, "ignored": sorted(self.ignored)}
        return export(file_name, self.lib, facts, {"graph.json": self.graph_json.encode(), **members}, **options)

    def __repr__(self) -> str:
        return f"GraphExecutorFactory({self.name!r}, {len(self.params)} parameters)"


def _load(manifest: Mapping, members: Mapping[str, memoryview], path: Path) -> GraphExecutorFactory:
    code = CompiledModule.from_artifact(manifest, members, path)
    params = unpack_tensors(manifest.get("params", ()), members)
    text = bytes(members["graph.json"]).decode(errors="replace")
    try:
        json.loads(text)
        name, ignored = str(manifest["name"]), tuple(map(str, manifest.get("ignored", ())))
    except (KeyError, ValueError, TypeError) as err:
        raise ArtifactError(f"{path}: the model's description is malformed ({type(err).__name__}: {err})") from err
    return GraphExecutorFactory(text, code, params, name, ignored)


register_loader("graph", _load)
