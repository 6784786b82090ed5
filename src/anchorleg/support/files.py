"""Files written whole or not at all, and archive member names that stay inside the archive's folder."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .errors import ArtifactError

TEMP_PREFIX = ".tmp-"


def atomic_write(path: str | os.PathLike[str], data: bytes | memoryview | Iterable[bytes | memoryview]) -> None:
    """Write ``data`` (one block or an iterable of blocks) to ``path`` so that a reader sees all of it or none.

    A temporary file in the same folder is written, flushed to the disk and renamed over ``path``.  If anything
    fails, a full disk included, the temporary file is removed, ``path`` keeps its former content and the error
    is passed on.
    """
    blocks = [data] if isinstance(data, (bytes, bytearray, memoryview)) else data

    def fill(stream: BinaryIO) -> None:
        for block in blocks:
            stream.write(block)

    atomic_write_with(path, fill)


def atomic_write_with(path: str | os.PathLike[str], fill: Callable[[BinaryIO], None], sync: bool = True) -> None:
    """Like `atomic_write`, with ``fill(stream)`` doing the writing; ``sync=False`` leaves out the flush to disk."""
    target = Path(path)
    temp = _open_temp(target)
    try:
        with os.fdopen(temp[0], "wb") as stream:
            fill(stream)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        os.replace(temp[1], target)
    except BaseException:
        _remove_quietly(temp[1])
        raise


def _open_temp(target: Path) -> tuple[int, str]:
    # not tempfile.mkstemp: that makes the file private, and the finished file should have the usual permissions
    while True:
        name = target.parent / temporary_name(target.name)
        try:
            return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666), str(name)
        except FileExistsError:
            continue


_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def temporary_name(name: str, process: int | None = None) -> str:
    """A new name for the unfinished form of a file; it tells which process of which machine writes it."""
    return f"{TEMP_PREFIX}{_HOST}-{process or os.getpid()}-{secrets.token_hex(6)}-{name[-40:]}"


def is_abandoned(path: Path) -> bool:
    """Whether a temporary file is of a process of this machine that has ended."""
    found = re.match(rf"{re.escape(TEMP_PREFIX)}([0-9a-f]{{8}})-(\d+)-", path.name)
    if found is None or found[1] != _HOST or os.name != "posix":
        return False
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def safe_member(name: str) -> PurePosixPath:
    """The path of an archive member, or `ArtifactError` if it could lead outside the folder it is unpacked to."""
    path = PurePosixPath(name)
    absolute = path.is_absolute() or (len(name) > 1 and name[1] == ":")
    bad = not name or "\\" in name or "\0" in name or absolute or ".." in path.parts or not path.parts
    if bad:
        raise ArtifactError(f"archive member {name!r} has a path that leaves the archive; the file is not trusted")
    return path


def safe_join(folder: str | os.PathLike[str], name: str) -> Path:
    """``folder/name`` for a member name checked by `safe_member`."""
    return Path(folder).joinpath(*safe_member(name).parts)
