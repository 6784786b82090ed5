"""Values at the border of the machine: tensors, tuples and data types of Python as counted objects, and back."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...support.errors import ArgumentError, TypeMismatchError
from ..container import ADT, RefValue, tuple_object
from ..dtype import DataType, dtype_name
from ..ndarray import NDArray, aligned, array
from .executable import TypeSpec
from .translate import dtype_words

_TENSOR, _ADT, _CLOSURE, _CELL = 1, 2, 3, 4
_SMALL = 1 << 16  # results up to this size are copied out, larger ones handed out

_types: dict[int, DataType] = {}


def type_of_words(code: int) -> DataType:
    """The dtype of a machine's code."""
    found = _types.get(code)
    if found is None:
        found = _types[code] = DataType.of(code & 255, code >> 8 & 255, code >> 16)
    return found


class ClosureValue:
    """A function that a program gave as its result."""

    def __init__(self, held: Any) -> None:
        self.held = held


def tensor_of(value: Any, spec: TypeSpec, name: str) -> NDArray:
    """An argument as a tensor of the type that the function wants.

    Raises TypeMismatchError for another dtype and ArgumentError for another shape, naming the argument.
    """
    if not isinstance(value, NDArray):
        value = _converted(value, spec, name)
    if isinstance(spec, list):
        dtype, dims = spec
        if value.dtype != dtype:
            raise TypeMismatchError(f"argument {name!r}: expected a tensor of {dtype}, got {value.dtype}")
        shape = value.shape
        if len(shape) != len(dims) or any(d >= 0 and d != s for d, s in zip(dims, shape)):
            wanted = ", ".join("?" if d < 0 else str(d) for d in dims)
            raise ArgumentError(f"argument {name!r}: expected shape ({wanted}), got {shape}")
    elif isinstance(spec, dict) and spec:
        raise TypeMismatchError(f"argument {name!r}: expected {_spec_text(spec)}, got a tensor")
    return aligned(value)


def _converted(value: Any, spec: TypeSpec, name: str) -> NDArray:
    if isinstance(value, (bool, int, float)) and isinstance(spec, list):
        return array(np.asarray(value, DataType(spec[0]).numpy_dtype))
    if isinstance(value, bool):
        return array(np.asarray(value))
    if isinstance(value, int):
        return array(np.asarray(value, "int32" if -(2**31) <= value < 2**31 else "int64"))
    if isinstance(value, float):
        return array(np.asarray(value, "float32"))
    if isinstance(value, (np.ndarray, np.generic)):
        plain = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        return NDArray(plain, dtype_name(plain.dtype))
    if hasattr(value, "data") and isinstance(value.data, NDArray):  # a constant of the graph language
        return value.data
    if hasattr(value, "__dlpack__"):
        from ..ndarray import from_dlpack

        return from_dlpack(value)
    if isinstance(value, RefValue):
        raise TypeMismatchError(f"argument {name!r}: a reference of the caller's can't be shared with the machine; "
                                "give its value, and make the reference in the program")
    raise TypeMismatchError(f"argument {name!r}: expected a tensor, a number, a tuple or an ADT, got {type(value).__name__}")


def fields_of(value: Any) -> tuple[int, list[Any]] | None:
    """(tag, fields) of a tuple or a value of a data type; None for a tensor."""
    if isinstance(value, ADT):
        return value.tag, list(value.fields)
    if isinstance(value, (tuple, list)):
        return 0, list(value)
    if hasattr(value, "constructor") and hasattr(value, "fields"):
        return value.tag, list(value.fields)
    if type(value).__name__ == "Tuple" and hasattr(value, "fields"):
        return 0, list(value.fields)
    return None


class ParamPlan:
    """What a tensor parameter asks of a numpy array, worked out once."""

    __slots__ = ("dtype", "dims", "code", "item")

    def __init__(self, spec: TypeSpec) -> None:
        kind = DataType(spec[0])
        self.dtype = kind.numpy_dtype if kind.lanes == 1 else None
        self.dims = tuple(spec[1])
        self.code, self.item = dtype_words(spec[0])

    def fits(self, value: np.ndarray) -> bool:
        """Whether the array can be used as it is."""
        if value.dtype != self.dtype or value.ndim != len(self.dims) or not value.flags.c_contiguous:
            return False
        for d, s in zip(self.dims, value.shape):
            if d != s and d >= 0:
                return False
        return True


