"""``anchorleg run``: a model, or something compiled, on inputs."""
from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..support.errors import ArgumentError, ArtifactError
from .inputs import Info, random_inputs, read_inputs
from .models import check_writable, is_model, load_or_compile
from .options import build_options, parse_shapes
from .progress import Steps
from .vm_runner import UNKNOWN_SIZE, VmRunner, is_executable


@click.command("run")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--inputs", multiple=True, metavar="FILE | NAME=FILE", help="npz, npy, an image, or raw bytes; random values when left out.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the results to this npz file.")
@click.option("--print-top", type=click.IntRange(1), metavar="K", help="Print the K largest entries of each result with their indices.")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Run this often and report the times.")
@click.option("--profile", is_flag=True, help="Print the time of each kernel.")
@build_options
def command(model: Path, inputs: tuple[str, ...], output: Path | None, print_top: int | None, repeat: int, profile: bool,
            target: str, opt_level: int, shapes: tuple[str, ...], executor: str) -> None:
    """Run MODEL: an .onnx file, or a file written by 'compile'.

    Where a compiled model takes any size, --shape says which sizes random values have.
    """
    from ..runtime.device import cpu
    from ..runtime.graph_executor import GraphModule

    if output is not None:
        check_writable(output)
    with Steps() as steps:
        factory = load_or_compile(model, target, opt_level, parse_shapes(shapes), executor, steps)
        runner = VmRunner(factory) if is_executable(factory) else GraphModule(factory["default"](cpu(0)))
        info = _with_sizes(runner.get_input_info(), {} if is_model(model) else parse_shapes(shapes), bool(inputs))
        values = read_inputs(inputs, info) if inputs else random_inputs(info)
        steps.begin("run")
        times = _run(runner, values, repeat)
    if not inputs:
        click.echo("no --inputs: random values were used" + _chosen(runner, shapes))
    results = [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]
    for i, result in enumerate(results):
        _describe(i, result, print_top)
    click.echo(f"time: {_times(times)}")
    click.echo(steps.summary())
    if profile:
        click.echo(_profile(factory, values))
    if output is not None:
        _write(output, results)


def _with_sizes(info: Info, shapes: dict[str, list[int]], are_given: bool) -> Info:
    """What is known of the inputs, with the shapes that ``--shape`` gives to random values."""
    if shapes and are_given:
        raise ArgumentError("--shape says which sizes random values have, and --inputs gives the values: give one of them")
    unknown = [name for name in shapes if name not in info[0]]
    if unknown:
        raise ArgumentError(f"--shape: the model has no input {unknown[0]!r}; it has: {', '.join(info[0])}")
    return {**info[0], **{name: tuple(shape) for name, shape in shapes.items()}}, info[1]


def _chosen(runner: Any, shapes: tuple[str, ...]) -> str:
    """What was taken for sizes that nobody gave."""
    if not isinstance(runner, VmRunner):
        return ""
    left = [name for name in runner.open_inputs() if name not in parse_shapes(shapes)]
    return f", with {UNKNOWN_SIZE} for each unknown dimension of {', '.join(left)} (--shape gives others)" if left else ""


def _run(runner: Any, values: dict[str, np.ndarray], repeat: int) -> list[float]:
    runner.set_input(**values)
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        runner.run()
        times.append(time.perf_counter() - started)
    return times


def _times(times: list[float]) -> str:
    if len(times) == 1:
        return f"{times[0] * 1e3:.3f} ms (one run; --repeat for more)"
    return f"median {statistics.median(times) * 1e3:.3f} ms, best {min(times) * 1e3:.3f} ms over {len(times)} runs"


def _describe(index: int, result: np.ndarray, top: int | None) -> None:
    click.echo(f"output {index}: {result.dtype}{list(result.shape)}")
    if top is None:
        return
    flat = result.reshape(-1)
    for at in np.argsort(-flat.astype("float64"), kind="stable")[:top]:
        where = ", ".join(map(str, np.unravel_index(int(at), result.shape)))
        click.echo(f"  [{where}] {flat[at]:g}")


def _profile(factory: Any, values: dict[str, np.ndarray]) -> str:
    if is_executable(factory):
        return VmRunner(factory).profile(values)
    from ..runtime.device import cpu
    from ..runtime.graph_executor_debug import GraphModuleDebug

    debug = GraphModuleDebug(factory["debug_create"]("default", cpu(0)), [cpu(0)], factory.get_graph_json(), None)
    return str(debug.profile(**values))


def _write(path: Path, results: list[np.ndarray]) -> None:
    from ..support.files import atomic_write_with

    try:
        atomic_write_with(path, lambda stream: np.savez(stream, *results))
    except OSError as exc:
        raise ArtifactError(f"cannot write {path}: {exc.strerror or exc}; nothing was left behind") from exc
    click.echo(f"results written to {path}")
