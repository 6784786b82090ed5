"""Building models ahead of time in tests, running them and comparing, with upstream's names.

Models run in this process (the generated C compiled by the machine's compiler), as a C program with code of the test's own, or, with a
runner for a board, on an emulator.
"""
from __future__ import annotations

import tempfile
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from ..ir.module import IRModule
from ..ir.transform import PassContext
from ..relay.backend import Executor, Runtime
from ..relay.build_module import build
from ..relay.function import Function
from ..runtime.aot_executor import AotModule
from ..runtime.device import cpu
from ..runtime.ndarray import NDArray
from ..support.errors import ArgumentError
from ..target.target import Target
from .aot_main import FAILURE, SUCCESS, Application

FLOAT_TOLERANCE = 1e-3


class AOTTestModel(NamedTuple):
    """A model to test: module, inputs and expected results by name, tolerance, name, parameters."""

    module: Any
    inputs: Mapping[str, Any] | None
    outputs: Mapping[str, Any] | None
    output_tolerance: float | None = None
    name: str = "default"
    params: Mapping[str, Any] | None = None
    extra_memory_in_bytes: int = 0


class AOTCompiledTestModel(NamedTuple):
    """A test model with what it was compiled to."""

    model: AOTTestModel
    executor_factory: Any


class AOTDataLinkage(NamedTuple):
    """Where test data goes: a section and its alignment."""

    section: str
    alignment: int


class AOTTestRunner(NamedTuple):
    """Where models run: ``makefile`` "default" is this process, else the name of a board; ``pass_config`` for building."""

    makefile: str = "default"
    prologue: str = ""
    epilogue: str = ""
    includes: Sequence[str] = ()
    parameters: Mapping[str, str] = {}
    pass_config: Mapping[str, Any] = {}


def _as_list(models: Any) -> list[Any]:
    return list(models) if isinstance(models, (list, tuple)) and not isinstance(models, (AOTTestModel, AOTCompiledTestModel)) else [models]


def compile_models(models: Any, interface_api: str, use_unpacked_api: bool, workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8,
                   enable_op_fusion: bool = True, pass_config: Mapping[str, Any] | None = None, use_runtime_executor: bool = True,
                   target: Any = "c", workspace_memory_pools: Any = None, constant_memory_pools: Any = None, schedule_name: str | None = None,
                   runtime: Runtime = Runtime("crt")) -> list[AOTCompiledTestModel]:
    """Each model compiled with the given options."""
    if runtime.name != "crt":
        raise ArgumentError(f"models are compiled for the runtime crt here, got {runtime.name}")
    executor = Executor("aot", {"workspace-byte-alignment": workspace_byte_alignment, "constant-byte-alignment": constant_byte_alignment,
                                "interface-api": interface_api, "unpacked-api": use_unpacked_api})
    config = {"tir.disable_vectorize": True, **(pass_config or {}), **({} if enable_op_fusion else {"relay.FuseOps.max_depth": 1})}
    found = []
    with PassContext(opt_level=3, config=config):
        for model in _as_list(models):
            factory = build(model.module, target=Target(target) if isinstance(target, str) else target, executor=executor, runtime=runtime,
                            workspace_memory_pools=workspace_memory_pools, constant_memory_pools=constant_memory_pools, params=model.params,
                            mod_name=model.name)
            found.append(AOTCompiledTestModel(model, factory))
    return found


