"""Regions that begins and ends mark out."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg import relay
from anchorleg.ir.op import Op
from anchorleg.relay.analysis import AnnotatedRegionSet
from anchorleg.relay.op.annotation import compiler_begin, compiler_end
from anchorleg.support.errors import ArgumentError


def x(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(4,))


def same(found: Any, wanted: list[Any]) -> bool:
    return {id(n) for n in found} == {id(n) for n in wanted}


def test_a_region_has_its_begins_nodes_and_ends() -> None:
    a, b = compiler_begin(x(), "c"), compiler_begin(x("y"), "c")
    total = relay.add(a, b)
    end = compiler_end(total, "c")
    regions = AnnotatedRegionSet(relay.Function([a.args[0], b.args[0]], end), Op.get("annotation.compiler_begin"), Op.get("annotation.compiler_end"))
    region = regions.get_region(total)
    assert len(regions) == 1 and region is not None and region.target == "c" and region.id == 0
    assert same(region.nodes, [a, b, total, end]) and same(region.args, [a, b]) and same(region.rets, [end])
    assert regions.get_region(a.args[0]) is None


def test_ends_separate_regions() -> None:
    first = compiler_end(relay.exp(compiler_begin(x(), "c")), "c")
    second = compiler_end(relay.tanh(compiler_begin(first, "d")), "d")
    regions = AnnotatedRegionSet(relay.Function([first.args[0].args[0].args[0]], second))
    assert [r.target for r in regions] == ["c", "d"] and len(regions.regions) == 2


def test_fields_and_tuples_belong_to_their_operators() -> None:
    pair = relay.split(compiler_begin(x(), "c"), 2).astuple()
    one = relay.TupleGetItem(pair, 1)
    end = compiler_end(relay.Tuple([one, relay.exp(one)]), "c")
    region = AnnotatedRegionSet(end).get_region(pair)
    assert region is not None and len(region.nodes) == 6 and same(region.rets, [end])


def test_merged_regions_lose_the_marks_between_them() -> None:
    begin = compiler_begin(x(), "c")
    middle = compiler_end(relay.exp(begin), "c")
    inner = compiler_begin(middle, "c")
    end = compiler_end(relay.tanh(inner), "c")
    regions = AnnotatedRegionSet(end)
    child = regions.get_region(end)
    regions.merge_regions(regions.get_region(middle), child)
    assert len(regions) == 1 and regions.get_region(begin) is child
    assert same(child.args, [begin]) and same(child.rets, [end])


def test_an_end_that_somebody_else_reads_stays() -> None:
    middle = compiler_end(relay.exp(compiler_begin(x(), "c")), "c")
    end = compiler_end(relay.tanh(compiler_begin(middle, "c")), "c")
    regions = AnnotatedRegionSet(relay.Tuple([end, relay.negative(middle)]))
    region = regions.get_region(end)
    regions.merge_regions(regions.get_region(middle), region)
    assert same(region.rets, [middle, end])


@pytest.mark.parametrize("expr, said", [
    (lambda: compiler_end(relay.exp(x()), "c"), "ends no region"),
    (lambda: compiler_end(relay.exp(compiler_begin(x(), "d")), "c"), "begun for the compiler 'd'"),
    (lambda: relay.add(compiler_begin(x(), "c"), x("y")), "%y does not come through a compiler_begin"),
    (lambda: relay.add(compiler_begin(x(), "c"), compiler_begin(x("y"), "d")), "two compilers, 'c' and 'd'"),
])
def test_marks_that_do_not_fit_are_named(expr: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        AnnotatedRegionSet(expr())


def test_functions_of_others_are_not_looked_into() -> None:
    a = x()
    inner = relay.Function([a], compiler_end(relay.exp(a), "c")).with_attr("Composite", "c.exp")
    assert len(AnnotatedRegionSet(relay.Call(inner, [x("y")]))) == 0


def test_merging_a_long_chain_costs_little() -> None:
    expr: Any = x()
    for _ in range(20_000):
        expr = compiler_end(relay.exp(compiler_begin(expr, "c")), "c")
    regions = AnnotatedRegionSet(expr)
    first, *rest = regions.regions
    for region in rest:
        regions.merge_regions(first, region)
        first = region
    assert len(regions) == 1 and len(first.args) == 1 and len(first.rets) == 1
