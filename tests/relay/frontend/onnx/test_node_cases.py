"""The node cases that come with the onnx package, compiled: results equal, or a refusal that says why; never something else."""
from __future__ import annotations

import contextlib
import functools
import io
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.transform import PassContext
from anchorleg.support.errors import AnchorlegError

# Cases whose published values are not what ONNX Runtime computes either: the size before rounding counts in theirs.
OTHER_READING = ("test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners")
# Values published with four digits.
FOUR_DIGITS = ("test_averagepool_2d_ceil_last_window_starts_on_pad", "test_gridsample_bicubic", "test_roialign_aligned_false", "test_roialign_aligned_true")


@functools.lru_cache(maxsize=1)
def all_cases() -> list[Any]:
    """The package's cases (it collects them once per process, so they cannot be asked for one operator at a time)."""
    from onnx.backend.test.case.node import collect_testcases

    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        return list(collect_testcases(None))


def cases(op: str | None) -> list[Any]:
    """The cases of one operator, or all."""
    return [c for c in all_cases() if op is None or [n.op_type for n in c.model.graph.node] == [op]]


def tensors(case: Any) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """Inputs and results of a case; None where one is not a tensor of numbers."""
    graph = case.model.graph
    if any(v.type.WhichOneof("value") != "tensor_type" for v in [*graph.input, *graph.output]):
        return None
    sides = [[numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x) for x in side] for side in case.data_sets[0]]
    return None if any(a.dtype.kind in "OSU" for side in sides for a in side) else (sides[0], sides[1])


def freeze_small(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model with inputs that can hold sizes or axes made constants."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    small = {n for n, a in values.items() if a.dtype.kind in "iub" or a.size <= 16}
    fixed.graph.initializer.extend(numpy_helper.from_array(values[n], n) for n in small)
    return fixed, {n: a for n, a in values.items() if n not in small}


def run(model: onnx.ModelProto, values: dict[str, np.ndarray], level: int) -> list[np.ndarray]:
    mod, params = relay.frontend.from_onnx(model, {n: list(a.shape) for n, a in values.items()}, freeze_params=True)
    with PassContext(opt_level=level):
        runner = GraphModule(relay.build(mod, "llvm", params=params)["default"]())
    runner.run(**{n: values[n] for n in runner.get_input_info()[0]})
    return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]


def results(case: Any, inputs: list[np.ndarray], level: int) -> list[np.ndarray] | AnchorlegError:
    """What the case gives, its small inputs fixed if it must be; the error where it is refused."""
    values = {v.name: a for v, a in zip(case.model.graph.input, inputs)}
    try:
        return run(case.model, values, level)
    except AnchorlegError:
        try:
            return run(*freeze_small(case.model, values), level)
        except AnchorlegError as exc:
            return exc


def agrees(name: str, got: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    if [(g.shape, g.dtype) for g in got] != [(w.shape, w.dtype) for w in wanted]:
        return False
    return all(_close(name, g, w) for g, w in zip(got, wanted))


def _close(name: str, got: np.ndarray, want: np.ndarray) -> bool:
    if want.dtype.kind not in "fV":
        return bool(np.array_equal(got, want))
    unit = {2: 1e-3, 1: 0.1}.get(want.dtype.itemsize, 1e-5)
    unit = 8e-3 if "bf16" in name or "bfloat16" in name else 2e-4 if name in FOUR_DIGITS else unit
    return bool(np.allclose(got.astype("float64"), want.astype("float64"), rtol=2 * unit, atol=unit, equal_nan=True))


def wrong_and_refused(op: str | None, level: int) -> tuple[list[str], list[str], int]:
    wrong, refused, right = [], [], 0
    for case in cases(op):
        data = tensors(case)
        if data is None or case.name in OTHER_READING:
            continue
        got = results(case, data[0], level)
        if isinstance(got, AnchorlegError):
            refused.append(f"{case.name}: {got}")
        elif agrees(case.name, got, data[1]):
            right += 1
        else:
            wrong.append(case.name)
    return wrong, refused, right


@pytest.mark.parametrize("op", ["Conv", "Resize", "Pad", "LSTM", "Gemm", "Softmax", "ScatterND", "AveragePool", "Mod", "CumSum"])
def test_some(op: str) -> None:
    wrong, refused, right = wrong_and_refused(op, 3 if len(op) % 2 else 0)
    assert not wrong and not refused
    assert right


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
def test_all(level: int) -> None:
    wrong, refused, right = wrong_and_refused(None, level)
    assert not wrong
    assert right >= 1670, f"only {right}\n" + "\n".join(refused)
    assert all(len(text) > 60 for text in refused)
