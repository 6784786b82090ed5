"""`Executable`: what the compiler makes for the virtual machine, and its file format.

The format: magic, version, SHA-256 of the payload, its length; the payload is a JSON header followed by the constants.  A
file that is cut, altered or of another version is refused.
"""
from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...support.errors import ArgumentError, ArtifactError
from ..device import kDLCPU
from ..module import Module, register_loader
from ..ndarray import NDArray
from ..packed_func import PackedFunc
from ..params import load_ndarray, load_param_dict, save_ndarray, save_param_dict
from .bytecode import LAYOUT, Instruction, Kind, Opcode, VMFunction, function_text

MAGIC = b"ALVMEXE\n"
VERSION = 1
_HEAD = struct.Struct("<8sI32sQ")

TypeSpec = Any  # [dtype, [dims, -1 where not known]], {"tuple": [specs]}, {"function": number of parameters}, {"data": name}, {"ref": 1}, or None


class PackedEntry(NamedTuple):
    """A packed function.

    ``kind``: ``kernel`` (compiled code; ``implicit`` says which sizes it takes after the pointers), ``shape`` (``payload``:
    steps and texts of a shape program), ``host`` (``payload``: a function evaluated by the operators' rules) or ``external`` (a packed
    function of the library that is given tensors; ``payload``: shape and type of each, None where a size is not known).
    """

    name: str
    kind: str
    num_inputs: int
    num_outputs: int
    implicit: tuple[tuple[int, int], ...] = ()
    payload: Any = None


