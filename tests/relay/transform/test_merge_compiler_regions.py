"""MergeCompilerRegions."""
from __future__ import annotations

from typing import Any

from anchorleg import relay
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.relay.analysis import AnnotatedRegionSet
from anchorleg.relay.op.annotation import compiler_begin, compiler_end
from anchorleg.relay.transform import MergeCompilerRegions

from .passes import apply, of


def v(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(4,))


def begin(expr: Any, compiler: str = "c") -> Any:
    return compiler_begin(expr, compiler)


def end(expr: Any, compiler: str = "c") -> Any:
    return compiler_end(expr, compiler)


def region(make: Any, *inputs: Any, compiler: str = "c") -> Any:
    return end(make(*[begin(i, compiler) for i in inputs]), compiler)


def expect(before: Any, after: Any) -> None:
    mod = of(before)
    text = mod.astext()
    merged = apply(MergeCompilerRegions(), mod)
    assert_structural_equal(merged, of(after), map_free_vars=True)
    assert mod.astext() == text and MergeCompilerRegions()(merged) is merged


def regions_of(expr: Any) -> list[tuple[str, int]]:
    after = apply(MergeCompilerRegions(), of(expr))
    return sorted((r.target, len(r.nodes)) for r in AnnotatedRegionSet(after["main"]))


def test_a_chain_becomes_one_region() -> None:
    x = v()
    expect(region(relay.tanh, region(relay.exp, x)), end(relay.tanh(relay.exp(begin(x)))))


def test_regions_of_other_compilers_stay_apart() -> None:
    x = v()
    mixed = region(relay.tanh, region(relay.exp, x, compiler="d"))
    expect(mixed, mixed)


def test_a_diamond_with_a_stranger_on_one_side_stays_two() -> None:
    x = v()
    top = relay.exp(begin(x))
    stranger = region(relay.tanh, end(top), compiler="default")
    left = relay.negative(begin(end(top)))
    before = end(relay.add(begin(end(left)), begin(stranger)))
    assert regions_of(before) == [("c", 4), ("c", 5), ("default", 3)]


def test_a_diamond_of_one_compiler_becomes_one() -> None:
    x = v()
    top = relay.exp(begin(x))
    sides = [region(f, end(top)) for f in (relay.tanh, relay.negative)]
    assert regions_of(region(relay.add, *sides)) == [("c", 6)]


def test_what_nobody_marked_separates_too() -> None:
    x = v()
    top = relay.exp(begin(x))
    between = relay.Tuple([end(top), x])
    stranger = relay.concatenate(between, 0)
    cut = relay.strided_slice(stranger, [0], [4])
    assert regions_of(region(relay.add, end(top), cut)) == [("c", 4), ("c", 4)]


def test_two_merges_that_would_need_each_other() -> None:
    one, two = (relay.exp(begin(v(n))) for n in "ab")
    across = [region(relay.tanh, end(p), compiler="d") for p in (one, two)]
    first = region(relay.add, end(one), across[1])
    second = region(relay.add, end(two), across[0])
    found = regions_of(relay.Tuple([first, second]))
    assert found.count(("d", 3)) == 2 and sorted(n for t, n in found if t == "c") == [4, 4, 6]


def test_branches_do_not_hide_what_they_need() -> None:
    x, c = v(), relay.var("c", shape=(), dtype="bool")
    top = relay.exp(begin(x))
    chosen = relay.If(c, region(relay.tanh, end(top), compiler="d"), x)
    assert regions_of(region(relay.add, end(top), chosen)) == [("c", 4), ("c", 4), ("d", 3)]


def test_a_long_program_merges_quickly() -> None:
    x = expr = v()
    for _ in range(6000):
        expr = region(relay.add, expr, x)
    assert len(AnnotatedRegionSet(apply(MergeCompilerRegions(), of(expr))["main"])) == 1


def test_a_long_program_of_two_compilers() -> None:
    expr = v()
    for i in range(3000):
        expr = region(relay.exp, expr, compiler="cd"[i % 2])
    mod = of(expr)
    assert MergeCompilerRegions()(mod) is mod
