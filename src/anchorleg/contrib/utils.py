"""Temporary folders that go away by themselves."""
from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any


class TempDirectory:
    """A folder removed when this object goes, or when the process ends.

    Parameters
    ----------
    custom_path: use (and make) this folder instead of a new one.
    keep_for_debug: leave the folder and what is in it.
    """

    _keep_for_debug = False

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        if custom_path:
            Path(custom_path).mkdir(parents=True, exist_ok=True)
        self.temp_dir = str(custom_path or tempfile.mkdtemp(prefix="anchorleg-"))
        keep = self._keep_for_debug if keep_for_debug is None else keep_for_debug
        self._remove = None if keep else weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)
        if self._remove is not None:
            self._remove.atexit = True

    def remove(self) -> None:
        """Removes the folder now."""
        if self._remove is not None:
            self._remove()

    @property
    def path(self) -> str:
        """The folder."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(Path(self.temp_dir) / name)

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return [p.name for p in Path(self.temp_dir).iterdir()]

    def __truediv__(self, other: Any) -> Path:
        return Path(self.temp_dir) / other

    @classmethod
    def set_keep_for_debug(cls, set_to: bool = True) -> Any:
        """A scope in which folders are kept."""
        return _Keep(set_to)


class _Keep:
    def __init__(self, keep: bool) -> None:
        self.keep = keep

    def __enter__(self) -> None:
        self.old, TempDirectory._keep_for_debug = TempDirectory._keep_for_debug, self.keep

    def __exit__(self, *exc: Any) -> None:
        TempDirectory._keep_for_debug = self.old


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A temporary folder."""
    return TempDirectory(custom_path, keep_for_debug)


def is_source_path(path: str) -> bool:
    """Whether a path names a C or C++ source file."""
    return Path(path).suffix in (".c", ".cc", ".cpp", ".cxx")


def which(exec_name: str) -> str | None:
    """Where a program is, or None."""
    return shutil.which(exec_name)


__all__ = ["TempDirectory", "is_source_path", "tempdir", "which"]
