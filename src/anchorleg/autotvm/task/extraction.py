"""Finding the tuning tasks of a program: computes announce themselves while a program is lowered under ``TaskExtractEnv``."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

from ...support.errors import ArgumentError
from ..hooks import EXTRACTORS


class TaskExtractEnv:
    """Collects (task name, arguments) while ``tracing``; used with ``with``.

    ``wanted_relay_ops``: only calls of these operators count (None: of all).
    """

    current: TaskExtractEnv | None = None

    def __init__(self, allow_duplicate: bool = False) -> None:
        self.allow_duplicate, self.tracing = allow_duplicate, False
        self.task_collection: list[tuple[str, Any]] = []
        self.wanted_relay_ops: Sequence[Any] | None = None

    def __enter__(self) -> TaskExtractEnv:
        self.task_collection, self.tracing = [], True
        return self

    def __exit__(self, *exc: Any) -> None:
        self.tracing = False

    def reset(self, wanted_relay_ops: Sequence[Any] | None = None) -> None:
        """Forgets what was found."""
        self.task_collection, self.wanted_relay_ops = [], wanted_relay_ops

    def add_task(self, task_name: str, args: Sequence[Any]) -> None:
        """Notes one use of a task."""
        from .task import serialize_args

        key = (task_name, serialize_args(args))
        if self.allow_duplicate or key not in self.task_collection:
            self.task_collection.append(key)

    def get_tasks(self) -> list[tuple[str, Any]]:
        """What was found, in order."""
        return self.task_collection

    @staticmethod
    def get(allow_duplicate: bool = False) -> TaskExtractEnv:
        """The environment of this process."""
        if TaskExtractEnv.current is None:
            TaskExtractEnv.current = TaskExtractEnv(allow_duplicate)
        TaskExtractEnv.current.allow_duplicate = allow_duplicate
        return TaskExtractEnv.current


def extract_from_program(mod: Any, params: Any, target: Any, target_host: Any = None, ops: Sequence[Any] | None = None) -> list[Any]:
    """The tuning tasks that building ``mod`` for ``target`` under the current pass context would look up."""
    return extract_from_multiple_program([mod], [params], target, target_host, ops)


def extract_from_multiple_program(mods: Iterable[Any], params: Iterable[Any], target: Any, target_host: Any = None,
                                  ops: Sequence[Any] | None = None) -> list[Any]:
    """The tuning tasks of several programs, each once."""
    from .task import create, deserialize_args

    if not EXTRACTORS:
        raise ArgumentError("task extraction needs the graph language: import anchorleg.relay first")
    env = TaskExtractEnv.get()
    env.reset(ops)
    with env:
        for mod, values in zip(mods, params):
            EXTRACTORS[-1](mod, target, values)
    return [create(name, deserialize_args(args), target, target_host) for name, args in env.get_tasks()]
