"""A folder of results that are costly to make again, found by the content of what they were made from.

The folder can be opened by a person::

    <root>/
      kernels/                 one folder per kind of entry
        3f/3fa9…c1.bin         first two hex digits of the key, then the key

An entry is a header (magic, sha-256 of the payload, its length) and the payload.  A reader checks both; a damaged
entry is removed, reported at debug level 2, and counts as missing.  Writers rename a finished file into place, so
processes and threads need no lock.  When the folder outgrows its bound the entries that were used longest ago go.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import knobs
from .debug import say
from .errors import ArgumentError
from .files import TEMP_PREFIX, atomic_write_with, is_abandoned

MAGIC = b"ALCACHE1"
_HEADER = struct.Struct("<8s32sQ")
_STALE_SECONDS = 3600.0
_EVICT_TO = 0.8
_SUFFIX = ".bin"


@dataclass(frozen=True)
class CacheInfo:
    """What a cache folder holds: its path, number of entries, bytes, bound, and this process's hits and misses."""

    path: Path
    entries: int
    bytes: int
    bound: int
    hits: int
    misses: int


class Cache:
    """A persistent, content-addressed store of byte strings.

    Parameters
    ----------
    root : the folder; made when the first entry is written.
    bound : bytes the folder may hold before the entries unused for longest are removed.
    kind : the name of the sub-folder, so that kinds can share a root.
    """

    def __init__(self, root: str | os.PathLike[str], bound: int = 2 << 30, kind: str = "kernels") -> None:
        self.folder = Path(root) / kind
        self.bound = bound
        self.hits = 0
        self.misses = 0
        self._written = 0
        self._size: int | None = None
        self._lock = threading.Lock()
        self._swept = False

    def get(self, key: str) -> bytes | None:
        """The payload stored under ``key``, or None if there is none or it is damaged."""
        path = self._path(key)
        self._sweep_once()
        payload = self._read(path)
        with self._lock:
            if payload is None:
                self.misses += 1
            else:
                self.hits += 1
        if payload is not None:
            _touch(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store ``payload`` under ``key``.  A full or read-only disk is reported at debug level and otherwise ignored."""
        path = self._path(key)
        header = _HEADER.pack(MAGIC, hashlib.sha256(payload).digest(), len(payload))

        def fill(stream) -> None:  # noqa: ANN001
            stream.write(header)
            stream.write(payload)

        try:
            self._sweep_once()
            path.parent.mkdir(parents=True, exist_ok=True)
            # no flush to disk: after a power cut the checksum turns a torn entry into a miss
            atomic_write_with(path, fill, sync=False)
        except OSError as err:
            say(2, f"cache: {path} could not be written: {err}")
            return
        self._grew(len(header) + len(payload))

    def remove(self, key: str) -> None:
        """Forget ``key``; nothing happens if it isn't there."""
        _unlink(self._path(key))

    def clear(self) -> int:
        """Remove every entry and temporary file; returns how many files went."""
        count = sum(_unlink(path) for path in list(self._files()))
        with self._lock:
            self._size = 0
        return count

    def info(self) -> CacheInfo:
        """Counts the folder's entries and bytes."""
        sizes = [stat.st_size for _, stat in self._entries()]
        return CacheInfo(self.folder, len(sizes), sum(sizes), self.bound, self.hits, self.misses)

    def _path(self, key: str) -> Path:
        if len(key) < 3 or not all(c.isalnum() or c in "_-" for c in key):
            raise ArgumentError(f"cache key {key!r}: expected at least 3 letters, digits, '_' or '-'")
        return self.folder / key[:2] / (key + _SUFFIX)

    def _read(self, path: Path) -> bytes | None:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = _checked(data)
        if payload is None:
            say(2, f"cache: {path} is damaged and was removed")
            _unlink(path)
        return payload

    def _files(self) -> Iterator[Path]:
        try:
            shards = [shard for shard in os.scandir(self.folder) if shard.is_dir()]
        except OSError:
            return
        for shard in shards:
            try:
                yield from (Path(file.path) for file in os.scandir(shard.path) if file.is_file())
            except OSError:
                continue

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._files():
            if path.suffix == _SUFFIX and not path.name.startswith(TEMP_PREFIX):
                try:
                    yield path, path.stat()
                except OSError:
                    continue

    def _sweep_once(self) -> None:
        """Remove temporary files that a process left behind when it was killed."""
        with self._lock:
            if self._swept:
                return
            self._swept = True
        limit = time.time() - _STALE_SECONDS
        for path in self._files():
            try:
                if path.name.startswith(TEMP_PREFIX) and (is_abandoned(path) or path.stat().st_mtime < limit):
                    _unlink(path)
            except OSError:
                continue

    def _grew(self, count: int) -> None:
        with self._lock:
            if self._size is None:
                self._size = sum(stat.st_size for _, stat in self._entries())
            else:
                self._size += count
            full = self._size > self.bound
        if full:
            self._evict()

    def _evict(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime_ns)
        total = sum(stat.st_size for _, stat in entries)
        goal = int(self.bound * _EVICT_TO)
        for path, stat in entries:
            if total <= goal:
                break
            _unlink(path)
            total -= stat.st_size
        with self._lock:
            self._size = total


def _checked(data: bytes) -> bytes | None:
    if len(data) < _HEADER.size:
        return None
    magic, digest, length = _HEADER.unpack_from(data)
    payload = data[_HEADER.size:]
    good = magic == MAGIC and len(payload) == length and hashlib.sha256(payload).digest() == digest
    return payload if good else None


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        pass


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
        return True
    except OSError:
        return False


def key_of(*parts: str | bytes) -> str:
    """A key (64 hex digits) from the content of ``parts``; their borders matter, not only their joined bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(raw)))
        digest.update(raw)
    return digest.hexdigest()


_open_caches: dict[tuple[Path, str], Cache] = {}
_open_lock = threading.Lock()


def open_cache(kind: str = "kernels") -> Cache | None:
    """The user's cache of this kind as the knobs describe it, or None when `ANCHORLEG_CACHE` turns it off."""
    if not knobs.CACHE.get():
        return None
    root = knobs.CACHE_DIR.get()
    with _open_lock:
        cache = _open_caches.get((root, kind))
        if cache is None:
            cache = _open_caches[root, kind] = Cache(root, knobs.CACHE_SIZE.get(), kind)
        cache.bound = knobs.CACHE_SIZE.get()
    return cache
