"""Buffers: loads, stores, and local buffers that live in registers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from ....support.errors import InternalError
from ....tir.dtypes import info, with_lanes
from .linear import Lin, VLin
from .types import item_bytes, llvm_type, memory_scalar, memory_type

if TYPE_CHECKING:
    from .arith import Arith
    from .builder import FunctionBuilder
    from .module_text import ModuleText

Value = Union[str, Lin, VLin]
_MAX_STRIDE = 4


class Slots:
    """A local buffer in registers: ``values[k]`` holds elements k·lanes … of it; an access may be of a part of one."""

    __slots__ = ("dtype", "lanes", "count", "values")

    def __init__(self, dtype: str, lanes: int, count: int) -> None:
        self.dtype, self.lanes, self.count = with_lanes(dtype, lanes), lanes, count
        self.values: dict[int, str] = {}


class Memory:
    """Loads and stores of one function.

    ``pointers`` maps ``id`` of a data variable to its address, ``slots`` to its registers.
    """

    b: FunctionBuilder
    ar: Arith
    module: ModuleText

    def __init__(self) -> None:
        self.pointers: dict[int, str] = {}
        self.slots: dict[int, Slots] = {}
        self.versions: dict[int, int] = {}
        self.alignment: dict[int, int] = {}
        self.epoch = 0

    def text(self, value: Value) -> str:
        """A value as an operand."""
        raise NotImplementedError

    def touch(self, data: int) -> None:
        """Notes that a buffer (by the id of its data variable) may have changed."""
        self.versions[data] = self.versions.get(data, 0) + 1

    def touch_all(self) -> None:
        """Notes that any buffer may have changed."""
        self.epoch += 1

    def _version(self, data: int) -> int:
        return self.versions.get(data, 0) + (self.epoch << 32)

    def pointer(self, data: Any) -> str:
        """The address behind a data variable."""
        found = self.pointers.get(id(data))
        if found is None:
            raise InternalError(f"{self.module.name}: the buffer behind {data.name} has no memory here")
        return found

    # -- loads

    def load_element(self, buffer: Any, index: Value) -> str:
        """The element or vector of ``buffer`` at ``index``."""
        key = id(buffer.data)
        registers = self.slots.get(key)
        if registers is not None:
            return self._part(registers, index)
        if isinstance(index, Lin):
            return self._load_at(buffer, index, 1)
        if isinstance(index, VLin):
            return self._load_vector(buffer, index)
        raise InternalError(f"{self.module.name}: unexpected form of index {index!r}")

    def load_lanes(self, buffer: Any, index: str, lanes: int) -> str:
        """The elements at the lanes of an index vector."""
        dtype = with_lanes(buffer.dtype, lanes)
        values = [self._load_at(buffer, Lin(0, ((self.ar.lane(index, with_lanes("int64", lanes), i), 1),)), 1) for i in range(lanes)]
        return self.ar.from_lanes(values, dtype)

    def _slot_of(self, index: Value, registers: Slots) -> tuple[int, int, int]:
        """(register, first lane in it, lanes) of an access."""
        base = index.base if isinstance(index, VLin) else index
        if not isinstance(base, Lin) or not base.is_const:
            raise InternalError(f"{self.module.name}: a buffer held in registers is indexed by something not constant")
        return *divmod(base.const, registers.lanes), index.lanes if isinstance(index, VLin) else 1

    def _part(self, registers: Slots, index: Value) -> str:
        """A register, or some neighbouring lanes of it."""
        slot, first, lanes = self._slot_of(index, registers)
        whole = registers.values.get(slot, "poison")
        if lanes == registers.lanes:
            return whole
        if lanes == 1:
            return self.ar.lane(whole, registers.dtype, first)
        mask = ", ".join(f"i32 {first + i}" for i in range(lanes))
        kind = llvm_type(registers.dtype)
        return self.ar.op(f"shufflevector {kind} {whole}, {kind} poison, <{lanes} x i32> <{mask}>", whole)

    def _store_part(self, registers: Slots, index: Value, value: str, dtype: str) -> None:
        """Replaces a register, or some neighbouring lanes of it."""
        slot, first, lanes = self._slot_of(index, registers)
        if lanes == registers.lanes:
            registers.values[slot] = value
            return
        whole, kind = registers.values.get(slot, "poison"), llvm_type(registers.dtype)
        if lanes == 1:
            registers.values[slot] = self.ar.op(f"insertelement {kind} {whole}, {llvm_type(dtype)} {value}, i32 {first}", whole, value)
            return
        part = llvm_type(dtype)
        spread = ", ".join(f"i32 {i - first}" if first <= i < first + lanes else "i32 poison" for i in range(registers.lanes))
        wide = self.ar.op(f"shufflevector {part} {value}, {part} poison, <{registers.lanes} x i32> <{spread}>", value)
        mask = ", ".join(f"i32 {registers.lanes + i if first <= i < first + lanes else i}" for i in range(registers.lanes))
        registers.values[slot] = self.ar.op(f"shufflevector {kind} {whole}, {kind} {wide}, <{registers.lanes} x i32> <{mask}>", whole, wide)

    def _align(self, buffer: Any) -> int:
        return item_bytes(buffer.dtype)

    def _load_at(self, buffer: Any, index: Lin, lanes: int) -> str:
        dtype = with_lanes(buffer.dtype, lanes)
        scalar = memory_scalar(info(buffer.dtype))
        address = self.b.address(self.pointer(buffer.data), scalar, index)
        raw = self.b.load(memory_type(dtype), address, self._align(buffer), self._version(id(buffer.data)))
        return self.from_memory(raw, dtype)

    def from_memory(self, raw: str, dtype: str) -> str:
        """A value in its register form from its form in memory."""
        kind, stored = llvm_type(dtype), memory_type(dtype)
        if kind == stored:
            return raw
        if info(dtype).kind == "bool":
            return self.ar.op(f"icmp ne {stored} {raw}, {self.ar.const(0, with_lanes('int8', info(dtype).lanes))}", raw)
        return self.ar.op(f"trunc {stored} {raw} to {kind}", raw)

    def to_memory(self, value: str, dtype: str) -> str:
        """A value in its memory form."""
        kind, stored = llvm_type(dtype), memory_type(dtype)
        if kind == stored:
            return value
        return self.ar.op(f"{'sext' if info(dtype).kind == 'int' else 'zext'} {kind} {value} to {stored}", value)

    def _load_vector(self, buffer: Any, index: VLin) -> str:
        stride, lanes = index.stride, index.lanes
        if index.repeat > 1:
            return self._load_repeated(buffer, index)
        if stride == 1:
            return self._load_at(buffer, index.base, lanes)
        if stride == 0:
            return self.ar.splat(self._load_at(buffer, index.base, 1), buffer.dtype, lanes)
        if abs(stride) <= _MAX_STRIDE:
            return self._load_strided(buffer, index)
        values = [self._load_at(buffer, index.base.add(Lin(i * stride)), 1) for i in range(lanes)]
        return self.ar.from_lanes(values, with_lanes(buffer.dtype, lanes))

    def _load_repeated(self, buffer: Any, index: VLin) -> str:
        """Each element once, then copied into its neighbouring lanes."""
        few = index.lanes // index.repeat
        if few == 1:
            return self.ar.splat(self._load_at(buffer, index.base, 1), buffer.dtype, index.lanes)
        part, kind = self._load_vector(buffer, VLin(index.base, index.stride, few)), llvm_type(with_lanes(buffer.dtype, few))
        mask = ", ".join(f"i32 {i // index.repeat}" for i in range(index.lanes))
        return self.ar.op(f"shufflevector {kind} {part}, {kind} poison, <{index.lanes} x i32> <{mask}>", part)

    def _load_strided(self, buffer: Any, index: VLin) -> str:
        """Whole vectors that cover exactly the elements' span, then one lane pick at a time across them."""
        stride, lanes = abs(index.stride), index.lanes
        span = stride * (lanes - 1) + 1
        start = index.base if index.stride > 0 else index.base.add(Lin(index.stride * (lanes - 1)))
        offsets = [min(i * lanes, span - lanes) for i in range(stride)]
        parts = [self._load_at(buffer, start.add(Lin(o)), lanes) for o in dict.fromkeys(offsets)]
        positions = [i * stride for i in range(lanes)]
        if index.stride < 0:
            positions.reverse()
        return self._pick(parts, list(dict.fromkeys(offsets)), positions, with_lanes(buffer.dtype, lanes), lanes)

    def _pick(self, parts: list[str], offsets: list[int], positions: list[int], dtype: str, lanes: int) -> str:
        kind, result = llvm_type(dtype), ""
        for k, (part, offset) in enumerate(zip(parts, offsets)):
            here = [p - offset if 0 <= p - offset < lanes else None for p in positions]
            if not result:
                mask = ", ".join("i32 poison" if h is None else f"i32 {h}" for h in here)
                result = self.ar.op(f"shufflevector {kind} {part}, {kind} poison, <{lanes} x i32> <{mask}>", part)
                continue
            before = [any(0 <= p - o < lanes for o in offsets[:k]) for p in positions]
            mask = ", ".join(f"i32 {i}" if b or h is None else f"i32 {lanes + h}" for i, (h, b) in enumerate(zip(here, before)))
            result = self.ar.op(f"shufflevector {kind} {result}, {kind} {part}, <{lanes} x i32> <{mask}>", result, part)
        return result

    # -- stores

    def store_element(self, buffer: Any, index: Value, value: str, dtype: str) -> None:
        """Stores a value of ``dtype`` at ``index``."""
        key = id(buffer.data)
        registers = self.slots.get(key)
        if registers is not None:
            self._store_part(registers, index, value, dtype)
            return
        if isinstance(index, VLin) and (index.stride != 1 or index.repeat != 1):
            self._scatter(buffer, [index.base.add(Lin(step)) for step in index.steps()], value, dtype)
        else:
            base = index.base if isinstance(index, VLin) else index
            self._store_at(buffer, base if isinstance(base, Lin) else Lin(0, ((base, 1),)), value, dtype)
        self.touch(key)

    def store_lanes(self, buffer: Any, index: str, value: str, dtype: str) -> None:
        """Stores each lane at the place its lane of an index vector says."""
        lanes = info(dtype).lanes
        places = [Lin(0, ((self.ar.lane(index, with_lanes("int64", lanes), i), 1),)) for i in range(lanes)]
        self._scatter(buffer, places, value, dtype)
        self.touch(id(buffer.data))

    def _scatter(self, buffer: Any, places: list[Lin], value: str, dtype: str) -> None:
        scalar = info(dtype).scalar
        for i, place in enumerate(places):
            self._store_at(buffer, place, self.ar.lane(value, dtype, i), scalar)

    def _store_at(self, buffer: Any, index: Lin, value: str, dtype: str) -> None:
        address = self.b.address(self.pointer(buffer.data), memory_scalar(info(buffer.dtype)), index)
        stored = self.to_memory(value, dtype)
        self.b.line(f"store {memory_type(dtype)} {stored}, ptr {address}, align {self._align(buffer)}")