class Border:
    """Conversion of values for one machine.

    ``given`` are the arrays whose memory the machine reads, with the tensor objects over them.
    """

    def __init__(self, core: Any, address: int, give_back: Any, exe: Any) -> None:
        self.core, self.address, self.give_back, self.exe = core, address, give_back, exe
        self.given: list[tuple[int, Any]] = []
        self._shape = (ctypes.c_int64 * 64)()
        self._shape_at = ctypes.addressof(self._shape)
        self._foreign = core.foreign

    # -- in

    def quick(self, value: Any, plan: ParamPlan) -> int:
        """The object for an array that fits its parameter without any change; 0 when it does not."""
        array_ = value._np if type(value) is NDArray else value
        if type(array_) is not np.ndarray or not plan.fits(array_):
            return 0
        rank = array_.ndim
        self._shape[:rank] = array_.shape
        made = self._foreign(self.address, array_.__array_interface__["data"][0], rank, plan.code, plan.item, self._shape_at)
        self.given.append((made, array_))
        return made

    def object_of(self, value: Any, spec: TypeSpec, name: str) -> int:
        """The object for an argument, with a reference for the caller; nested values on a stack of their own."""
        root = fields_of(value)
        if isinstance(spec, list) and root is not None and len(root[1]) == 1 and fields_of(root[1][0]) is None:
            value, root = root[1][0], None  # one tensor in brackets
        return self._simple(value, spec, name) if root is None else self._structure(root, spec, name)

    def _simple(self, value: Any, spec: TypeSpec, name: str) -> int:
        """A value without parts: a tensor or a function."""
        if not isinstance(value, ClosureValue):
            if isinstance(spec, dict) and "function" in spec:
                raise TypeMismatchError(f"argument {name!r}: expected a function that this machine gave, got {type(value).__name__}")
            return self.tensor(tensor_of(value, spec, name))
        if spec is not None and (not isinstance(spec, dict) or "function" not in spec):
            raise TypeMismatchError(f"argument {name!r}: expected {_spec_text(spec)}, got a function")
        if value.held.owner is not self.give_back:
            raise ArgumentError(f"argument {name!r}: the function was made by another machine, and can only be used there")
        address = value.held.address
        params = len(self.exe.functions[_word(address, 2)].params) - _word(address, 3)
        if spec is not None and params != spec["function"]:
            raise TypeMismatchError(f"argument {name!r}: expected a function of {spec['function']} parameters, got one of {params}")
        return self.core.keep(address)

    def _structure(self, root: tuple[int, list[Any]], spec: TypeSpec, name: str) -> int:
        stack: list[tuple[int, list[Any], list[TypeSpec], list[int]]] = [(*root, self._field_specs(spec, *root, name), [])]
        try:
            return self._made(stack, name)
        except Exception:
            for *_, made in stack:
                for address in made:
                    self.core.release(self.address, address)
            raise

    def _made(self, stack: list[tuple[int, list[Any], list[TypeSpec], list[int]]], name: str) -> int:
        """The object for the value at the bottom of the stack: (tag, fields, their types, their objects so far)."""
        done = 0
        while stack:
            tag, fields, specs, made = stack[-1]
            if len(made) == len(fields):
                stack.pop()
                words = (ctypes.c_int64 * max(1, len(made)))(*made)
                done = self.core.new_adt(self.address, tag, len(made), ctypes.addressof(words))
                if stack:
                    stack[-1][3].append(done)
                continue
            value, inner = fields[len(made)], specs[len(made)]
            parts = fields_of(value)
            if parts is None:
                made.append(self._simple(value, inner, name))
            else:
                stack.append((*parts, self._field_specs(inner, *parts, name), []))
        return done

    def _field_specs(self, spec: TypeSpec, tag: int, fields: list[Any], name: str) -> list[TypeSpec]:
        """What the fields of a tuple or of a value of a data type have to be."""
        if isinstance(spec, list) or isinstance(spec, dict) and ("function" in spec or "ref" in spec):
            raise TypeMismatchError(f"argument {name!r}: expected {_spec_text(spec)}, got a {'value of a data type' if tag else 'tuple'}")
        if spec is None:
            return [None] * len(fields)
        wanted = spec["tuple"] if "tuple" in spec else dict(map(tuple, self.exe.data_types.get(spec["data"], ()))).get(tag)
        if wanted is None or "tuple" in spec and tag:
            raise TypeMismatchError(f"argument {name!r}: expected {_spec_text(spec)}, got {f'a value with the tag {tag}' if tag else 'a tuple'}")
        if len(wanted) != len(fields):
            raise ArgumentError(f"argument {name!r}: expected {_spec_text(spec)} of {len(wanted)} fields, got {len(fields)}")
        return wanted

    def tensor(self, tensor: NDArray) -> int:
        """A tensor object over a tensor's memory, which lives as long as the object."""
        shape = tensor.shape
        code, item = dtype_words(tensor.dtype)
        words = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        made = self.core.foreign(self.address, tensor.data_ptr, len(shape), code, item, ctypes.addressof(words))
        self.given.append((made, tensor))
        return made

    def let_go(self) -> None:
        """After a run: forgets the arrays that no value of the machine refers to any more."""
        if not self.given:
            return
        words = (ctypes.c_int64 * len(self.given))(*(made for made, _ in self.given))
        if self.core.let_go(self.address, ctypes.addressof(words), len(words)):
            self.given = [g for g, word in zip(self.given, words) if word]
        else:
            self.given.clear()

    # -- out

    def value_of(self, address: int) -> Any:
        """The Python value of an object, whose reference is taken over; nested values on a stack of their own."""
        if _kind(address) not in (_ADT, _CELL):
            return self._leaf(address)
        stack: list[tuple[int, list[Any]]] = [(address, [])]
        cells = {address: RefValue(None)} if _kind(address) == _CELL else {}
        result: Any = None
        while stack:
            node, made = stack[-1]
            if len(made) == _word(node, 3):
                stack.pop()
                result = _finished(node, made, cells)
                if stack:
                    stack[-1][1].append(result)
                continue
            field = _word(node, 4 + len(made))
            if field in cells:
                made.append(cells[field])
            elif _kind(field) in (_ADT, _CELL):
                stack.append((field, []))
                if _kind(field) == _CELL:
                    cells[field] = RefValue(None)
            else:
                made.append(self._leaf(self.core.keep(field)))
        self.core.release(self.address, address)
        return result

    def _leaf(self, address: int) -> Any:
        if address & 1:
            return array(np.asarray(address >> 1, np.int64))
        kind = _kind(address)
        if kind == _TENSOR:
            return self._tensor_value(address)
        if kind == _CLOSURE:
            return ClosureValue(self.give_back.hold(address))
        raise ArgumentError("the program gave a block of memory as its result")

    def _tensor_value(self, address: int) -> NDArray:
        rank = _word(address, 4)
        words = (ctypes.c_int64 * (7 + rank)).from_address(address)
        kind = type_of_words(words[5])
        shape = tuple(words[7:7 + rank])
        size = kind.itemsize
        for d in shape:
            size *= d
        if size <= _SMALL or not self.core.is_last(address) or not self._owns(address):
            copy = np.empty((*shape, kind.lanes) if kind.lanes > 1 else shape, kind.numpy_dtype)
            ctypes.memmove(copy.__array_interface__["data"][0], words[2], size)
            self.core.release(self.address, address)
            return NDArray(copy, kind)
        held = self.give_back.hold(address)
        buffer = (ctypes.c_uint8 * size).from_address(words[2])
        full = (*shape, kind.lanes) if kind.lanes > 1 else shape
        return NDArray(np.asarray(_Owned(buffer, held)).view(kind.numpy_dtype).reshape(full), kind)

    def _owns(self, address: int) -> bool:
        """Whether the data lies in the machine's own memory."""
        while True:
            if _word(address, 1) >> 32:
                return True
            owner = _word(address, 3) if _word(address, 1) & 255 == _TENSOR else 0
            if not owner:
                return False
            address = owner


