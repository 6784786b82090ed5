"""Model Library Format: a tar file of sources or objects, headers, parameters and facts, laid out as upstream's version 7.

::

    metadata.json                                   what is in it: memory, targets, executors
    codegen/host/src/<model>_lib0.c …               C sources (weights.S and weights.bin too, when weights are large)
    codegen/host/lib/<model>_lib0.o …               objects, for LLVM targets
    codegen/host/include/tvmgen_<model>.h           interface
    parameters/<model>.params                       parameters, as save_param_dict writes them
    src/<model>.relay                               the program as it was handed to the build
    executor-config/graph/<model>.graph             for the graph executor
    executor-config/aot/<model>.svg                 picture of the memory plan, for the ahead-of-time executor
"""
from __future__ import annotations

import datetime
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

from ..relay.backend.aot.c_module import CLibraryModule
from ..relay.backend.aot.factory import AOTExecutorFactoryModule
from ..relay.backend.aot.program import tensor_bytes
from ..runtime.c_headers import support_files
from ..runtime.imports import linked_sources
from ..runtime.compiled import CKernelModule
from ..runtime.params import load_param_dict, save_param_dict
from ..support.errors import ArgumentError, ArtifactError
from ..support.files import atomic_write

VERSION = _GENERATED_VERSION = 7
MAIN = "__tvm_main__"


class UnsupportedInModelLibraryFormatError(ArgumentError):
    """The format has no place for what was to be exported."""


class RepeatedNameError(ArgumentError, AssertionError):
    """Two models of one archive have the same name."""


def _device(target: Any) -> int:
    return int(target.kind.default_device_type if hasattr(target.kind, "default_device_type") else 1)


def _entry(target: Any, info: Any) -> dict[str, int]:
    return {"device": _device(target), "workspace_size_bytes": int(info.workspace_sizes[target])}


