"""Times networks under anchorleg and ONNX Runtime, interleaved in one process on one core, and prints ratios.

    python -m benchmarks.compare                       # all standard networks
    python -m benchmarks.compare mlp model.onnx --rounds 20

Both sides use one thread.  Printed per network: build time, median times, their ratio (under 1: anchorleg is
faster), and the largest difference of the results relative to their largest magnitude.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

os.environ.setdefault("ANCHORLEG_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import onnx  # noqa: E402

from .networks import NETWORKS  # noqa: E402

TURN = 0.2  # seconds each side runs before the other has its turn


def feeds_for(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Seeded inputs of the shapes that the model states."""
    rng, known, feeds = np.random.default_rng(7), {t.name for t in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name not in known:
            tensor = value.type.tensor_type
            shape, dtype = [d.dim_value or 1 for d in tensor.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            feeds[value.name] = rng.standard_normal(shape).astype(dtype) if dtype.kind == "f" else rng.integers(0, 100, shape).astype(dtype)
    return feeds


def ours(model: onnx.ModelProto, feeds: dict[str, np.ndarray], opt_level: int) -> Callable[[], list[np.ndarray]]:
    """A call of the compiled model."""
    from anchorleg import relay
    from anchorleg.contrib.graph_executor import GraphModule
    from anchorleg.ir.transform import PassContext
    from anchorleg.runtime.device import cpu

    mod, params = relay.frontend.from_onnx(model, {k: list(v.shape) for k, v in feeds.items()}, freeze_params=True)
    with PassContext(opt_level=opt_level):
        runner = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu(0)))

    def run() -> list[np.ndarray]:
        for name, value in feeds.items():
            runner.set_input(name, value)
        runner.run()
        return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]

    return run


def onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Callable[[], list[np.ndarray]]:
    """A call of ONNX Runtime's session."""
    import onnxruntime as rt

    options = rt.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = rt.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def turn(run: Callable[[], Any]) -> list[float]:
    """The times of calls made during one turn."""
    times, end = [], time.perf_counter() + TURN
    while not times or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times


def difference(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    """The largest difference relative to the largest magnitude."""
    return max(float(np.abs(g - w).max() / (np.abs(w).max() + 1e-30)) if g.shape == w.shape else float("inf") for g, w in zip(got, want))


def measure(model: onnx.ModelProto, rounds: int, opt_level: int) -> dict[str, float]:
    """Build time, median times of both sides, and the difference of their results."""
    feeds = feeds_for(model)
    started = time.perf_counter()
    mine = ours(model, feeds, opt_level)
    first = [np.array(r) for r in mine()]
    build = time.perf_counter() - started
    theirs = onnxruntime(model, feeds)
    error = difference(first, theirs())
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        times[0].extend(turn(mine))
        times[1].extend(turn(theirs))
    a, b = map(statistics.median, times)
    return {"build": build, "ours": a * 1e3, "onnxruntime": b * 1e3, "ratio": a / b, "error": error}


def main() -> int:
    """Measures the networks named (names of the standard ones, or files)."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=list(NETWORKS))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--cpu", type=int, default=None, help="pin to this core")
    args = parser.parse_args()
    if args.cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.cpu})
    for name in args.models:
        model = NETWORKS[name]() if name in NETWORKS else onnx.load(name)
        row = measure(model, args.rounds, args.opt_level)
        print(f"{Path(name).stem:16s} build {row['build']:6.2f} s  anchorleg {row['ours']:9.3f} ms  onnxruntime {row['onnxruntime']:9.3f} ms  "
              f"x{row['ratio']:.3f}  error {row['error']:.1e}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
