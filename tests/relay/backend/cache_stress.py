"""Many builds in several processes against one cache folder, some of them killed: no wrong result, no file left behind.

Run as a program for more: ``python -m tests.relay.backend.cache_stress 200 8`` (builds, processes).
"""
from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PROGRAMS = 6


class Outcome(NamedTuple):
    """Builds that ended well, that were killed, and that failed (their output)."""

    good: int
    killed: int
    failures: list[str]


def build_and_check(seed: int) -> None:
    """Builds one of a few programs, runs it and compares with numpy."""
    import numpy as np

    import anchorleg as al
    from anchorleg import relay
    from anchorleg.contrib import graph_executor

    rows, cols = 3 + seed % PROGRAMS, 5 + 2 * (seed % PROGRAMS)
    x, w = relay.var("x", shape=(rows, cols)), relay.var("w", shape=(cols, 4))
    body = relay.nn.softmax(relay.nn.matmul(relay.tanh(x), w))
    lib = relay.build(al.IRModule.from_expr(relay.Function([x, w], body)), "llvm")
    module = graph_executor.GraphModule(lib["default"](al.cpu()))
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rows, cols)).astype("float32"), rng.normal(size=(cols, 4)).astype("float32")
    module.run(x=a, w=b)
    scores = np.tanh(a) @ b
    wanted = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


def start(folder: Path, seed: int) -> subprocess.Popen[str]:
    """One build in a process of its own."""
    env = {**os.environ, "ANCHORLEG_CACHE_DIR": str(folder), "ANCHORLEG_CACHE": "1", "OMP_NUM_THREADS": "1"}
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen([sys.executable, "-m", "tests.relay.backend.cache_stress", "one", str(seed)], env=env, cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stress(folder: Path, builds: int, processes: int, kill_share: float = 0.3, seed: int = 0) -> Outcome:
    """Runs the builds, ``processes`` at a time; a share of them is killed at a random moment."""
    rng = random.Random(seed)
    waiting, running = list(range(builds)), []
    good, killed, failures = 0, 0, []
    while waiting or running:
        while waiting and len(running) < processes:
            doomed = time.monotonic() + rng.uniform(0.3, 2.5) if rng.random() < kill_share else None
            running.append((start(folder, waiting.pop()), doomed))
        for process, doomed in list(running):
            if process.poll() is None:
                if doomed is not None and time.monotonic() > doomed:
                    process.kill()
                continue
            running.remove((process, doomed))
            output = process.stdout.read() if process.stdout else ""
            process.wait()
            good, killed = good + (process.returncode == 0), killed + (process.returncode == -9)
            if process.returncode not in (0, -9):
                failures.append(output)
        time.sleep(0.02)
    return Outcome(good, killed, failures)


def leftovers(folder: Path) -> list[Path]:
    """What is in the folder besides entries."""
    return [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".bin" or p.name.startswith(".")]


def damaged(folder: Path) -> int:
    """Entries whose checksum is wrong."""
    from anchorleg.support.cache import _checked

    return sum(_checked(p.read_bytes()) is None for p in folder.rglob("*.bin"))


def hold(builds: int, processes: int) -> None:
    """The whole experiment; AssertionError when something is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcome = stress(folder, builds, processes)
        assert not outcome.failures, outcome.failures[0]
        assert outcome.good + outcome.killed == builds and damaged(folder) == 0
        shard = folder / "kernels" / "zz"
        shard.mkdir(parents=True, exist_ok=True)
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        from anchorleg.support.files import temporary_name

        (shard / temporary_name("entry.bin", dead.pid)).write_bytes(b"half")
        for each in range(PROGRAMS):  # the next start: everything is right, and what the killed left is swept
            after = start(folder, each)
            text, _ = after.communicate()
            assert after.returncode == 0, text
        _write_one(folder)
        assert leftovers(folder) == [], leftovers(folder)


def _write_one(folder: Path) -> None:
    from anchorleg.support.cache import Cache

    Cache(folder).put("abcdef", b"x")


if __name__ == "__main__":
    if sys.argv[1] == "one":
        build_and_check(int(sys.argv[2]))
    else:
        hold(int(sys.argv[1]), int(sys.argv[2]))
        print("all is well")
