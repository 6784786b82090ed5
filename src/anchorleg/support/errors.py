"""The exceptions of the product: one base, one class per kind, each also of the matching Python kind."""
from __future__ import annotations


class AnchorlegError(Exception):
    """Base of everything raised on purpose.  The message says: expected, got, where, what to do."""


class InternalError(AnchorlegError, RuntimeError):
    """A broken invariant of the compiler itself: please report it."""


class ArgumentError(AnchorlegError, ValueError):
    """A value, name or option that is not acceptable."""


class TypeMismatchError(AnchorlegError, TypeError):
    """Types, shapes or dtypes that do not fit."""


class UnsupportedOpError(AnchorlegError, NotImplementedError):
    """An operator, or a use of one, that is not supported."""


class ParseError(AnchorlegError, ValueError):
    """Text that is not in the format."""


class TargetError(AnchorlegError, ValueError):
    """An unknown target, or an option it does not have."""


class ArtifactError(AnchorlegError, RuntimeError):
    """A file of ours that is damaged, of another version or for another machine."""


class OutOfBoundsError(AnchorlegError, IndexError):
    """An access outside of a buffer, met while interpreting a loop program."""


class BuildError(AnchorlegError, RuntimeError):
    """Compilation of a kernel or a module failed."""


TVMError = AnchorlegError
