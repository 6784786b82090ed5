"""Writes that are whole or absent, and member names that stay inside."""

from __future__ import annotations

import os
import stat

import pytest

from anchorleg.support.errors import ArtifactError
from anchorleg.support.files import atomic_write, atomic_write_with, safe_join, safe_member


def test_write_and_replace(tmp_path):
    path = tmp_path / "f"
    atomic_write(path, b"one")
    atomic_write(path, [b"tw", memoryview(b"o")])
    assert path.read_bytes() == b"two" and os.listdir(tmp_path) == ["f"]


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    atomic_write(tmp_path / "ours", b"")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("x")])
def test_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fill(stream):
        stream.write(b"half")
        raise error

    with pytest.raises(type(error)):
        atomic_write_with(path, fill)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        atomic_write(tmp_path / "no" / "f", b"")


@pytest.mark.parametrize("name", ["", "/abs", "../up", "a/../../b", "a\\b", "C:x", "nul\0", "."])
def test_unsafe_members(name):
    with pytest.raises(ArtifactError, match="leaves the archive"):
        safe_member(name)


def test_safe_members(tmp_path):
    assert safe_join(tmp_path, "a/b.txt") == tmp_path / "a" / "b.txt"
