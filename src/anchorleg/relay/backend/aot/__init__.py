"""Ahead of time: a model as one function of kernel calls, in C or in LLVM objects, with its memory planned."""
from ..utils import CallType
from .create_metadata import CreateExecutorMetadata, CreateFunctionMetadata
from .lower_main import AOTLowerMain
from .metadata import ExecutorCodegenMetadata, FunctionInfo

__all__ = ["AOTLowerMain", "CallType", "CreateExecutorMetadata", "CreateFunctionMetadata", "ExecutorCodegenMetadata", "FunctionInfo"]
