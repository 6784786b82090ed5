"""The virtual machine's inner loop, in the language of ``runtime.native_python``: the files are compiled, never imported.

``layout.py`` says what lies where; then come memory (``pools.py``), counted objects (``objects.py``), tensors
(``tensors.py``), cells that refer to each other (``cycles.py``), programs that compute sizes (``shapes.py``), calls (``frames.py``), and the instructions
(``instructions.py``).
"""
from __future__ import annotations

from pathlib import Path

PARTS = ("layout", "pools", "objects", "tensors", "cycles", "shapes", "frames", "instructions")


def source() -> str:
    """The whole text, in order."""
    return "\n".join((Path(__file__).parent / f"{part}.py").read_text() for part in PARTS)