def _kind(address: int) -> int:
    """An object's kind; -1 for a number."""
    return _word(address, 1) & 255 if not address & 1 else -1


def _finished(address: int, made: list[Any], cells: dict[int, RefValue]) -> Any:
    """The value of an object whose parts have theirs."""
    if _kind(address) != _CELL:
        return _adt(_word(address, 2), made)
    cells[address].value = made[0]
    return cells[address]


class _Owned:
    """A buffer that keeps the object it belongs to alive."""

    def __init__(self, buffer: Any, held: Any) -> None:
        self.__array_interface__ = np.frombuffer(buffer, np.uint8).__array_interface__
        self.held, self.buffer = held, buffer


def _spec_text(spec: Any) -> str:
    """A type, for messages."""
    if isinstance(spec, list):
        return f"a tensor of {spec[0]}"
    return f"a value of the type {spec['data']}" if "data" in spec else {"tuple": "a tuple", "function": "a function", "ref": "a reference"}[next(iter(spec))]


def _word(address: int, index: int) -> int:
    return ctypes.c_int64.from_address(address + 8 * index).value


def _adt(tag: int, fields: list[Any]) -> ADT:
    return ADT(tag, fields) if tag else tuple_object(fields)


__all__ = ["Border", "ClosureValue", "ParamPlan", "fields_of", "tensor_of", "type_of_words"]
