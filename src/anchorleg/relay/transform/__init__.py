"""Passes over Relay modules, one file each; names and arguments are upstream's."""
from __future__ import annotations

from ...ir.transform import (ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential, module_pass)
from .infer_type import InferType, InferTypeLocal, infer_type
