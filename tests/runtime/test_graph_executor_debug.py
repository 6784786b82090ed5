"""The debug executor: per-node times and intermediate values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from anchorleg.contrib.debugger import debug_executor
from anchorleg.runtime import cpu, empty, load_param_dict_from_file
from anchorleg.support.errors import ArgumentError

X = np.arange(16, dtype=np.float32)


@pytest.fixture
def graph(make_graph):
    return make_graph(
        [("x", None, []), ("a", "twice", [0]), ("v", "__nop", [1]), ("b", "twice", [2]), ("c", "twice", [3])],
        [4], [[16]] * 5, [0, 1, 1, 2, 1],
    )


def test_profile_and_values(graph, library):
    module = debug_executor.create(graph, library, cpu(0))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 8 * X)
    assert [call.name for call in module.last_report.calls] == ["a", "b", "c"]
    table = module.last_report.table()
    assert "twice" in table and "float32[16]" in table
    assert len(json.loads(module.last_report.json())["calls"]) == 3
    assert module.last_report.csv().count("\n") == 3
    # "a" shares its place with "c", so its value is only there before "c" runs
    np.testing.assert_array_equal(module.debug_get_output("a").numpy(), 2 * X)
    np.testing.assert_array_equal(module.debug_get_output(2).numpy(), 2 * X)
    out = empty((16,))
    assert module.debug_get_output("b", out) is out
    np.testing.assert_array_equal(out.numpy(), 4 * X)
    with pytest.raises(ArgumentError, match="no node 'q'"):
        module.debug_get_output("q")


def test_individual_times(graph, library):
    module = debug_executor.create(graph, library, cpu(0))
    seconds = module.run_individual(number=2)
    assert len(seconds) == 5 and seconds[0] == seconds[2] == 0 and min(seconds[1], seconds[3], seconds[4]) > 0
    assert module.run_individual_node(1, number=1).mean > 0
    assert module.run_individual_node(2).mean == 0


def test_dump(graph, library, tmp_path):
    module = debug_executor.create(graph, library, cpu(0), str(tmp_path / "dump"))
    module.run(x=X)
    saved = load_param_dict_from_file(tmp_path / "dump" / "output_tensors.params")
    np.testing.assert_array_equal(saved["b____0"].numpy(), 4 * X)
    assert (tmp_path / "dump" / "execution_trace.json").exists()
