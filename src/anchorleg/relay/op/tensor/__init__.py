"""Element-wise operators and tensor creation."""
from __future__ import annotations

from .binary import *  # noqa: F403
from .binary import __all__ as _binary
from .convert import *  # noqa: F403
from .convert import __all__ as _convert
from .create import *  # noqa: F403
from .create import __all__ as _create
from .unary import *  # noqa: F403
from .unary import __all__ as _unary

__all__ = [*_unary, *_binary, *_convert, *_create]
