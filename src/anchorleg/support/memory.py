"""The garbage collector during bursts of allocation."""
from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses cyclic garbage collection: a build allocates millions of objects that all stay, and looking at them again and
    again costs more than the build itself.  Reference counting goes on as ever."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
