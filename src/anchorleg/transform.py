"""Passes, under the address users know; they live in :mod:`anchorleg.ir.transform`."""
from .ir.transform import (ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential, module_pass, register_config_option,
                           register_pass)

__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "module_pass", "register_config_option",
           "register_pass"]