def run_and_check(models: Any, runner: AOTTestRunner = AOTTestRunner(), interface_api: str = "packed", debug_calculated_workspaces: bool = False,
                  workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8, data_linkage: AOTDataLinkage | None = None,
                  test_dir: str | None = None, verbose: bool = False, use_workspace_io: bool = False, debug_last_error: bool = False,
                  checker: Callable[[str], bool] | None = None, print_output_on_mismatch: bool = False) -> bool:
    """Runs compiled models and compares their results with those expected; RuntimeError where they differ.

    Models run in this process; as a C program of their own (in ``test_dir``, or in a folder that is removed) where the runner has code or
    headers of its own, or where ``test_dir``, ``data_linkage`` or ``checker`` are given.  ``checker(folder)`` says before the program is
    built whether to go on.  ``print_output_on_mismatch`` names the elements that differ.
    """
    compiled = _as_list(models)
    inputs = [{n: v.numpy() if isinstance(v, NDArray) else np.asarray(v) for n, v in (c.model.inputs or {}).items()} for c in compiled]
    if runner.prologue or runner.epilogue or runner.includes or test_dir or data_linkage or checker:
        defines = (f"-DTVM_RUNTIME_ALLOC_ALIGNMENT_BYTES={workspace_byte_alignment}", f"-DTVM_RUNTIME_CONST_ALLOC_ALIGNMENT_BYTES={constant_byte_alignment}")
        found = _run_program(compiled, inputs, runner, data_linkage, use_workspace_io, test_dir, checker, defines)
        if found is None:
            return False
    else:
        found = [_run(c.executor_factory, i, runner) for c, i in zip(compiled, inputs)]
    for one, results in zip(compiled, found):
        if one.model.outputs is not None:
            _compare(one.model, results, print_output_on_mismatch)
    return True


def _run_program(compiled: Sequence[AOTCompiledTestModel], inputs: Sequence[Mapping[str, np.ndarray]], runner: AOTTestRunner, linkage: Any,
                 workspace_io: bool, test_dir: str | None, checker: Any, defines: Sequence[str]) -> list[list[np.ndarray]] | None:
    if runner.makefile != "default":
        raise ArgumentError(f"a runner with code or headers of its own runs on this machine (makefile \"default\"), not on {runner.makefile!r}")
    rows = [(c.model.name, c.executor_factory, i) for c, i in zip(compiled, inputs)]
    program = Application(rows, runner.prologue, runner.epilogue, runner.includes, linkage, workspace_io)
    with tempfile.TemporaryDirectory(prefix="anchorleg-aot-") as own:
        folder = test_dir or own
        program.write(folder)
        return None if checker is not None and not checker(folder) else program.run(folder, defines)


def _run(factory: Any, inputs: Mapping[str, np.ndarray], runner: AOTTestRunner) -> list[np.ndarray]:
    if runner.makefile == "default":
        module = AotModule(factory["default"](cpu(0)))
        for name, value in inputs.items():
            module.set_input(name, value)
        module.run()
        return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    from ..micro import create_project

    with tempfile.TemporaryDirectory(prefix="anchorleg-aot-") as folder:
        project = create_project(factory, folder, runner.makefile, inputs, tolerance=FLOAT_TOLERANCE)
        missing = project.missing_tools()
        if missing:
            import pytest

            pytest.skip(f"needs {', '.join(missing)}")
        return project.results(project.make("run"))


