"""Dispatch contexts: asked during compilation which configuration a workload gets, innermost first."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from ...support.errors import ArgumentError
from ..env import GLOBAL_SCOPE
from .space import FallbackConfigEntity

Record = tuple[Any, Any]
_READERS: list[Callable[[Any], Iterable[Record]]] = []


def register_record_reader(reader: Callable[[Any], Iterable[Record]]) -> None:
    """Sets how files of records are read."""
    _READERS.append(reader)


class DispatchContext:
    """Base of dispatch contexts; used with ``with``."""

    current: DispatchContext | None = None
    warning_messages: set[str] = set()

    def __init__(self) -> None:
        self._outer = DispatchContext.current

    def query(self, target: Any, workload: Any) -> Any:
        """The configuration for a workload, from here or from the contexts around."""
        found = self._query_inside(target, workload)
        if found is None and self._outer is not None:
            return self._outer.query(target, workload)
        return found

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        """Enters a configuration for a workload (one that a pass has made of another)."""
        raise NotImplementedError(f"{type(self).__name__} takes no updates")

    def _query_inside(self, target: Any, workload: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must say what it answers")

    def __enter__(self) -> DispatchContext:
        self._outer = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(self, *exc: Any) -> None:
        DispatchContext.current = self._outer


class ApplyConfig(DispatchContext):
    """The same configuration for everything."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._config, self.workload = config, None

    def _query_inside(self, target: Any, workload: Any) -> Any:
        self.workload = workload
        return self._config

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self.workload, self._config = workload, cfg


class ApplyFixedConfig(DispatchContext):
    """The first configuration of each task; those of ``schedule_names`` at a cost that makes them chosen."""

    def __init__(self, tasks: Iterable[Any], schedule_names: str | Sequence[str]) -> None:
        super().__init__()
        self._names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)
        self._tasks, self.workload = list(tasks), None

    def _query_inside(self, target: Any, workload: Any) -> Any:
        self.workload = workload
        task = next((t for t in self._tasks if t.name == workload[0]), None)
        if task is None:
            raise ArgumentError(f"no task is named {workload[0]!r}; there are: {', '.join(t.name for t in self._tasks) or 'none'}")
        config = task.config_space.get(0)
        config.cost = 1e-6 if workload[0] in self._names else 1e5
        return config

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self.workload = workload


class ApplyHistoryBest(DispatchContext):
    """The fastest recorded configuration of each workload, by target key and by processor model.

    ``records``: (MeasureInput, MeasureResult) pairs, a file of them, or several of those.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self.best_by_targetkey: dict[Any, Record] = {}
        self.best_by_model: dict[Any, Record] = {}
        self._best_user_defined: dict[Any, Any] = {}
        if records:
            self.load(records)

    def load(self, records: Any) -> None:
        """Adds records."""
        for inp, res in _flatten(records):
            if res.error_no != 0:
                continue
            for key in inp.target.keys:
                _keep_faster(self.best_by_targetkey, (key, inp.task.workload), (inp, res))
            if inp.target.model != "unknown":
                _keep_faster(self.best_by_model, (inp.target.model, inp.task.workload), (inp, res))

    def _query_inside(self, target: Any, workload: Any) -> Any:
        if target is None:
            raise ArgumentError("a target is needed to look records up: enter one with `with target:`")
        for table, keys in ((self.best_by_model, [target.model]), (self.best_by_targetkey, target.keys)):
            for key in keys:
                if (key, workload) in table:
                    return table[key, workload][0].config
                if (key, workload) in self._best_user_defined:
                    return self._best_user_defined[key, workload]
        return None

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        cfg.cost = 0 if cfg.cost is None else cfg.cost
        for key in [target.model, *target.keys]:
            self._best_user_defined[key, workload] = cfg


def _flatten(records: Any) -> list[Record]:
    if isinstance(records, (str, bytes, Path)) or hasattr(records, "read"):
        if not _READERS:
            raise ArgumentError("files of tuning records can't be read: import anchorleg.autotvm.record first")
        return list(_READERS[-1](records))
    found: list[Record] = []
    for record in records:
        found += [record] if isinstance(record, tuple) and hasattr(record[0], "task") else _flatten(record)
    return found


def _keep_faster(table: dict[Any, Record], key: Any, record: Record) -> None:
    if key not in table or np.mean(record[1].costs) < np.mean(table[key][1].costs):
        table[key] = record


class FallbackContext(DispatchContext):
    """Default configurations for everything; the outermost context.  Says once per workload that it has not been tuned."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[Any, Any] = {}

    def _query_inside(self, target: Any, workload: Any) -> Any:
        key = (str(target), workload)
        if key not in self.memory:
            if not GLOBAL_SCOPE.silent:
                _notify(target, workload)
            cfg = FallbackConfigEntity()
            cfg.cost = 0
            self.memory[key] = cfg
        return self.memory[key]

    def clear_cache(self, target: Any, workload: Any) -> None:
        """Forgets the configuration of one workload."""
        self.memory.pop((str(target), workload), None)

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        self.memory[(str(target), workload)] = cfg


def _notify(target: Any, workload: Any) -> None:
    import logging

    message = f"Cannot find config for target={target}, workload={workload}. A fallback configuration is used, which may bring great performance regression."
    if message not in DispatchContext.warning_messages:
        DispatchContext.warning_messages.add(message)
        logging.getLogger("autotvm").info(message)


DispatchContext.current = FallbackContext()
