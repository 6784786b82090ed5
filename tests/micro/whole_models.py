"""Whole models as C, held against ONNX Runtime: every interface, both compilers with all warnings, and run under guard.

Run as a program: ``python -m tests.micro.whole_models model.onnx``; sizes that the model leaves open are given as ``--shape x=1,3,48,192``.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterable, NamedTuple

import numpy as np
import onnx

from anchorleg import relay
from anchorleg.contrib.aot_executor import AotModule
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.runtime import cpu

from ..cases.random_networks import difference, reference
from .guarded import run_guarded, warnings_of

INTERFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "c": ("crt", {"interface-api": "c", "unpacked-api": True}),
    "crt-packed": ("crt", {"interface-api": "packed", "unpacked-api": False}),
    "crt-unpacked": ("crt", {"interface-api": "packed", "unpacked-api": True}),
    "cpp-packed": ("cpp", {}),
}
COMPILERS = ("gcc", "clang")


class Checked(NamedTuple):
    """What was found of a model: seconds to build and to compile, what compilers warned of, errors against ONNX Runtime, memory.

    ``exact`` has the errors of ONNX Runtime and of the C code against the same model computed in double precision (empty if it was not asked for).
    """

    build_seconds: float
    compile_seconds: dict[str, float]
    warnings: dict[str, str]
    errors: dict[str, float]
    workspace: int
    lower_bound: int
    constants: int
    exact: tuple[float, ...] = ()


def build(model: onnx.ModelProto, shapes: dict[str, list[int]], interface: str = "c", level: int = 3) -> Any:
    """A model compiled ahead of time to C."""
    mod, params = relay.frontend.from_onnx(model, shapes or None, freeze_params=True)
    runtime, options = INTERFACES[interface]
    with PassContext(opt_level=level):
        return relay.build(mod, target="c", params=params, executor=Executor("aot", options), runtime=Runtime(runtime), mod_name="model")


def feeds_for(model: onnx.ModelProto, shapes: dict[str, list[int]], high: int = 2) -> dict[str, np.ndarray]:
    """Seeded inputs: normal floats, integers under ``high``."""
    rng, known, feeds = np.random.default_rng(7), {t.name for t in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name not in known:
            tensor = value.type.tensor_type
            shape = shapes.get(value.name) or [d.dim_value for d in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            feeds[value.name] = (rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, high, shape)).astype(dtype)
    return feeds


def run_host(factory: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of the code that this machine's compiler makes."""
    module = AotModule(factory["default"](cpu(0)))
    module.run(**values)
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every float32 made a float64."""
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graphs = [made.graph]
    for graph in graphs:  # grows while it is walked
        for tensor in [*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.type == a.TENSOR)]:
            if tensor.data_type == single:
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype("float64"), tensor.name))
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.elem_type == single:
                value.type.tensor_type.elem_type = double
        for node in graph.node:
            graphs += [a.g for a in node.attribute if a.type == a.GRAPH]
            for attribute in node.attribute:
                if node.op_type == "Cast" and attribute.name == "to" and attribute.i == single:
                    attribute.i = double
    return made


def exact_results(model: onnx.ModelProto, shapes: dict[str, list[int]], values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results in double precision, which show whose error a difference is."""
    mod, params = relay.frontend.from_onnx(in_double(model), shapes or None, freeze_params=True)
    runner = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))
    runner.run(**{k: v.astype("float64") if v.dtype == np.float32 else v for k, v in values.items()})
    return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]


def worst(got: Iterable[np.ndarray], want: Iterable[np.ndarray]) -> float:
    """The largest difference relative to the largest magnitude."""
    return max(difference(g, w) for g, w in zip(got, want, strict=True))


def check(model: onnx.ModelProto, shapes: dict[str, list[int]], folder: Path, values: dict[str, np.ndarray] | None = None,
          interfaces: Iterable[str] = INTERFACES, compilers: Iterable[str] = COMPILERS, exact: bool = False) -> Checked:
    """Builds a model every way and runs it; AssertionError where a sanitizer found something."""
    values = values or feeds_for(model, shapes)
    wanted = reference(model, values)
    errors, warned, seconds = {}, {}, {}
    started = time.perf_counter()
    factories = {name: build(model, shapes, name) for name in interfaces}
    took = (time.perf_counter() - started) / len(factories)
    for name, factory in factories.items():
        for compiler in compilers:
            started = time.perf_counter()
            warned[f"{name} {compiler}"] = warnings_of(factory.lib.all_files(), folder / f"{name}-{compiler}", compiler)
            seconds[f"{name} {compiler}"] = time.perf_counter() - started
        results = run_host(factory, values)
        errors[name] = worst(results, wanted)
    truth = exact_results(model, shapes, values) if exact else []
    first = next(iter(factories.values()))
    if "c" in factories:
        errors["guarded"] = worst(run_guarded(factories["c"], folder / "guarded", values), wanted)
    constants = sum(c.nbytes for c in first.built.program.constants)
    against = tuple(worst([r.astype(t.dtype) for r, t in zip(side, truth)], truth) for side in (wanted, results)) if exact else ()
    return Checked(took, seconds, {k: w for k, w in warned.items() if w}, errors, first.plan.total, first.plan.lower_bound, constants, against)


def main() -> int:
    """Checks the models named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=D0,D1,…")
    parser.add_argument("--high", type=int, default=2, help="integer inputs are less than this")
    parser.add_argument("--exact", action="store_true", help="compute the model in double precision as well")
    parser.add_argument("--interface", action="append", choices=INTERFACES)
    args = parser.parse_args()
    shapes = {name: [int(d) for d in dims.split(",") if d] for name, _, dims in (s.rpartition("=") for s in args.shape)}
    bad = 0
    for path in args.models:
        model = onnx.load(path)
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = check(model, shapes, Path(folder), feeds_for(model, shapes, args.high), args.interface or INTERFACES, exact=args.exact)
            except (AssertionError, subprocess.SubprocessError) as exc:
                print(f"{path.stem}: {exc}", flush=True)
                bad += 1
                continue
        print(f"{path.stem}: build {found.build_seconds:.1f} s, compile {max(found.compile_seconds.values()):.1f} s, constants {found.constants}, "
              f"workspace {found.workspace} of at least {found.lower_bound}, errors "
              + ", ".join(f"{k} {v:.1e}" for k, v in found.errors.items()), flush=True)
        if found.exact:
            print("  against double precision: ONNX Runtime {:.1e}, C {:.1e}".format(*found.exact), flush=True)
        for key, text in found.warnings.items():
            print(f"  {key} warns: {text[:1500]}", flush=True)
        bad += bool(found.warnings)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
