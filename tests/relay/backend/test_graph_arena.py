"""Places in the graph executor's arena: nothing that lives together overlaps, and less memory than by storage numbers."""
from __future__ import annotations

import json

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.module import IRModule
from anchorleg.relay.backend.graph_arena import arena_offsets
from anchorleg.relay.backend.graph_plan_memory import tensor_bytes
from anchorleg.runtime import cpu
from anchorleg.runtime.executor_factory import GraphExecutorFactory
from anchorleg.support.errors import ArtifactError

RNG = np.random.default_rng(0)


def network():
    """Branches of several sizes, a reshape, two results, one of them early."""
    x = relay.var("x", shape=(1, 64), dtype="float32")

    def dense(y, rows, columns):
        return relay.nn.relu(relay.nn.dense(y, relay.const((RNG.standard_normal((columns, rows)) / 8).astype("float32"))))

    wide, early = dense(x, 64, 900), dense(x, 64, 10)
    narrow = [dense(wide, 900, n) for n in (300, 200, 400)]
    joined = relay.reshape(relay.concatenate(narrow, 1), (9, 100))
    return IRModule.from_expr(relay.Function([x], relay.Tuple([dense(joined, 100, 50), early])))


def test_tensors_that_live_together_do_not_overlap():
    lib = relay.build(network(), "llvm")
    nodes, heads = lib.graph_code.nodes, lib.graph_code.heads
    offsets, number, last = arena_offsets(nodes, heads), {}, {}
    for n, node in enumerate(nodes):
        for i in range(len(node.outputs)):
            number[(n, i)] = len(number)
        for e in node.inputs:
            last[(e.node, e.index)] = n
    for e in heads:
        last[(e.node, e.index)] = len(nodes)
    spans = [(n, last.get((n, i), n), offsets[number[(n, i)]], tensor_bytes(info)) for n, node in enumerate(nodes) if not node.is_input and not node.is_alias
             for i, info in enumerate(node.outputs)]
    for k, (first, end, at, size) in enumerate(spans):
        assert at >= 0 and at % 128 == 0
        for other in spans[:k]:
            if first <= other[1] and other[0] <= end:
                assert at + size <= other[2] or other[2] + other[3] <= at
    assert all((offsets[number[(n, 0)]] == -1) == node.is_input for n, node in enumerate(nodes) if not node.is_alias)


def test_results_are_those_of_storage_numbers_in_less_memory():
    lib = relay.build(network(), "llvm")
    document = json.loads(lib.graph_json)
    document["attrs"].pop("storage_offset")
    plain = GraphExecutorFactory(json.dumps(document), lib.lib, lib.params)
    x, found = RNG.standard_normal((1, 64)).astype("float32"), []
    for factory in (lib, plain):
        module = GraphModule(factory["default"](cpu(0)))
        module.run(x=x)
        found.append([module.get_output(i).numpy() for i in range(2)])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)
    planned = lib.executor(cpu(0)).arena_bytes
    assert planned < plain.executor(cpu(0)).arena_bytes and lib.working_bytes <= planned < lib.working_bytes + 128


@pytest.mark.parametrize("broken,text", [(lambda o: [-2, *o[1:]], "storage offset is negative"), (lambda o: o[1:], "values for"), (lambda o: [-1] * len(o), "no place in the arena")])
def test_broken_offsets_are_refused(broken, text):
    lib = relay.build(network(), "llvm")
    document = json.loads(lib.graph_json)
    document["attrs"]["storage_offset"][1] = broken(document["attrs"]["storage_offset"][1])
    with pytest.raises(ArtifactError, match=text):
        GraphExecutorFactory(json.dumps(document), lib.lib, lib.params).executor(cpu(0))