def _build_function_memory_map(function_metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Memory of each kernel, and of the whole model."""
    main = function_metadata[MAIN]
    operators = [{"function_name": name, "workspace": [_entry(t, info) for t in info.workspace_sizes]}
                 for name, info in function_metadata.items() if name != MAIN]
    whole = [{**_entry(t, main), "constants_size_bytes": int(main.constant_sizes.get(t, 0)), "io_size_bytes": int(main.io_sizes.get(t, 0))}
             for t in main.workspace_sizes]
    return {"operator_functions": operators, "main": whole}


def _memory(mod: AOTExecutorFactoryModule) -> dict[str, Any]:
    functions = _build_function_memory_map(mod.function_metadata)
    program = mod.built.program
    for main in functions["main"]:
        main["inputs"] = {t.name: {"size": t.nbytes, "dtype": t.info.dtype} for t in program.inputs}
        main["outputs"] = {t.name: {"size": t.nbytes, "dtype": t.info.dtype} for t in program.outputs}
    pools = [{"name": p.name, "size_bytes": p.used, "limit_bytes": p.limit} for p in mod.plan.pools]
    return {"functions": functions, "pools": pools, "lower_bound_bytes": mod.plan.lower_bound}


def _graph_memory(mod: Any) -> dict[str, Any]:
    """Storage by number, memory of each kernel, and of the whole: working memory is what is neither input, constant nor result."""
    nodes, heads = mod.graph_code.nodes, mod.graph_code.heads
    results = {mod.plan.storage[e.node][e.index] for e in heads}
    sids: dict[int, dict[str, Any]] = {}
    for node, row in zip(nodes, mod.plan.storage):
        for sid, info in zip(row, node.outputs):
            one = sids.setdefault(sid, {"storage_id": sid, "size_bytes": 0, **({"input_binding": node.name} if node.is_input else {})})
            one["size_bytes"] = max(one["size_bytes"], tensor_bytes(info))
    given = [n for n in nodes if n.is_input and n.name not in mod.graph_code.params]
    inputs = {n.name: _tensor(n.outputs[0]) for n in given}
    names = ["output"] if len(heads) == 1 else [f"output{i}" for i in range(len(heads))]
    outputs = {name: _tensor(nodes[e.node].outputs[e.index]) for name, e in zip(names, heads)}
    working = sum(s["size_bytes"] for sid, s in sids.items() if sid not in results and "input_binding" not in s)
    workspaces = {name: max(info.workspace_sizes.values(), default=0) for name, info in mod.function_metadata.items()}
    scratch = max(workspaces.values(), default=0)
    functions = [{"function_name": n, "workspace": [{"device": 1, "workspace_size_bytes": size}]} for n, size in workspaces.items()]
    main = {"device": 1, "workspace_size_bytes": working + scratch, "inputs": inputs, "outputs": outputs,
            "constants_size_bytes": sum(tensor_bytes(n.outputs[0]) for n in nodes if n.is_input and n.name in mod.graph_code.params),
            "io_size_bytes": sum(t["size"] for t in (*inputs.values(), *outputs.values()))}
    return {"sids": list(sids.values()), "functions": {"operator_functions": functions, "main": [main]}}


def _tensor(info: Any) -> dict[str, Any]:
    return {"size": tensor_bytes(info), "dtype": info.dtype}


def _model_facts(mod: Any) -> dict[str, Any]:
    is_aot = isinstance(mod, AOTExecutorFactoryModule)
    return {"model_name": mod.libmod_name, "export_datetime": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ"),
            "memory": _memory(mod) if is_aot else _graph_memory(mod), "target": [str(mod.target)],
            "executors": ["aot" if is_aot else "graph"], "style": "full-model"}


def _code(mod: Any) -> dict[str, bytes]:
    """Sources, objects and headers of one model, by their names in the archive."""
    name, lib = mod.libmod_name, mod.lib
    if isinstance(lib, CLibraryModule):
        files = {_place(name, n): text.encode() for n, text in lib.sources.files.items()}
        files.update({f"codegen/host/src/{n}": data for n, data in lib.sources.binaries.items()})
        files[f"codegen/host/include/{lib.header_name}"] = lib.sources.header.encode()
        return files
    if isinstance(lib, CKernelModule):
        return {f"codegen/host/src/{name}_lib0.c": lib.get_source("c").encode()}
    objects = getattr(lib, "objects", None)
    if not objects:
        raise UnsupportedInModelLibraryFormatError(f"a library of kind {lib.type_key!r} has neither C sources nor objects to export")
    files = {f"codegen/host/lib/{name}_lib{i}.o": data for i, data in enumerate(objects)}
    files.update(_external_code(name, linked_sources(lib)))
    header = getattr(mod, "interface_header", "")
    if header:
        files[f"codegen/host/include/tvmgen_{name}.h"] = header.encode()
    return files


def _external_code(name: str, modules: Sequence[Any]) -> dict[str, bytes]:
    """Code of external compilers, which the objects call, and what it needs."""
    sources = {f"external{i}{m.suffix}": m.get_source() for i, m in enumerate(modules)}
    texts = {**sources, **support_files(sources.values())} if sources else {}
    return {_place(name, file): text.encode() for file, text in texts.items()}


def _place(model: str, file: str) -> str:
    """Where a file of the sources lies in the archive."""
    if file.endswith(".h"):
        return f"codegen/host/include/{file}"
    return f"codegen/host/src/{model}_{file}" if file.endswith((".c", ".cc")) else f"codegen/host/src/{file}"


def _members(mod: Any) -> dict[str, bytes]:
    name = mod.libmod_name
    files = {**_code(mod), f"parameters/{name}.params": bytes(save_param_dict(mod.params)), f"src/{name}.relay": str(getattr(mod, "source_mod", mod.ir_mod)).encode()}
    if isinstance(mod, AOTExecutorFactoryModule):
        files[f"executor-config/aot/{name}.svg"] = mod.memory_picture().encode()
    else:
        files[f"executor-config/graph/{name}.graph"] = mod.get_graph_json().encode()
    return files


def export_model_library_format(mods: Any, file_name: "str | os.PathLike[str]") -> Path:
    """Write one built model, or a list of them, as a Model Library Format archive; the path.

    Raises UnsupportedInModelLibraryFormatError for models without exportable code, ArgumentError for two of one name.
    """
    models = list(mods) if isinstance(mods, (list, tuple)) else [mods]
    names = [getattr(m, "libmod_name", None) for m in models]
    if None in names:
        raise UnsupportedInModelLibraryFormatError(f"expected what relay.build returns, got {type(models[names.index(None)]).__name__}")
    if len(set(names)) != len(names):
        raise RepeatedNameError(f"Multiple modules should have unique names, got {', '.join(map(str, names))}: build them with mod_name=")
    files: dict[str, bytes] = {"metadata.json": b""}
    for mod in models:
        members = _members(mod)
        clash = [n for n in members if n in files]
        if clash:
            raise UnsupportedInModelLibraryFormatError(f"two models both have a file {clash[0]}; export them one by one")
        files.update(members)
    files["metadata.json"] = json.dumps({"version": VERSION, "modules": {m.libmod_name: _model_facts(m) for m in models}}, indent=2).encode()
    path = Path(file_name)
    atomic_write(path, _tar(files))
    return path


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mode, entry.uname, entry.gname = len(data), 0o644, "root", "root"
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


class ModelLibrary(NamedTuple):
    """An archive read back: the facts of metadata.json, and every file by name."""

    metadata: dict[str, Any]
    files: dict[str, bytes]

    @property
    def names(self) -> list[str]:
        """The models in it."""
        return list(self.metadata["modules"])

    def params(self, name: str | None = None) -> dict[str, Any]:
        """The parameters of a model (the only one by default)."""
        return load_param_dict(self.files[f"parameters/{name or self.names[0]}.params"])

    def sources(self, suffixes: Sequence[str] = (".c", ".h", ".S", ".bin")) -> dict[str, bytes]:
        """Code files by their plain names."""
        return {Path(n).name: data for n, data in self.files.items() if n.startswith("codegen/") and n.endswith(tuple(suffixes))}


def read_model_library_format(file_name: "str | os.PathLike[str]") -> ModelLibrary:
    """An archive's contents; ArtifactError when it is none, is damaged, or is of a version not known."""
    try:
        with tarfile.open(file_name) as archive:
            found = {m.name.removeprefix("./"): archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}  # type: ignore[union-attr]
        metadata = json.loads(found["metadata.json"])
        version, modules = int(metadata["version"]), metadata["modules"]
    except (tarfile.TarError, OSError, KeyError, ValueError, TypeError) as err:
        raise ArtifactError(f"{file_name} is not a Model Library Format archive ({type(err).__name__}: {err})") from err
    if version != VERSION or not isinstance(modules, dict):
        raise ArtifactError(f"{file_name} is of version {version} of the Model Library Format; this program reads version {VERSION}")
    return ModelLibrary(metadata, found)