class Executable(Module):
    """Bytecode, constants and compiled code of a program.

    Parameters
    ----------
    functions : the functions in the order of their numbers.
    constants : the constants; None for one that is bound late.
    packed : what InvokePacked calls.
    lib : a module with the kernels.
    param_types : for each function the types of its parameters.
    devices : type and number of each device of the program; the first is the host.
    constant_devices : the device of each constant, by number.
    data_types : for each data type among the parameters the tags of its constructors and the types of their fields.
    """

    type_key = "VMExecutable"

    def __new__(cls, functions: Any = (), *args: Any, **kwargs: Any) -> Executable:
        """``Executable(module)`` of a module that is an executable is that executable."""
        return functions if isinstance(functions, Executable) else super().__new__(cls)

    def __init__(self, functions: Any, constants: Sequence[NDArray | None] = (), packed: Sequence[PackedEntry] = (), lib: Any = None,
                 param_types: Mapping[str, Sequence[TypeSpec]] | None = None, late_names: Mapping[int, str] | None = None,
                 devices: Sequence[tuple[int, int]] = ((kDLCPU, 0),), constant_devices: Sequence[int] = (),
                 data_types: Mapping[str, Sequence[Any]] | None = None) -> None:
        if functions is self:
            return
        super().__init__()
        self.functions = list(functions)
        self._constants: list[NDArray | None] = list(constants)
        self.packed = list(packed)
        self._lib = lib
        self.param_types = {k: list(v) for k, v in (param_types or {}).items()}
        self.late_names = dict(late_names or {})
        self.devices = [(int(kind), int(number)) for kind, number in devices]
        self.constant_devices = list(constant_devices) or [0] * len(self._constants)
        self.data_types = {k: list(v) for k, v in (data_types or {}).items()}
        self._image: Any = None

    # -- what is in it

    @property
    def mod(self) -> Module:
        """The runtime module: this executable."""
        return self

    @property
    def module(self) -> Module:
        """The runtime module, under its older name."""
        return self

    @property
    def lib(self) -> Any:
        """The module with compiled code."""
        return self._lib

    @property
    def globals(self) -> list[str]:
        """Names of the functions in the order of their numbers."""
        return [f.name for f in self.functions]

    @property
    def primitive_ops(self) -> list[str]:
        """Names of the packed functions in the order of their numbers."""
        return [p.name for p in self.packed]

    @property
    def bytecode(self) -> str:
        """The instructions of all functions, as text."""
        return "\n".join(function_text(f, i) for i, f in enumerate(self.functions))

    @property
    def stats(self) -> str:
        """How much there is of what."""
        shapes = ", ".join(_shape_text(c) for c in self._constants)
        names = ", ".join(f.name for f in self.functions)
        ops = ", ".join(self.primitive_ops)
        return (f"Relay VM executable statistics:\n  Constant shapes (# {len(self._constants)}): [{shapes}]\n"
                f"  Globals (#{len(self.functions)}): [{names}]\n  Primitive ops (#{len(self.packed)}): [{ops}]\n")

    @property
    def constants(self) -> str:
        """The constants, as text."""
        rows = enumerate(zip(self._constants, self.constant_devices))
        return "".join(f"VM Const[{i}]: {_constant_text(c, self.devices[d])} on device index {d}\n" for i, (c, d) in rows)

    @property
    def constant_data(self) -> list[NDArray | None]:
        """The constants themselves."""
        return self._constants

    @property
    def virtual_devices(self) -> str:
        """The devices, as text."""
        return "".join(f"VM VirtualDevice[{i}]: device type {kind}, id {number} and mem_scope \n" for i, (kind, number) in enumerate(self.devices))

    @property
    def primitives(self) -> str:
        """The packed functions, as text."""
        return "".join(f"VM PackedFunc[{i}]: {p.name}\n" for i, p in enumerate(self.packed))

    def function_index(self, name: str) -> int:
        """The number of a function; ArgumentError when there is none of that name."""
        for i, f in enumerate(self.functions):
            if f.name == name:
                return i
        raise ArgumentError(f"the executable has no function {name!r}; it has: {', '.join(self.globals)}")

    def get_function_params(self, func_name: str) -> list[str]:
        """Names of a function's parameters."""
        return list(self.functions[self.function_index(func_name)].params)

    # -- late-bound constants

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """Takes constants of at least ``byte_limit`` bytes out; by the names under which they must be given back."""
        found = {}
        for i, c in enumerate(self._constants):
            if c is not None and c.nbytes >= byte_limit:
                self.late_names[i] = f"const_{i}"
                found[f"const_{i}"] = c
                self._constants[i] = None
        self._image = None
        return found

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Moves constants of at least ``byte_limit`` bytes to a file."""
        with open(path, "wb") as file:
            file.write(save_param_dict(self.get_late_bound_consts(byte_limit)))

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        """Binds the constants that a file holds."""
        with open(path, "rb") as file:
            self.load_late_bound_consts_from_map(load_param_dict(file.read()))

    def load_late_bound_consts_from_map(self, map: Mapping[str, NDArray]) -> None:
        """Binds constants by name."""
        for i, name in self.late_names.items():
            if self._constants[i] is None:
                if name not in map:
                    raise ArgumentError(f"constant {name!r} is bound late and not among those given: {', '.join(map) or 'none'}")
                self._constants[i] = map[name]
        self._image = None

    # -- files

    def save(self, *_: Any) -> tuple[bytearray, Any]:  # type: ignore[override]
        """(bytecode as bytes, the library with compiled code)."""
        return bytearray(to_bytes(self)), self._lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Any) -> Executable:
        """An executable from what `save` gave; ArtifactError for anything else."""
        from ..module import Module as _Module

        if isinstance(bytecode, str):
            bytecode = bytecode.encode("latin-1")
        if not isinstance(bytecode, (bytes, bytearray, memoryview)):
            raise ArgumentError(f"load_exec: bytecode is expected to be bytes, got {type(bytecode).__name__}")
        if lib is not None and not isinstance(lib, _Module):
            raise ArgumentError(f"load_exec: lib is expected to be a runtime Module, got {type(lib).__name__}")
        return from_bytes(bytes(bytecode), lib)

    def _own_function(self, name: str) -> PackedFunc | None:
        found = {"get_bytecode": lambda: self.bytecode, "get_stats": lambda: self.stats, "save": lambda: self.save()[0],
                 "get_lib": lambda: self._lib, "get_function_arity": lambda n: len(self.get_function_params(n)),
                 "get_function_param_name": lambda n, i: self.get_function_params(n)[i],
                 "vm_load_executable": lambda: self, "load_late_bound_consts": self.load_late_bound_consts,
                 "load_late_bound_consts_from_map": self.load_late_bound_consts_from_map, "get_late_bound_consts": self.get_late_bound_consts,
                 "get_bytecode_text": lambda: self.bytecode, "get_virtual_devices": lambda: self.virtual_devices,
                 "get_primitives": lambda: self.primitives, "get_constants": lambda: self.constants,
                 "move_late_bound_consts": self.move_late_bound_consts}.get(name)
        return PackedFunc(found, name) if found is not None else None

    def export_library(self, file_name: str | os.PathLike[str], **options: Any) -> str:
        """Writes bytecode, constants and code to one file that `load_module` reads."""
        from ..export import export

        return export(file_name, self._lib, {"kind": "vm"}, {"vm/executable.bin": to_bytes(self)}, **options)


def _load(manifest: Mapping[str, Any], members: Mapping[str, Any], path: Any) -> Executable:
    from ..compiled import CompiledModule

    if "vm/executable.bin" not in members:
        raise ArtifactError(f"{path}: the executable of the virtual machine is missing in it")
    return from_bytes(bytes(members["vm/executable.bin"]), CompiledModule.from_artifact(manifest, members, path))


register_loader("vm", _load)


def _shape_text(c: NDArray | None) -> str:
    return "late bound" if c is None else "scalar" if not c.shape else f"[{', '.join(map(str, c.shape))}]"


def _constant_text(c: NDArray | None, place: tuple[int, int]) -> str:
    """A constant in upstream's form; with its elements when these are at most ten in a row."""
    if c is None:
        return "late bound"
    head = f"NDArray[({','.join(map(str, c.shape))}),{c.dtype},({place[0]},{place[1]})]"
    if len(c.shape) > 1 or c.size > 10:
        return head
    return f"{head}=[{','.join(f'{v:g}' if isinstance(v, float) else str(int(v)) for v in c.numpy().reshape(-1).tolist())}]"


# -- bytes ------------------------------------------------------------------------------------------------------


