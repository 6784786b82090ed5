"""Says what kind of content files hold, with a published classifier compiled to native code on this machine.

    python examples/identify_files.py README.md pyproject.toml

The model (Magika, Apache-2.0) is fetched from its package the first time.  It reads the first and the last 1024 bytes
of a file, white space stripped, as numbers, with 256 where a file is shorter.
"""
from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anchorleg import relay  # noqa: E402
from anchorleg.cli.progress import Steps  # noqa: E402
from anchorleg.contrib.graph_executor import GraphModule  # noqa: E402
from anchorleg.ir.transform import PassContext  # noqa: E402
from anchorleg.runtime.device import cpu  # noqa: E402
from tools.published_models import fetch  # noqa: E402

SIZE, BLOCK, PADDING = 1024, 4096, 256


def features(path: Path) -> np.ndarray:
    """The model's input for a file: int32 of shape (1, 2048)."""
    with open(path, "rb") as stream:
        head = stream.read(BLOCK)
        size = stream.seek(0, 2)
        stream.seek(max(0, size - BLOCK))
        tail = stream.read(BLOCK)
    row = np.full(2 * SIZE, PADDING, "int32")
    first, last = head.lstrip()[:SIZE], tail.rstrip()[-SIZE:]
    row[: len(first)] = np.frombuffer(first, "uint8")
    row[2 * SIZE - len(last):] = np.frombuffer(last, "uint8")
    return row[None]


def compile_classifier(steps: Steps) -> tuple[GraphModule, list[str]]:
    """The compiled model and the names of its classes."""
    steps.begin("fetch the model")
    model, config = fetch("magika"), fetch("magika_config")
    steps.begin("import")
    mod, params = relay.frontend.from_onnx(str(model), {"bytes": [1, 2 * SIZE]})
    steps.begin("optimise")
    with PassContext(opt_level=3):
        factory = relay.build(mod, target="llvm", params=params, progress=steps.kernel)
    steps.end()
    return GraphModule(factory["default"](cpu(0))), json.loads(config.read_text())["target_labels_space"]


def main() -> int:
    """Identifies the files named on the command line (default: those beside this repository's README)."""
    files = [Path(a) for a in sys.argv[1:]] or sorted(p for p in Path(__file__).resolve().parents[1].iterdir() if p.is_file())
    missing = [str(f) for f in files if not f.is_file()]
    if missing:
        print(f"no such file: {', '.join(missing)}", file=sys.stderr)
        return 1
    with Steps() as steps:
        classifier, labels = compile_classifier(steps)
    print(steps.summary())
    for path in files:
        row = features(path)
        started = time.perf_counter()
        classifier.run(bytes=row)
        scores = classifier.get_output(0).numpy()[0]
        took = time.perf_counter() - started
        best = int(scores.argmax())
        print(f"{path.name:32s} {labels[best]:16s} {scores[best]:7.1%}   {took * 1e3:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
