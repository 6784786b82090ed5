"""Assertions about arrays, integer expressions and gradients."""
from __future__ import annotations

import logging
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ..support.errors import ArgumentError

logger = logging.getLogger(__name__)


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Shapes are equal and ``|actual - desired| <= atol + rtol * |desired|`` everywhere.

    Not symmetric.  AssertionError otherwise, with the values that differ.
    """
    got, want = np.asanyarray(actual), np.asanyarray(desired)
    if got.shape != want.shape:
        raise AssertionError(f"shapes differ: expected {want.shape}, got {got.shape}")
    np.testing.assert_allclose(_wide(got), _wide(want), rtol=rtol, atol=atol, verbose=True)


def _wide(array: np.ndarray) -> np.ndarray:
    """Narrow floats that numpy has no kind for are compared as float32."""
    return array.astype("float32") if array.dtype.kind == "V" else array


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Two integer expressions can be proved equal; ValueError otherwise."""
    from ..arith import Analyzer

    if not Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def check_bool_expr_is_true(bool_expr: Any, vranges: Mapping[Any, Any], cond: Any = None) -> None:
    """``bool_expr`` (where ``cond`` holds) is true for every value of the variables in their ranges.

    AssertionError with a counterexample otherwise.
    """
    from .. import te, tir
    from ..driver.build_module import build
    from ..runtime import ndarray

    expr = bool_expr if cond is None else te.any(tir.Not(cond), bool_expr)
    ranges = list(vranges.items())

    def body(*index: Any) -> Any:
        return tir.stmt_functor.substitute(expr, {v: i + r.min for (v, r), i in zip(ranges, index)})

    tensor = te.compute([int(r.extent) for _, r in ranges], body)
    result = ndarray.empty([int(r.extent) for _, r in ranges], tensor.dtype)
    build(te.create_schedule(tensor.op), [tensor], "llvm")(result)
    wrong = np.argwhere(result.numpy() == 0)
    if len(wrong):
        found = ", ".join(f"{v} = {int(i) + int(r.min)}" for (v, r), i in zip(ranges, wrong[0]))
        raise AssertionError(f"{expr} is not always true: counterexample {found}")


def check_int_constraints_trans_consistency(constraints_trans: Any, vranges: Mapping[Any, Any] | None = None) -> None:
    """A change of integer variables maps the points of either side to points of the other."""
    change = constraints_trans
    _check_one_way(change.src, change.dst, change.src_to_dst, change.dst_to_src, dict(vranges or {}))
    _check_one_way(change.dst, change.src, change.dst_to_src, change.src_to_dst, dict(vranges or {}))


def _check_one_way(before: Any, after: Any, there: Any, back: Any, ranges: dict[Any, Any]) -> None:
    from .. import te, tir
    from ..arith import Analyzer

    analyzer, true = Analyzer(), tir.const(1, "bool")
    ranges.update(before.ranges.items())
    substitute = tir.stmt_functor.substitute
    same = [v == analyzer.simplify(substitute(there[v], back)) for v in before.variables if v in there]
    bounds = [te.all(v >= after.ranges[v].min, v < after.ranges[v].min + after.ranges[v].extent)
              for v in after.variables if v in after.ranges]
    holds = [substitute(c, back) for c in [*after.relations, *bounds]]
    check_bool_expr_is_true(te.all(analyzer.simplify(te.all(true, *holds)), te.all(true, *same)), ranges,
                            cond=te.all(true, *before.relations))


Named = Mapping[str, np.ndarray]


def check_numerical_grads(function: Callable[..., Any], input_values: Named | Sequence[np.ndarray],
                          grad_values: Named | Sequence[np.ndarray], function_value: Any = None, delta: float = 1e-3,
                          atol: float = 1e-2, rtol: float = 0.1) -> None:
    """Gradients agree with finite differences of a scalar ``function`` of arrays.

    Parameters
    ----------
    input_values: the point, by position or by name; the function is called the same way.
    grad_values: gradients of the same shapes.
    function_value: the function at the point, if known.
    delta: step of the differences.
    atol, rtol: allowed distance ``atol * sqrt(size) + rtol * norm`` per gradient.

    AssertionError when they differ, ValueError for NaN or infinity.
    """
    call, point, grads = _by_name(function, input_values, grad_values)
    center = call(point) if function_value is None else function_value
    for name, grad in grads.items():
        if grad.shape != point[name].shape:
            raise AssertionError(f"the gradient of {name!r} has shape {grad.shape}, expected {point[name].shape}")

        def shifted(j: int, step: float, name: str = name) -> Any:
            moved = np.array(point[name])
            moved.reshape(-1)[j] += step
            return (call({**point, name: moved}) - center) / step

        _compare_gradient(name, grad, shifted, delta, atol, rtol)


def _by_name(function: Callable[..., Any], inputs: Any, grads: Any) -> tuple[Callable[[Named], Any], dict[str, np.ndarray], dict[str, np.ndarray]]:
    if isinstance(inputs, Mapping):
        return lambda values: function(**values), dict(inputs), dict(grads)
    names = [str(i) for i in range(len(inputs))]
    if len(grads) != len(names):
        raise ArgumentError(f"expected {len(names)} gradients, got {len(grads)}")
    return lambda values: function(*[values[n] for n in names]), dict(zip(names, inputs)), dict(zip(names, grads))


def _compare_gradient(name: str, grad: np.ndarray, slope: Callable[[int, float], Any], delta: float, atol: float, rtol: float) -> None:
    """Differences of rising order, as few as agree, against one gradient."""
    numeric = np.zeros(grad.size, "float64")
    flat = grad.reshape(-1)
    for j in range(grad.size):
        numeric[j] = _difference(flat[j], lambda step: slope(j, step), delta, atol, rtol)
    distance, norm = np.linalg.norm(numeric - flat), np.linalg.norm(numeric)
    if not (np.isfinite(distance) and np.isfinite(norm)):
        raise ValueError(f"NaN or infinity in the gradient of {name!r}: analytical {grad}, numerical {numeric.reshape(grad.shape)}")
    if distance > atol * np.sqrt(grad.size) + rtol * norm:
        raise AssertionError(f"the gradient of {name!r} differs from finite differences by {distance} (allowed: "
                             f"{atol * np.sqrt(grad.size) + rtol * norm}): analytical {grad}, numerical {numeric.reshape(grad.shape)}")
    logger.info("gradient of %s agrees: distance %g", name, distance)


def _difference(expected: Any, slope: Callable[[float], Any], delta: float, atol: float, rtol: float) -> float:
    def close(value: Any) -> bool:
        return bool(np.abs(value - expected) < atol + rtol * np.abs(value))

    forward = slope(delta)
    if close(forward):
        return float(forward)
    central = (forward + slope(-delta)) / 2
    if close(central):
        return float(central)
    half = (slope(delta / 2) + slope(-delta / 2)) / 2
    return float((4 * half - central) / 3)
