"""What strategies are written with: wrappers that give computes and schedules the strategy's signature.

A compute of a strategy is ``(attrs, inputs, out_type) -> list[te.Tensor]``, a schedule ``(attrs, outs, target) -> te.Schedule``.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .... import te
from ....target.generic_func import generic_func
from ....topi import injective, reduction_schedule
from ..op import OpStrategy, register_strategy

Compute = Callable[[Any, list[Any], Any], Any]
ScheduleRule = Callable[[Any, list[Any], Any], Any]


def naive_schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    """Plain loops: each operation as a whole, in order."""
    return te.create_schedule([t.op for t in outs])


def wrap_topi_schedule(topi_schedule: Callable[[Any], Any]) -> ScheduleRule:
    """A strategy's schedule from one that takes the output tensors only."""
    def schedule(attrs: Any, outs: list[Any], target: Any) -> Any:
        return topi_schedule(outs)

    schedule.__name__ = getattr(topi_schedule, "__name__", "schedule")
    return schedule


def wrap_topi_compute(topi_compute: Callable[..., Any]) -> Compute:
    """A strategy's compute from one that takes the input tensors only."""
    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        return as_outputs(topi_compute(*inputs))

    return compute


def as_outputs(result: Any) -> list[Any]:
    """One tensor, or several, as a list."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


@generic_func
def schedule_injective(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    """The schedule of injective operators."""
    return injective.schedule_injective(outs)


@generic_func
def schedule_reduce(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    """The schedule of reductions."""
    return reduction_schedule.schedule_reduce(outs)


def simple_strategy(compute: Compute, schedule: ScheduleRule, name: str) -> Callable[..., OpStrategy]:
    """A strategy with one implementation for all targets (the schedule may still choose by target)."""
    def strategy(attrs: Any, inputs: list[Any], out_type: Any, target: Any) -> OpStrategy:
        found = OpStrategy()
        found.add_implementation(compute, schedule, name=name)
        return found

    return strategy


def register_injective(op_name: str, compute: Compute) -> None:
    """Gives an operator an injective compute ``(attrs, inputs, out_type)`` with the schedule of its kind."""
    register_strategy(op_name, simple_strategy(compute, schedule_injective, f"{op_name}.generic"))


def register_reduction(op_name: str, compute: Compute) -> None:
    """Gives an operator a reducing compute ``(attrs, inputs, out_type)`` with the schedule of its kind."""
    register_strategy(op_name, simple_strategy(compute, schedule_reduce, f"{op_name}.generic"))
