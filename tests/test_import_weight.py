"""Importing the package is light: what is heavy is loaded by what needs it."""
from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("llvmlite", "onnx", "onnxruntime", "google.protobuf", "rich", "click", "pytest", "hypothesis", "anchorleg.te", "anchorleg.topi",
         "anchorleg.relay.frontend.onnx.importer", "anchorleg.relay.op.strategy.nn")


def loaded(statement: str) -> set[str]:
    """The modules of a fresh process after ``statement``."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("statement", ["import anchorleg", "import anchorleg.relay", "from anchorleg import relay; relay.var; relay.nn.conv2d; relay.transform.FuseOps",
                                       "from anchorleg import relay, cpu; from anchorleg.contrib.graph_executor import GraphModule"])
def test_light(statement: str) -> None:
    modules = loaded(statement)
    assert "anchorleg" in modules and not modules & set(HEAVY)


def test_the_command_line_is_light_until_it_works() -> None:
    modules = loaded("from anchorleg.cli.app import app")
    assert not modules & (set(HEAVY) - {"click"}) and "numpy" not in modules
