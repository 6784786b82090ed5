"""The persistent cache: hits, damage, eviction, concurrency, stale files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from anchorleg.support.cache import Cache, key_of, open_cache
from anchorleg.support.errors import ArgumentError

KEY = key_of("a", b"b")


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


def test_put_and_get(cache):
    assert cache.get(KEY) is None
    cache.put(KEY, b"payload")
    assert cache.get(KEY) == b"payload"
    cache.put(KEY, b"")
    assert cache.get(KEY) == b""
    info = cache.info()
    assert (info.entries, info.hits, info.misses) == (1, 2, 1) and info.bytes > 0


def test_layout_and_clear(cache, tmp_path):
    cache.put(KEY, b"x")
    assert (tmp_path / "kernels" / KEY[:2] / f"{KEY}.bin").exists()
    assert cache.clear() == 1 and cache.info().entries == 0 and cache.get(KEY) is None


def test_keys_know_the_borders_of_their_parts():
    assert key_of("ab", "c") != key_of("a", "bc") and key_of("a") == key_of(b"a")


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d[:10], lambda d: b"", lambda d: d + b"x",
                                    lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: b"X" + d[1:]])
def test_damage_is_a_miss_and_removed(cache, change, monkeypatch, capsys):
    monkeypatch.setenv("ANCHORLEG_DEBUG", "2")
    cache.put(KEY, b"payload")
    path = cache._path(KEY)
    path.write_bytes(change(path.read_bytes()))
    assert cache.get(KEY) is None and not path.exists()
    assert "damaged" in capsys.readouterr().err


def test_bad_keys(cache):
    for key in ("", "ab", "../../etc", "a/b/c"):
        with pytest.raises(ArgumentError):
            cache.get(key)


def test_eviction_takes_the_unused(tmp_path):
    cache = Cache(tmp_path, bound=10_000)
    keys = [key_of(str(i)) for i in range(9)]
    for age, key in enumerate(keys[:8]):
        cache.put(key, bytes(1100))
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    assert cache.get(keys[0]) is not None  # used: no longer the oldest
    cache.put(keys[8], bytes(1500))
    assert cache.info().bytes <= 10_000
    assert cache.get(keys[0]) and cache.get(keys[8]) and cache.get(keys[1]) is None


def test_unwritable_folder_is_no_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    cache = Cache(tmp_path / "file")
    cache.put(KEY, b"x")
    assert cache.get(KEY) is None


def test_stale_temporary_files_are_swept(tmp_path):
    folder = tmp_path / "kernels" / "ab"
    folder.mkdir(parents=True)
    old, fresh = folder / ".tmp-1-x.bin", folder / ".tmp-2-y.bin"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    cache = Cache(tmp_path)
    cache.put(KEY, b"x")
    assert not old.exists() and fresh.exists() and cache.info().entries == 1


def test_threads(cache):
    wrong = []

    def work(number: int) -> None:
        for i in range(50):
            key = key_of(str(i % 7))
            cache.put(key, key.encode() * 20)
            got = cache.get(key)
            if got is not None and got != key.encode() * 20:
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and cache.info().entries == 7


def test_processes(tmp_path):
    script = (
        "import sys; from anchorleg.support.cache import Cache, key_of\n"
        "c = Cache(sys.argv[1], bound=20000)\n"
        "for i in range(60):\n"
        "    k = key_of(str(i % 9)); c.put(k, k.encode() * 50); got = c.get(k)\n"
        "    assert got is None or got == k.encode() * 50\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith(".tmp")]


def test_opened_by_knobs(tmp_path, monkeypatch):
    monkeypatch.setenv("ANCHORLEG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("ANCHORLEG_CACHE_SIZE", "1M")
    monkeypatch.setenv("ANCHORLEG_CACHE", "1")
    cache = open_cache()
    assert cache is open_cache() and cache.bound == 1 << 20
    monkeypatch.setenv("ANCHORLEG_CACHE", "0")
    assert open_cache() is None
