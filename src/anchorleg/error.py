"""Exceptions, under the address users know; they live in :mod:`anchorleg.support.errors`."""
from .support.errors import (AnchorlegError, ArgumentError, ArtifactError, BuildError, InternalError, ParseError, TargetError, TVMError,
                             TypeMismatchError, UnsupportedOpError)

OpNotImplemented = UnsupportedOpError
OpError = AnchorlegError
OpAttributeInvalid = OpAttributeRequired = OpAttributeUnImplemented = OpNotEnabled = AnchorlegError
DiagnosticError = AnchorlegError

__all__ = ["AnchorlegError", "ArgumentError", "ArtifactError", "BuildError", "InternalError", "ParseError", "TargetError", "TVMError",
           "TypeMismatchError", "UnsupportedOpError", "OpNotImplemented", "OpError", "OpAttributeInvalid", "OpAttributeRequired",
           "OpAttributeUnImplemented", "OpNotEnabled", "DiagnosticError"]
