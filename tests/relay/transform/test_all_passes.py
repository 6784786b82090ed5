"""What every pass owes: the input unchanged, the values the same, a second run without effect, size and depth without limit."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from anchorleg.ir import IRModule
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import Pass, PassContext, get_pass
from anchorleg.relay import transform
from anchorleg.target import Target

from .cnn import network
from .graphs import chain, diamonds, fan, lets, random_graph
from .passes import apply, inputs, values

PASSES: dict[str, Callable[[], Pass]] = {
    name: getattr(transform, name) for name in (
        "AlterOpLayout", "CanonicalizeCast", "CanonicalizeOps", "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense",
        "DeadCodeElimination", "DefuseOps", "DynamicToStatic", "EliminateCommonSubexpr", "EtaExpand", "FoldConstant", "FoldScaleAxis",
        "ForwardFoldScaleAxis", "BackwardFoldScaleAxis", "FuseOps", "Inline", "InlineAll", "Legalize", "MergeCompilerRegions", "PartitionGraph",
        "RemoveUnusedFunctions", "SimplifyExpr", "SimplifyInference", "ToANormalForm", "ToBasicBlockNormalForm", "ToGraphNormalForm", "WidenAccumulation")}
PASSES |= {
    "ConvertLayout": lambda: transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
    "CombineParallelDense, flat": lambda: transform.CombineParallelDense(2, to_batch=False),
    "CombineParallelDense, stacked": lambda: transform.CombineParallelDense(2),
    "DeadCodeElimination, inlining": lambda: transform.DeadCodeElimination(inline_once=True),
    "FuseOps, level 0": lambda: transform.FuseOps(0), "SplitArgs": lambda: transform.SplitArgs(3),
    "OutlineCompilerFunctions": lambda: transform.OutlineCompilerFunctionsWithExistingGlobalSymbols(),
}
REPEATABLE = sorted(set(PASSES) - {"ToANormalForm", "SplitArgs"})  # these name (split) anew what they find
each_pass = pytest.mark.parametrize("name", sorted(PASSES))


def run(name: str, mod: IRModule) -> IRModule:
    with PassContext(opt_level=4), Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"):
        return apply(PASSES[name](), mod)


def flat(found: Any) -> list[np.ndarray]:
    return [a for v in found for a in (flat(v) if isinstance(v, (list, tuple)) else [v])]


@each_pass
def test_values_stay_and_the_input_is_not_changed(name: str) -> None:
    for seed in range(12):
        mod = random_graph(seed)
        text = mod.astext()
        after = run(name, mod)
        assert mod.astext() == text
        args = inputs(mod, seed)
        for got, want in zip(flat(values(after, *args)), flat(values(mod, *args)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_second_run_changes_nothing(name: str) -> None:
    for mod in (*map(random_graph, range(20, 26)), network(3), network(4)):
        once = run(name, mod)
        assert structural_equal(run(name, once), once)


@each_pass
@pytest.mark.parametrize("shape", [chain, lets, fan])
def test_depth_and_breadth(name: str, shape: Callable[[int], IRModule]) -> None:
    mod = LARGE.setdefault(shape.__name__, shape(4000) if shape.__name__ not in LARGE else None)
    assert isinstance(run(name, mod), IRModule)


LARGE: dict[str, Any] = {}


@each_pass
def test_shared_values_are_visited_once(name: str) -> None:
    assert isinstance(run(name, diamonds(60)), IRModule)


@pytest.mark.parametrize("name", sorted(set(PASSES) - {"FuseOps", "FuseOps, level 0", "ToANormalForm", "EtaExpand"}))
def test_where_there_is_nothing_to_do_the_module_itself_comes_back(name: str) -> None:
    mod = chain(3)
    with PassContext(opt_level=4), Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"):
        assert PASSES[name]()(mod) is mod
    assert get_pass("InferType")(mod) is mod