def _compare(model: AOTTestModel, results: list[np.ndarray], elements: bool = False) -> None:
    expected = list((model.outputs or {}).items())
    if len(expected) != len(results):
        raise RuntimeError(f"{model.name}: expected {len(expected)} results, got {len(results)}")
    for (name, want), got in zip(expected, results):
        want = want.numpy() if isinstance(want, NDArray) else np.asarray(want)
        if want.size == got.size and want.ndim <= 1:
            got = got.reshape(want.shape)  # a scalar result, written as a list of one
        if want.shape != got.shape:
            raise RuntimeError(f"{model.name}: result {name} is expected to have the shape {want.shape}, got {got.shape}")
        tolerance = model.output_tolerance or (FLOAT_TOLERANCE if want.dtype.kind == "f" else 0)
        bad = ~(np.abs(got.astype(np.float64) - want.astype(np.float64)) <= tolerance) & ~(np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
        if bad.any():
            raise RuntimeError(f"{model.name}: result {name} differs.\n{_differences(got, want, bad, 100 if elements else 1)}\n{FAILURE}")


def _differences(got: np.ndarray, want: np.ndarray, bad: np.ndarray, most: int) -> str:
    """The first elements that differ, and how many do."""
    form = "f" if want.dtype.kind == "f" else "d"
    at = np.argwhere(bad)[:most]
    rows = [f"Element [{', '.join(map(str, i))}]: {got[tuple(i)]:{form}}, {want[tuple(i)]:{form}}" for i in at]
    count = int(bad.sum())
    return "\n".join(["Element [Position]: Actual, Reference", "-" * 37, *rows, *(["…"] if count > most else []),
                      f"Mismatched elements: {count} / {bad.size} ({count / bad.size:.2%})"])


def compile_and_run(models: Any, runner: AOTTestRunner, interface_api: str, use_unpacked_api: bool, debug_calculated_workspaces: bool = False,
                    workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8, enable_op_fusion: bool = True,
                    data_linkage: AOTDataLinkage | None = None, use_runtime_executor: bool = True, target: Any = "c",
                    target_opts: Mapping[str, Any] | None = None, test_dir: str | None = None, verbose: bool = False,
                    schedule_name: str | None = None, debug_last_error: bool = False, checker: Any = None, print_output_on_mismatch: bool = False,
                    runtime: Runtime = Runtime("crt")) -> bool:
    """Compiles, runs and compares."""
    text = " ".join([str(target), *(f"-{k}={v}" for k, v in (target_opts or {}).items())]) if isinstance(target, str) else target
    compiled = compile_models(models, interface_api, use_unpacked_api, workspace_byte_alignment, constant_byte_alignment, enable_op_fusion,
                              runner.pass_config, use_runtime_executor, text, schedule_name=schedule_name, runtime=runtime)
    return run_and_check(compiled, runner, interface_api, debug_calculated_workspaces, workspace_byte_alignment, constant_byte_alignment,
                         data_linkage, test_dir, verbose, False, debug_last_error, checker, print_output_on_mismatch)


def get_dtype_range(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer type; (0, 1) for floats."""
    kind = np.dtype(dtype).kind
    if kind not in "iuf":
        raise ArgumentError(f"expected an integer or floating-point type, got {dtype}")
    return (0, 1) if kind == "f" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def generate_ref_data(mod: Any, input_data: Mapping[str, Any], params: Mapping[str, Any] | None = None, target: Any = "llvm") -> dict[str, np.ndarray]:
    """The results of a module by name, computed by the graph executor."""
    from ..runtime.graph_executor import GraphModule

    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    if not isinstance(module["main"], Function):
        raise ArgumentError("generate_ref_data: the module's main is expected to be a function")
    runner = GraphModule(build(module, target=target, params=params)["default"](cpu(0)))
    runner.run(**{n: v for n, v in input_data.items()})
    count = runner.get_num_outputs()
    given = module["main"].get_attr("output_tensor_names")
    names = [str(n) for n in given] if given else ["output"] if count == 1 else [f"output{i}" for i in range(count)]
    return {name: runner.get_output(i).numpy() for i, name in enumerate(names)}


def convert_to_relay(tflite_model_buf: bytes, bind_params_by_name: bool = True) -> tuple[Any, Any]:
    """A TFLite model as (module, parameters)."""
    from ..relay import frontend

    return frontend.from_tflite(tflite_model_buf)  # type: ignore[attr-defined]


def create_relay_module_and_inputs_from_tflite_file(tflite_model_file: str, bind_params_by_name: bool = True) -> tuple[Any, dict[str, np.ndarray], Any]:
    """A TFLite file as (module, random inputs, parameters)."""
    from pathlib import Path

    mod, params = convert_to_relay(Path(tflite_model_file).read_bytes(), bind_params_by_name)
    random, inputs = np.random.default_rng(0), {}
    for param in mod["main"].params:
        low, high = get_dtype_range(param.checked_type.dtype)
        shape, dtype = param.checked_type.concrete_shape, param.checked_type.dtype
        inputs[param.name_hint] = (random.random(shape) if dtype.startswith("float") else random.integers(low, high + 1, shape)).astype(dtype)
    return mod, inputs, params


AOT_SUCCESS_TOKEN, AOT_FAILURE_TOKEN = SUCCESS, FAILURE

__all__ = ["AOT_FAILURE_TOKEN", "AOT_SUCCESS_TOKEN", "AOTCompiledTestModel", "AOTDataLinkage", "AOTTestModel", "AOTTestRunner", "Application",
           "compile_and_run", "compile_models", "convert_to_relay", "create_relay_module_and_inputs_from_tflite_file", "generate_ref_data",
           "get_dtype_range", "run_and_check"]
