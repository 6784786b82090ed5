"""The virtual machine: executables with dynamic shapes and control flow, and the machine that runs them."""
from __future__ import annotations

from .bytecode import Instruction, Opcode, VMFunction
from .executable import Executable, PackedEntry
from .machine import VirtualMachine

__all__ = ["Executable", "Instruction", "Opcode", "PackedEntry", "VMFunction", "VirtualMachine"]
