"""``python -m anchorleg.as_tvm script.py [arguments]``: runs a script for which ``import tvm`` gives this package."""
from __future__ import annotations

import runpy
import sys

from . import install


def main() -> None:
    """Runs the script named on the command line."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m anchorleg.as_tvm script.py [arguments]")
    install()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
