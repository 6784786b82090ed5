"""The command line: ``anchorleg compile | run | show | verify | cache``."""
from __future__ import annotations

import sys


def main() -> None:
    """The console script's entry point."""
    from .app import run_app

    sys.exit(run_app(sys.argv[1:]))
