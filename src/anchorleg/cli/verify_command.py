"""``anchorleg verify``: do the compiled results agree with the operators' definitions, and with ONNX Runtime?"""
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple, Sequence

import click
import numpy as np

from ..support.errors import ArgumentError
from .inputs import random_inputs, read_inputs
from .models import check_exists, dynamic_inputs, import_model, shape_options
from .options import build_options, parse_shapes
from .progress import Steps

EXIT_DIFFERENT = 2


class Difference(NamedTuple):
    """How far two results lie apart, relative to the largest magnitude; inf where NaNs or shapes disagree."""

    what: str
    error: float


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest absolute difference over the largest magnitude of ``want``; NaN and infinities must be in the same places."""
    if got.shape != want.shape:
        return float("inf")
    if got.size == 0:
        return 0.0
    a, b = got.astype("float64"), want.astype("float64")
    special = ~np.isfinite(b)
    if not np.array_equal(special, ~np.isfinite(a)) or not np.array_equal(a[special], b[special], equal_nan=True):
        return float("inf")
    scale = np.abs(b[~special]).max(initial=0.0)
    return float(np.abs(a[~special] - b[~special]).max(initial=0.0) / (scale + 1e-30))


@click.command("verify", short_help="Check MODEL against numpy and ONNX Runtime.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--inputs", multiple=True, metavar="FILE | NAME=FILE", help="Inputs as for 'run'; random values when left out.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="Largest difference allowed, relative to the largest magnitude.")
@build_options
def command(model: Path, inputs: tuple[str, ...], tolerance: float, target: str, opt_level: int, shapes: tuple[str, ...], executor: str) -> int:
    """Check MODEL: compiled kernels against the operators' numpy definitions, and against ONNX Runtime when it is installed."""
    from .. import relay
    from ..ir.transform import PassContext
    from ..target.target import Target

    check_exists(model)
    with Steps() as steps:
        steps.begin("import")
        mod, params = import_model(model, parse_shapes(shapes))
        if dynamic_inputs(mod):
            raise ArgumentError(f"{model}: fix the unknown dimensions of {', '.join(dynamic_inputs(mod))} with {shape_options(mod)}")
        steps.begin("optimise")
        with PassContext(opt_level=opt_level):
            factory = relay.build(mod, target=Target(target), params=params, progress=steps.kernel)
        values = _values(factory, inputs)
        steps.begin("numpy")
        first = first_difference(factory, values, tolerance)
        steps.begin("compare")
        against = _against_onnxruntime(model, factory, values)
    return _report(first, against, tolerance)


def _values(factory: Any, inputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    from ..runtime.graph_executor import GraphModule

    info = GraphModule(factory["default"]()).get_input_info()
    return read_inputs(inputs, info) if inputs else random_inputs(info)


def grouped(types: Sequence[Any], flat: Sequence[np.ndarray]) -> list[Any]:
    """Tensors in a row as arguments of these types: a tuple takes as many as it has fields."""
    from ..ir.type import TupleType

    rest = iter(flat)
    return [tuple(next(rest) for _ in t.fields) if isinstance(t, TupleType) else next(rest) for t in types]


def first_difference(factory: Any, values: dict[str, np.ndarray], tolerance: float) -> Difference | None:
    """The first kernel, in execution order, whose result differs from the numpy definition on the same inputs."""
    from ..relay.backend.numpy_interpreter import evaluate

    executor = factory.executor()
    executor.set_inputs(values)
    code = factory.graph_code
    starts = list(itertools.accumulate((len(node.outputs) for node in code.nodes), initial=0))
    known: dict[Any, np.ndarray] = {}
    for n, node in enumerate(code.nodes):
        if node.is_input:
            known[(n, 0)] = np.asarray(executor.get_input(node.name).numpy())
    calls = iter(range(len(executor.calls)))
    for n, node in enumerate(code.nodes):
        if node.is_input:
            continue
        args = [known[(e.node, e.index)] for e in node.inputs]
        if node.is_alias:
            known[(n, 0)] = args[0].reshape(node.outputs[0].shape)
            continue
        number = next(calls)
        executor.run_call(number)
        func = factory.functions[node.func_name]
        found = evaluate(func, grouped([p.checked_type for p in func.params], args))
        wanted = list(found) if isinstance(found, (tuple, list)) else [found]
        for i, want in enumerate(wanted):
            got = executor.entry_view(starts[n] + i).numpy()
            error = relative_error(got, np.asarray(want))
            if not error <= tolerance:
                return Difference(f"kernel {node.func_name}, output {i} ({node.origin or 'no origin known'})", error)
            known[(n, i)] = np.array(got)
    return None


def _against_onnxruntime(model: Path, factory: Any, values: dict[str, np.ndarray]) -> list[Difference] | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    from ..runtime.graph_executor import GraphModule

    runner = GraphModule(factory["default"]())
    runner.run(**values)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; its warnings are of no use to a reader of the comparison
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names: Sequence[str] = [o.name for o in session.get_outputs()]
    wanted = session.run(None, values)
    return [Difference(f"output {name}", relative_error(runner.get_output(i).numpy(), want)) for i, (name, want) in enumerate(zip(names, wanted))]


def _report(first: Difference | None, against: list[Difference] | None, tolerance: float) -> int:
    bad = first is not None
    click.echo("kernels agree with the operators' numpy definitions" if first is None
               else f"DIFFERENT: the first kernel that differs from numpy is {first.what}: {first.error:.2e}")
    if against is None:
        click.echo("ONNX Runtime is not installed; not compared with it (pip install onnxruntime)")
    for row in against or ():
        wrong = not row.error <= tolerance
        bad = bad or wrong
        click.echo(f"{'DIFFERENT' if wrong else 'ok'}: {row.what}: {row.error:.2e} from ONNX Runtime (allowed {tolerance:g})")
    return EXIT_DIFFERENT if bad else 0
