"""Tunable computes and schedules: registration under a task's name, and how a schedule finds its workload again."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ...support.errors import ArgumentError
from .dispatcher import DispatchContext
from .extraction import TaskExtractEnv
from .task import args_to_workload, template_of

_KEY = "workload"


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Makes ``func(cfg, *args)`` a tunable compute called with ``*args``; usable as a decorator.

    The configuration comes from the current dispatch context; the workload is attached to what was computed.
    """
    def decorate(compute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compute)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise ArgumentError(f"task {task_name!r}: pass arguments by position, not {', '.join(kwargs)}")
            env = TaskExtractEnv.current
            if env is not None and env.tracing:
                env.add_task(task_name, args)
            workload = args_to_workload(args, task_name)
            result = compute(_query(workload), *args)
            for tensor in result if isinstance(result, (list, tuple)) else [result]:
                tensor.op.attrs[_KEY] = workload
            return result

        template_of(task_name).fcompute = wrapper
        return wrapper

    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Makes ``func(cfg, outs, *args)`` the schedule of a task, called with ``outs``; usable as a decorator."""
    def decorate(schedule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(schedule)
        def wrapper(outs: Any, *args: Any, **kwargs: Any) -> Any:
            workload = get_workload(outs if isinstance(outs, (list, tuple)) else [outs], task_name)
            if workload is None:
                raise ArgumentError(f"no tensor of the schedule was computed by task {task_name!r}: "
                                    "register its compute with autotvm.register_topi_compute under the same name")
            return schedule(_query(workload), outs, *args, **kwargs)

        template_of(task_name).fschedule = wrapper
        return wrapper

    return decorate if func is None else decorate(func)


def _query(workload: Any) -> Any:
    from ...target.target import Target

    return DispatchContext.current.query(Target.current(allow_none=True), workload)  # type: ignore[union-attr]


def get_workload(outs: Sequence[Any], task_name: str | None = None) -> Any:
    """The workload attached to the tensors or to what they are computed from (of that task, if named); None without one."""
    stack, seen = [t.op for t in reversed(list(outs))], set()
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        workload = dict(op.attrs).get(_KEY)
        if workload is not None and (task_name is None or workload[0] == task_name):
            return workload
        stack.extend(t.op for t in reversed(op.input_tensors))
    return None
