"""Tasks: templates by name, applied to arguments; the workload that names a task in records."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ...ir.expr import FloatImm, IntImm, PrimExpr
from ...support.errors import ArgumentError
from .dispatcher import ApplyConfig, DispatchContext
from .space import ConfigSpace


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as nested tuples of plain values; a tensor is ``("TENSOR", shape, dtype)``."""
    return tuple(_serialize(a) for a in args)


def _serialize(value: Any) -> Any:
    if hasattr(value, "op") and hasattr(value, "shape"):
        return "TENSOR", tuple(_plain_dim(d) for d in value.shape), value.dtype
    if isinstance(value, (list, tuple)) or type(value).__name__ == "ShapeTuple":
        return tuple(_serialize(v) for v in value)
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, PrimExpr):
        return str(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise ArgumentError(f"a task's argument is expected to be a tensor, a number, text or a tuple of those, got {type(value).__name__}")


def _plain_dim(dim: Any) -> Any:
    return int(dim) if isinstance(dim, (int, IntImm)) else str(dim)


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Arguments from their serialised form: tensors become placeholders."""
    from ... import te

    return [te.placeholder(a[1], a[2]) if isinstance(a, tuple) and a and a[0] == "TENSOR" else a for a in args]


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """The workload: the task's name and its serialised arguments."""
    return ((task_name,) if task_name is not None else ()) + serialize_args(args)


class TaskTemplate:
    """What is registered under a task's name: one function, or a compute and a schedule."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fcompute: Callable[..., Any] | None = None
        self.fschedule: Callable[..., Any] | None = None
        self.fcustomized: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        """(schedule, argument tensors) for those arguments under the current target and configuration."""
        if self.fcustomized is not None:
            return self.fcustomized(*args, **kwargs)
        if self.fcompute is None:
            raise ArgumentError(f"task {self.name!r} has no compute: register one with autotvm.register_topi_compute({self.name!r})")
        out = self.fcompute(*args, **kwargs)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        schedule = self.fschedule(outs) if self.fschedule is not None else _plain_schedule(outs)
        return schedule, [*_input_tensors(args), *outs]


def _plain_schedule(outs: list[Any]) -> Any:
    from ... import te

    return te.create_schedule([t.op for t in outs])


def _input_tensors(args: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for arg in args:
        if hasattr(arg, "op") and hasattr(arg, "shape"):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found += _input_tensors(arg)
    return found


TASK_TABLE: dict[str, TaskTemplate] = {}


def template_of(name: str) -> TaskTemplate:
    """The template of that name, made when there is none."""
    return TASK_TABLE.setdefault(name, TaskTemplate(name))


class Task:
    """A template with its arguments on a target.

    ``workload`` names it in records; ``config_space`` holds what can be tuned.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name, self.args, self.kwargs = name, tuple(args), {}  # type: ignore[var-annotated]
        self.config_space: Any = None
        self.target: Any = None
        self.target_host: Any = None
        self.flop: float | None = None
        self.workload = args_to_workload(args, name)

    @property
    def func(self) -> TaskTemplate:
        """The registered template."""
        if self.name not in TASK_TABLE:
            raise ArgumentError(f"no task is registered as {self.name!r}; there are: {', '.join(sorted(TASK_TABLE)) or 'none'}")
        return TASK_TABLE[self.name]

    def instantiate(self, config: Any) -> tuple[Any, list[Any]]:
        """(schedule, argument tensors) with a configuration."""
        with ApplyConfig(config), self.target:
            return self.func(*deserialize_args(serialize_args(self.args)))

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={serialize_args(self.args)}, kwargs={self.kwargs}, workload={self.workload})"


def create(task_name: str, args: Sequence[Any], target: Any, target_host: Any = None) -> Task:
    """The task, with its space collected by running the template once."""
    from ...target.target import Target

    task = Task(task_name, args)
    task.target = Target(target, target_host) if target_host is not None else Target(target)
    space = ConfigSpace()
    with ApplyConfig(space), task.target:
        task.func(*deserialize_args(serialize_args(args)))
    task.config_space, task.flop = space, space.flop or None
    return task


def get_config() -> Any:
    """The configuration for the current target and template."""
    from ...target.target import Target

    context = DispatchContext.current
    return context.query(Target.current(allow_none=True), getattr(context, "workload", None)) if context is not None else None


def template(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Registers a whole template ``(*args) -> (schedule, tensors)``; usable as a decorator."""
    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            from ...target.target import Target

            if kwargs:
                raise ArgumentError(f"task {task_name!r} takes positional arguments only")
            context = DispatchContext.current
            workload = args_to_workload(args, task_name)
            config = context.query(Target.current(allow_none=True), workload)  # type: ignore[union-attr]
            with ApplyConfig(config):
                return f(*args)

        template_of(task_name).fcustomized = wrapper
        return wrapper

    return decorate if func is None else decorate(func)
