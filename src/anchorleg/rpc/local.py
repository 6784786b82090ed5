"""A session in this process, and servers that hand it out."""
from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ..runtime import device as make_device
from ..runtime.module import load_module
from ..runtime.registry import get_global_func
from ..support.errors import ArgumentError


class LocalSession:
    """Files, functions and devices of this process; uploaded files live in a folder of the session."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="anchorleg-session-")

    def _place(self, name: str) -> Path:
        return Path(self._folder.name) / Path(name).name

    def upload(self, data: Any, target: str | None = None) -> None:
        """Gives the session a file (a path) or bytes; bytes need a name."""
        if isinstance(data, (bytes, bytearray)):
            if target is None:
                raise ArgumentError("upload: bytes need a name, target=...")
            self._place(target).write_bytes(data)
        else:
            shutil.copy(data, self._place(target or str(data)))

    def download(self, path: str) -> bytes:
        """The contents of a file of the session."""
        return self._place(path).read_bytes()

    def remove(self, path: str) -> None:
        """Deletes a file of the session."""
        self._place(path).unlink(missing_ok=True)

    def listdir(self, path: str = "") -> str:
        """The names of the session's files, with commas between them."""
        return ",".join(sorted(p.name for p in Path(self._folder.name).iterdir()))

    def load_module(self, path: str) -> Any:
        """An uploaded library as a module."""
        return load_module(str(self._place(path)))

    def get_function(self, name: str) -> Any:
        """A global function by name."""
        return get_global_func(name)

    def device(self, dev_type: str, dev_id: int = 0) -> Any:
        """A device of the session."""
        return make_device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Any:
        """The processor."""
        return make_device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> Any:
        """A CUDA device."""
        return make_device("cuda", dev_id)


_SERVERS: dict[int, Server] = {}
_PORTS = itertools.count(9091)


class Server:
    """A server of this process: ``connect(server.host, server.port)`` gives a session."""

    def __init__(self, host: str = "127.0.0.1", port: int | None = None, **_options: Any) -> None:
        self.host, self.port = host, next(_PORTS)
        _SERVERS[self.port] = self

    def terminate(self) -> None:
        """Ends the server."""
        _SERVERS.pop(self.port, None)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.terminate()


def connect(url: str, port: int, key: str = "", session_timeout: int = 0, **_options: Any) -> LocalSession:
    """A session with the server of that address; ArgumentError when this process has none there."""
    if port not in _SERVERS or url not in (_SERVERS[port].host, "localhost", "127.0.0.1"):
        raise ArgumentError(f"no server at {url}:{port}: servers of other processes and machines can't be reached")
    return LocalSession()
