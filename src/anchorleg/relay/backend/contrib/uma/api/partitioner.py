"""Cutting out what a backend takes."""
from __future__ import annotations

from typing import Any, Callable, Mapping

from ......ir.module import IRModule
from ......ir.transform import Pass, Sequential
from .....dataflow_pattern import DFPattern
from .....op.contrib.register import register_pattern_table
from .....transform import AnnotateTarget, InferType, MergeCompilerRegions, MergeComposite, PartitionGraph
from .....transform.bind import bind_params_by_name
from .utils import PassPhase


class UMAPartitioner:
    """The patterns and Relay passes of a backend.

    Parameters
    ----------
    target_name: the backend's name.
    merge_compiler_regions: whether parts that feed one another become one.
    """

    def __init__(self, target_name: str, merge_compiler_regions: bool = True) -> None:
        self.target_name, self.merge_compiler_regions = target_name, merge_compiler_regions
        self._relay_passes: list[tuple[PassPhase, Pass]] = []
        self._patterns: list[tuple[Any, ...]] = []

    def add_pattern(self, name: str, pattern: DFPattern, predicate: Callable[[Any], bool] | None = None) -> None:
        """Takes what fits ``pattern`` (and passes ``predicate``); patterns are tried in the order they were added."""
        self._patterns.append((f"{self.target_name}.{name}", pattern, *([predicate] if predicate is not None else [])))

    def _pattern_table(self) -> list[tuple[Any, ...]]:
        return self._patterns

    def register(self) -> None:
        """Makes the patterns known under the backend's name."""
        register_pattern_table(self.target_name, self._pattern_table)

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """The module with the parts that the backend takes as functions of their own.

        ``params`` are bound first.  Constants stay outside of the functions, which are given them as arguments.
        """
        if params:
            mod = mod.copy()
            mod["main"] = bind_params_by_name(mod["main"], params)
        merge = [MergeCompilerRegions()] if self.merge_compiler_regions else []
        steps = [InferType(), *self._of(PassPhase.PRE_PARTITIONING), MergeComposite(self._patterns), AnnotateTarget(self.target_name), *merge,
                 PartitionGraph(bind_constants=False), *self._of(PassPhase.POST_PARTITIONING_0), *self._of(PassPhase.POST_PARTITIONING_1)]
        return Sequential(steps)(mod)

    def _of(self, phase: PassPhase) -> list[Pass]:
        return [each for p, each in self._relay_passes if p is phase]