def to_bytes(exe: Executable) -> bytes:
    """The executable without its library."""
    blobs = [save_ndarray(c) if c is not None else b"" for c in exe.constant_data]
    header = {
        "functions": [{"name": f.name, "params": list(f.params), "registers": f.register_file_size, "devices": list(f.devices),
                       "code": [[int(i.op), *_plain(i.operands)] for i in f.instructions]} for f in exe.functions],
        "packed": [[p.name, p.kind, p.num_inputs, p.num_outputs, [list(x) for x in p.implicit], p.payload] for p in exe.packed],
        "types": exe.param_types, "late": {str(k): v for k, v in exe.late_names.items()}, "constants": [len(b) for b in blobs],
        "devices": [list(d) for d in exe.devices], "constant_devices": exe.constant_devices, "data": exe.data_types,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    payload = b"".join([struct.pack("<Q", len(text)), text, *blobs])
    return _HEAD.pack(MAGIC, VERSION, hashlib.sha256(payload).digest(), len(payload)) + payload


def _plain(operands: Iterable[Any]) -> list[Any]:
    return [list(o) if isinstance(o, tuple) else o for o in operands]


def from_bytes(data: bytes, lib: Any) -> Executable:
    """The executable that `to_bytes` wrote.  Raises ArtifactError, saying what is wrong, for other bytes."""
    payload = _checked_payload(data)
    try:
        (size,) = struct.unpack_from("<Q", payload)
        header = json.loads(payload[8:8 + size])
        constants, at = [], 8 + size
        for n in header["constants"]:
            constants.append(load_ndarray(payload[at:at + n]) if n else None)
            at += n
        functions = [_function(f, len(header["functions"]), len(constants), header["packed"]) for f in header["functions"]]
        packed = [PackedEntry(p[0], p[1], p[2], p[3], tuple(tuple(x) for x in p[4]), p[5]) for p in header["packed"]]
        late = {int(k): str(v) for k, v in header["late"].items()}
        devices, places = _devices(header, len(constants))
    except ArtifactError:
        raise
    except Exception as err:
        raise ArtifactError(f"the executable's contents make no sense ({type(err).__name__}: {err})") from err
    return Executable(functions, constants, packed, lib, header["types"], late, devices, places, header.get("data"))


def _devices(header: Mapping[str, Any], constants: int) -> tuple[list[tuple[int, int]], list[int]]:
    """The devices, and that of each constant; ArtifactError when one is named that is not there."""
    devices = [(int(kind), int(number)) for kind, number in header.get("devices", [[kDLCPU, 0]])]
    places = [int(d) for d in header.get("constant_devices", [0] * constants)]
    named = [*places, *(int(d) for f in header["functions"] for d in f.get("devices", ()))]
    if len(places) != constants or not all(0 <= d < len(devices) for d in named):
        raise ArtifactError("the executable names devices that it does not have")
    return devices, places


def _checked_payload(data: bytes) -> bytes:
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        raise ArtifactError(f"this is no executable of the virtual machine ({len(data)} bytes that do not begin with its mark)")
    _, version, digest, size = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ArtifactError(f"the executable has format version {version}, this library reads version {VERSION}: compile the model again")
    payload = data[_HEAD.size:]
    if len(payload) != size:
        raise ArtifactError(f"the executable is damaged: {len(payload)} bytes of contents, {size} were written")
    if hashlib.sha256(payload).digest() != digest:
        raise ArtifactError("the executable is damaged: its contents do not have the checksum they were written with")
    return payload


def _function(f: Mapping[str, Any], functions: int, constants: int, packed: Sequence[Any]) -> VMFunction:
    registers, code = int(f["registers"]), []
    for at, (op, *operands) in enumerate(f["code"]):
        instr = Instruction(Opcode(op), tuple(tuple(o) if isinstance(o, list) else o for o in operands))
        _check(instr, at, len(f["code"]), registers, functions, constants, packed)
        code.append(instr)
    return VMFunction(str(f["name"]), tuple(map(str, f["params"])), tuple(code), registers, tuple(map(int, f.get("devices", ()))))


def _check(instr: Instruction, at: int, count: int, registers: int, functions: int, constants: int, packed: Sequence[Any]) -> None:
    """ArtifactError for an operand that refers to nothing."""
    layout = LAYOUT[instr.op]
    if len(instr.operands) != len(layout):
        raise ArtifactError(f"instruction {at} ({instr.op.name}) has {len(instr.operands)} operands, expected {len(layout)}")
    used = [*instr.reads(), *([instr.writes()] if instr.writes() is not None else [])]
    limits = {"func_index": functions, "const_index": constants, "packed_index": len(packed)}
    wrong = any(not 0 <= r < registers for r in used)
    for (name, kind), value in zip(layout, instr.operands):
        wrong |= name in limits and not 0 <= value < limits[name]
        wrong |= kind == Kind.JUMP and not 0 <= at + value < count
    if wrong:
        raise ArtifactError(f"instruction {at} ({instr.text()}) refers to what is not there")


__all__ = ["Executable", "PackedEntry", "TypeSpec", "from_bytes", "to_bytes"]
