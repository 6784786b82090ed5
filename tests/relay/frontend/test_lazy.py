"""Importers load nothing before they are used."""
from __future__ import annotations

import subprocess
import sys


def test_importing_relay_does_not_load_onnx() -> None:
    code = ("import sys, anchorleg; from anchorleg import relay; import anchorleg.relay.frontend; "
            "assert 'onnx' not in sys.modules and 'llvmlite' not in sys.modules; "
            "import anchorleg.relay.frontend.onnx; assert 'onnx' not in sys.modules; assert callable(relay.frontend.from_onnx)")
    subprocess.run([sys.executable, "-c", code], check=True)
