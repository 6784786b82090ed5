"""Ahead of time: a model as one function of kernel calls, in C or in LLVM objects, with its memory planned."""
from .metadata import ExecutorCodegenMetadata, FunctionInfo

__all__ = ["ExecutorCodegenMetadata", "FunctionInfo"]
