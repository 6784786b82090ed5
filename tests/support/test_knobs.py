"""Environment variables: parsing, defaults, errors, the table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anchorleg.support import knobs
from anchorleg.support.errors import ArgumentError


def test_number_of_threads(monkeypatch):
    monkeypatch.delenv("ANCHORLEG_NUM_THREADS", raising=False)
    monkeypatch.delenv("TVM_NUM_THREADS", raising=False)
    assert 1 <= knobs.NUM_THREADS.get() <= (os.cpu_count() or 1)
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    assert knobs.NUM_THREADS.get() == 3
    monkeypatch.setenv("ANCHORLEG_NUM_THREADS", "5")
    assert knobs.NUM_THREADS.get() == 5


@pytest.mark.parametrize(
    "name, text, why",
    [
        ("ANCHORLEG_NUM_THREADS", "many", "whole number"),
        ("ANCHORLEG_NUM_THREADS", "0", "at least 1"),
        ("ANCHORLEG_CACHE", "maybe", "0 or 1"),
        ("ANCHORLEG_CACHE_SIZE", "big", "such as 512M"),
    ],
)
def test_malformed(monkeypatch, name, text, why):
    monkeypatch.setenv(name, text)
    knob = next(knob for _, knob in knobs.all_knobs() if name in knob.names)
    with pytest.raises(ArgumentError, match=f"{name}='{text}'.*{why}"):
        knob.get()


@pytest.mark.parametrize("text, size", [("10", 10), ("4k", 4096), ("1.5M", 3 << 19), ("2GiB", 2 << 30), ("1 B".replace(" ", ""), 1)])
def test_sizes(text, size):
    assert knobs.parse_size(text) == size


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("ANCHORLEG_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert knobs.CACHE_DIR.get() == Path("/somewhere/anchorleg")
    monkeypatch.setenv("ANCHORLEG_CACHE_DIR", "~/c")
    assert knobs.CACHE_DIR.get() == Path.home() / "c"


def test_override(monkeypatch):
    monkeypatch.setenv("ANCHORLEG_DEBUG", "2")
    with knobs.DEBUG.override(5):
        assert knobs.DEBUG.get() == 5
    assert knobs.DEBUG.get() == 2


def test_table_lists_every_knob():
    text = knobs.table()
    assert len(knobs.all_knobs()) >= 7
    for _, knob in knobs.all_knobs():
        assert all(f"`{name}`" in text for name in knob.names) and knob.doc in text
