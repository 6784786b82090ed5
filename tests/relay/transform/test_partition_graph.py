"""PartitionGraph."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, register_op_attr
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import Sequential
from anchorleg.relay.op.annotation import compiler_begin
from anchorleg.relay.transform import AnnotateTarget, FoldConstant, MergeCompilerRegions, MergeComposite, PartitionGraph
from anchorleg.relay.dataflow_pattern import is_op, wildcard
from anchorleg.runtime.registry import register_func, remove_global_func
from anchorleg.support.errors import ArgumentError, TypeMismatchError

from .graphs import chain, random_graph
from .passes import apply, check, inputs, module, of, unchanged, values
from .test_merge_compiler_regions import begin, end, region, v

ABS = """def @main(%x: Tensor[(4), float32]) {
  %0 = annotation.compiler_begin(%x, compiler="c"); %1 = abs(%0); annotation.compiler_end(%1, compiler="c") }"""
CUT = """
def @tvmgen_default_c_main_0(%c_0_i0: Tensor[(4), float32], global_symbol="tvmgen_default_c_main_0", Primitive=1, Compiler="c", Inline=1)
  -> Tensor[(4), float32] { abs(%c_0_i0) }
def @main(%x: Tensor[(4), float32]) { @tvmgen_default_c_main_0(%x) }"""


def externals(mod: IRModule) -> list[Any]:
    return [f for f in mod.functions.values() if f.get_attr("Compiler") is not None]


def test_a_region_becomes_a_function() -> None:
    check(PartitionGraph(), ABS, CUT)
    unchanged(PartitionGraph(), CUT)


def test_the_models_name_is_in_the_functions_name() -> None:
    names = [f.get_attr("global_symbol") for f in externals(PartitionGraph("speech")(module(ABS)))]
    assert names == ["tvmgen_speech_c_main_0"]
    with pytest.raises(ArgumentError, match="ASCII"):
        PartitionGraph("spräch")


def test_names_are_identifiers() -> None:
    mod = PartitionGraph()(module(ABS.replace('"c"', '"c++"')))
    assert [g.name_hint for g in mod.functions if g.name_hint != "main"] == ["tvmgen_default_c___main_0"] and externals(mod)[0].get_attr("Compiler") == "c++"


def test_marks_for_nobody_go() -> None:
    check(PartitionGraph(), ABS.replace('"c"', '"default"'), "def @main(%x: Tensor[(4), float32]) { abs(%x) }")


def test_a_value_that_enters_twice_is_one_parameter() -> None:
    x = v()
    (func,) = externals(PartitionGraph()(of(region(relay.add, x, x))))
    assert len(func.params) == 1


def test_several_results_are_a_tuple() -> None:
    x = v()
    inner = relay.exp(begin(x))
    mod = PartitionGraph()(of(relay.Tuple([end(relay.tanh(inner)), relay.negative(end(inner))])))
    (func,) = externals(mod)
    assert isinstance(func.body, relay.Tuple) and len(func.body.fields) == 2
    arg = np.linspace(-1, 1, 4).astype("float32")
    for got, want in zip(values(mod, arg), [np.tanh(np.exp(arg)), -np.exp(arg)]):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_tuples_that_are_results_are_taken_apart() -> None:
    x = v()
    b = begin(x)
    mod = PartitionGraph()(of(end(relay.Tuple([relay.exp(b), relay.Tuple([relay.tanh(b), relay.negative(b)])]))))
    (func,) = externals(mod)
    assert len(func.body.fields) == 3 and all(not isinstance(f, relay.Tuple) for f in func.body.fields)


def test_a_tuple_among_several_results_is_taken_apart() -> None:
    halves = relay.split(begin(v()), 2).astuple()
    mod = PartitionGraph()(of(relay.Tuple([end(halves), end(relay.exp(relay.TupleGetItem(halves, 0)))])))
    (func,) = externals(mod)
    assert [len(func.body.fields), *(isinstance(f, relay.Tuple) for f in func.body.fields)] == [3, False, False, False]
    arg = np.float32([1, 2, 3, 4])
    result = relay.create_executor("debug", mod=mod, target="numpy").evaluate()(arg)
    assert [r.numpy().tolist() for r in result[0]] == [[1, 2], [3, 4]]
    np.testing.assert_allclose(result[1].numpy(), np.exp(arg[:2]), rtol=1e-6)


@pytest.mark.parametrize("bind, count", [(True, 1), (False, 2)])
def test_constants_become_part_of_the_function_or_arguments(bind: bool, count: int) -> None:
    mod = PartitionGraph(bind_constants=bind)(of(region(relay.add, v(), relay.const(np.ones(4, "float32")))))
    assert len(externals(mod)[0].params) == count == len(mod["main"].body.args)


def test_each_function_of_a_module_is_cut() -> None:
    text = ABS + ABS.replace("@main", "@other")
    assert sorted(f.get_attr("global_symbol") for f in externals(PartitionGraph()(module(text)))) == ["tvmgen_default_c_main_0", "tvmgen_default_c_other_0"]


def test_a_compilers_own_passes_run_on_its_functions() -> None:
    register_func("relay.ext.partition_own.optimize", lambda mod: FoldConstant()(mod))
    two = relay.const(np.full(4, 2, "float32"))
    mod = PartitionGraph()(of(relay.add(region(relay.add, two, two, compiler="partition_own"), v())))
    assert isinstance(externals(mod)[0].body, relay.Constant)
    remove_global_func("relay.ext.partition_own.optimize")


def test_passes_that_give_back_something_else_are_named() -> None:
    register_func("relay.ext.partition_wrong.optimize", lambda mod: 3)
    with pytest.raises(TypeMismatchError, match=r"relay.ext.partition_wrong.optimize, called for the function partition_wrong_main_0.*got int"):
        PartitionGraph()(of(region(relay.exp, v(), compiler="partition_wrong")))
    remove_global_func("relay.ext.partition_wrong.optimize")


def test_a_region_that_needs_itself_is_named() -> None:
    x = v()
    first = relay.exp(begin(x))
    around = relay.negative(end(first))
    with pytest.raises(ArgumentError, match="needs its own result by way of something outside"):
        PartitionGraph()(of(end(relay.add(first, begin(around)))))


def test_a_begin_that_nobody_ends_is_dropped() -> None:
    x = v()
    t = relay.var("t")
    mod = PartitionGraph()(of(relay.Let(t, compiler_begin(x, "c"), relay.exp(t))))
    assert structural_equal(mod, of(relay.Let(t, x, relay.exp(t))), map_free_vars=True)


for _n, _compiler in (("add", "partition_a"), ("tanh", "partition_a"), ("multiply", "partition_a"), ("split", "partition_a"), ("concatenate", "partition_a"),
                      ("negative", "partition_b"), ("subtract", "partition_b"), ("nn.dense", "partition_b"), ("nn.relu", "partition_b")):
    register_op_attr(_n, f"target.{_compiler}", lambda expr: True)


@pytest.mark.parametrize("non_calls", [True, False])
@pytest.mark.parametrize("composite", [True, False])
def test_whatever_is_cut_out_values_stay(non_calls: bool, composite: bool) -> None:
    table = [("partition_b.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))), ("partition_a.tanh", is_op("tanh")(wildcard()))]
    steps = [MergeComposite(table)] if composite else []
    byoc = Sequential([*steps, AnnotateTarget(["partition_a", "partition_b"], non_calls), MergeCompilerRegions(), PartitionGraph()])
    cut = 0
    for seed in range(60):
        mod = random_graph(seed, 24)
        text = mod.astext()
        after = apply(byoc, mod)
        assert mod.astext() == text
        cut += len(externals(after))
        args = inputs(mod, seed)
        for got, want in zip(values(after, *args), values(mod, *args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert cut > 60


def test_a_long_program() -> None:
    register_op_attr("exp", "target.partition_long", lambda expr: True)
    byoc = Sequential([AnnotateTarget("partition_long"), MergeCompilerRegions(), PartitionGraph()])
    assert isinstance(byoc(chain(6000)), IRModule)
