"""Structural equality and hashing of nodes, both on an explicit stack.

Two programs are equal when they differ in nothing but the names of bound variables and source locations.  Free variables
equal only themselves, unless ``map_free_vars`` asks to pair them up in order of appearance.  Classes with ``SHARED`` are
nodes of a graph: using one node twice differs from using two equal nodes once each.

The hash is stable across processes and agrees with equality: variables are hashed by the order in which they are met.
"""
from __future__ import annotations

import math
import struct
from enum import Enum
from hashlib import blake2b
from typing import Any, Iterable

from ..support.errors import AnchorlegError
from .attrs import Attrs, DictAttrs
from .expr import FloatImm, IntImm
from .module import IRModule
from .node import ATTRS, BIND, BINDS, CHILDREN, Node



class StructuralMismatch(AnchorlegError, ValueError):
    """Two programs expected to be equal are not."""


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes (or tuples, attributes, modules) are equal in structure."""
    return _first_mismatch(lhs, rhs, map_free_vars, False) is None


def first_difference(lhs: Any, rhs: Any, map_free_vars: bool = False) -> str | None:
    """Where and how two programs first differ, e.g. ``.body.args[1].attrs.axis: 1 is not 2``; None when they are equal."""
    return _first_mismatch(lhs, rhs, map_free_vars, True)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises `StructuralMismatch` with the path to the first difference unless both are equal."""
    where = first_difference(lhs, rhs, map_free_vars)
    if where is not None:
        raise StructuralMismatch(f"the programs differ at {where}\n--- left\n{_shorten(lhs)}\n--- right\n{_shorten(rhs)}")


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash, equal for equal structures and the same in every process.

    Variables are hashed by order of appearance; free ones by their name as well, unless ``map_free_vars``.
    """
    return int.from_bytes(_Hasher(map_free_vars).run(node), "little")


def _shorten(value: Any, limit: int = 4000) -> str:
    text = str(value)
    return text if len(text) <= limit else text[:limit] + " …"


# ---------------------------------------------------------------------------------------------------- what is compared


def _parts_of(value: Any) -> list[Any] | None:
    """The parts of a compound value as (label, defines, value); None for plain data.

    A label is a text, or a pair of the field's name and the position in it.
    """
    if isinstance(value, Node):
        return _module_parts(value) if isinstance(value, IRModule) else _node_parts(value)
    if isinstance(value, (tuple, list)):
        return [(("", i), False, v) for i, v in enumerate(value)]
    if isinstance(value, Attrs):
        keys: Iterable[str] = sorted(value.keys()) if isinstance(value, DictAttrs) else value.keys()
        return [("." + k, False, _plain(value[k])) for k in keys]
    return _dict_parts(value) if isinstance(value, dict) else None


def _dict_parts(value: dict[Any, Any]) -> list[Any]:
    """Entries by key; where keys are nodes, these are compared as well, in order."""
    if any(isinstance(k, Node) for k in value):
        return [part for k, v in value.items() for part in (("[key]", False, k), ("[value]", False, _plain(v)))]
    return [(f"[{k!r}]", False, _plain(v)) for k, v in sorted(value.items(), key=lambda kv: str(kv[0]))]


def _node_parts(node: Node) -> list[Any]:
    parts: list[Any] = []
    for name, kind, value in node.structural_parts():
        if kind is CHILDREN or kind is BINDS:  # laid out flat: the length, then the elements
            binds = kind is BINDS
            parts.append(("length of " + name, False, len(value)))
            parts.extend([((name, i), binds, v) for i, v in enumerate(value)])
        else:
            parts.append(("." + name, kind is BIND, _no_empty_attrs(value) if kind is ATTRS else value))
    return parts


def _no_empty_attrs(value: Any) -> Any:
    """No attributes and an empty dictionary of them are the same thing."""
    return None if isinstance(value, DictAttrs) and not value.keys() else value


def _module_parts(mod: IRModule) -> list[Any]:
    types = sorted(mod.type_definitions.items(), key=lambda kv: kv[0].name_hint)
    funcs = sorted(mod.functions.items(), key=lambda kv: kv[0].name_hint)
    return [*((f"[type {k.name_hint}]", False, v) for k, v in types), *((f"[{k.name_hint!r}]", False, v) for k, v in funcs),
            (".attrs", False, _no_empty_attrs(mod.attrs))]


class _AttrFloat(float):
    """A float in attributes.  It equals another that is the same number seen through float32: a value read out of a float32
    constant (9.999999747378752e-06) equals the decimal it was made from (1e-05).  Their hashes differ all the same, so that
    nothing compiled for one is taken for the other.
    """

    def same_as(self, other: float) -> bool:
        return _bits(self) == _bits(other) or _bits(_through_float32(self)) == _bits(other) or _bits(self) == _bits(_through_float32(other))


def _bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


def _through_float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3e38 else value


def _plain(value: Any) -> Any:
    """Immediates of the loop language inside attributes stand for the Python number they hold."""
    kind = type(value)
    if kind is float:
        return _AttrFloat(value)
    if kind in (IntImm, FloatImm):
        return _plain(value.value)
    if kind in (tuple, list) and any(type(v) in (float, IntImm, FloatImm, tuple, list) for v in value):
        return tuple(_plain(v) for v in value)
    return value


def _is_array(value: Any) -> bool:
    return hasattr(value, "as_numpy_view") and hasattr(value, "dtype")


# ------------------------------------------------------------------------------------------------------------- equality


# How a variable may be treated where it is met:
_USED = 0  # it must have been paired before, or be the same object on both sides
_MAPPED = 1  # it may be paired with another on first sight: inside a binder, or by the caller's wish
_BOUND = 2  # it is being bound here, so whatever it stood for before no longer counts


def _first_mismatch(lhs: Any, rhs: Any, map_free: bool, trace: bool) -> str | None:
    left: dict[int, int] = {}  # id on the left → id on the right, for variables and shared nodes
    right: dict[int, int] = {}
    seen: set[tuple[int, int, bool]] = set()
    least = _MAPPED if map_free else _USED
    stack: list[tuple[Any, Any, int, Any]] = [(lhs, rhs, least, None)]
    while stack:
        a, b, mode, path = stack.pop()
        inner = mode
        if isinstance(a, Node) and type(a) is type(b):
            inner = min(mode, _MAPPED)
            verdict = _pair(a, b, mode, left, right, seen)
            if verdict is True:
                continue
            if verdict is not None:
                return _report(path, verdict, trace)
        elif not _compound_pair(a, b):
            if _leaf_equal(a, b):
                continue
            return _report(path, f"{_show(a)} is not {_show(b)}", trace)
        parts_a, parts_b = _parts_of(a), _parts_of(b)
        why = _same_shape(parts_a, parts_b)
        if why:
            return _report(path, why, trace)
        for (label, binds, x), (_, _, y) in zip(reversed(parts_a), reversed(parts_b)):  # type: ignore[arg-type]
            if x is y and type(x) in _ATOMS:
                continue
            stack.append((x, y, _BOUND if binds else inner, (path, label) if trace else None))
    return None


_ATOMS = frozenset({int, str, bool, type(None), bytes})


def _pair(a: Node, b: Node, mode: int, left: dict[int, int], right: dict[int, int], seen: set[Any]) -> Any:
    """True: settled as equal; a text: why they differ; None: compare their parts."""
    ia, ib = id(a), id(b)
    if not (a.BINDABLE and mode == _BOUND):
        if ia in left:
            return True if left[ia] == ib and right[ib] == ia else _variable_text(a, b, "stands for another node here")
        if ib in right:
            return _variable_text(a, b, "was paired with another node before")
    if a.BINDABLE:
        if mode == _USED and a is not b:
            return _variable_text(a, b, "free, and not the same object")
        left[ia], right[ib] = ib, ia
    elif a.SHARED and a._child_fields and a.children():
        left[ia], right[ib] = ib, ia
    else:
        key = (ia, ib, mode)
        if key in seen:
            return True
        seen.add(key)
    return None


def _variable_text(a: Node, b: Node, why: str) -> str:
    return f"{type(a).__name__} {_name(a)} against {_name(b)} ({why})"


def _name(node: Any) -> str:
    return str(getattr(node, "name_hint", None) or getattr(node, "name", None) or "")


def _compound_pair(a: Any, b: Any) -> bool:
    """Whether both are containers of one kind, to be compared part by part."""
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list))
    if isinstance(a, Attrs):
        return isinstance(b, Attrs) and a.NAME == b.NAME
    return isinstance(a, dict) and isinstance(b, dict)


def _same_shape(parts_a: Any, parts_b: Any) -> str:
    """How two lists of parts differ in length or labels; empty when they do not."""
    for (la, _, va), (lb, _, vb) in zip(parts_a, parts_b):
        if la != lb:
            return f"{_label_text(la)} against {_label_text(lb)}"
        if type(va) is int and va != vb and type(la) is str and la.startswith("length of "):
            return f"{la[10:]} of {va} elements against {vb}"
    return f"{len(parts_a)} elements against {len(parts_b)}" if len(parts_a) != len(parts_b) else ""


def _label_text(label: Any) -> str:
    if isinstance(label, str):
        return label
    return f".{label[0]}[{label[1]}]" if label[0] else f"[{label[1]}]"


def _leaf_equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, float) or isinstance(b, float):
        if type(a) is not type(b):
            return False
        return a.same_as(b) if isinstance(a, _AttrFloat) else _bits(a) == _bits(b)
    if isinstance(a, Node) or isinstance(b, Node):
        return False
    if _is_array(a) and _is_array(b):
        return _array_key(a) == _array_key(b)
    return bool(a == b)


def _array_key(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    return str(array.dtype), tuple(array.shape), array.as_numpy_view().tobytes()


def _show(value: Any) -> str:
    if isinstance(value, Node):
        return f"{type(value).__name__} {_name(value)}".strip()
    if _is_array(value):
        return f"array {value.dtype}{list(value.shape)} " + _shorten(value.as_numpy_view().ravel()[:8].tolist(), 100)
    if isinstance(value, Attrs):
        return value.NAME
    return _shorten(repr(value), 100)


def _report(path: Any, what: str, trace: bool) -> str:
    labels: list[str] = []
    while path is not None:
        path, label = path
        labels.append(_label_text(label))
    return f"{''.join(reversed(labels)) or 'the root'}: {what}" if trace else what


# -------------------------------------------------------------------------------------------------------------- hashing


class _Hasher:
    """One hashing run: digests by node, and the numbers of variables and shared nodes in order of appearance."""

    def __init__(self, map_free: bool = False) -> None:
        self.map_free = map_free
        self.digests: dict[int, bytes] = {}
        self.keep: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.free: set[int] = set()
        self.counter = 0

    def run(self, root: Any) -> bytes:
        """The digest of ``root``."""
        stack: list[tuple[Any, int, Any]] = [(root, _MAPPED if self.map_free else _USED, None)]
        while stack:
            value, mode, parts = stack.pop()
            if parts is not None:
                self.digests[id(value)] = self._combine(value, parts)
                continue
            is_node = isinstance(value, Node)
            if id(value) in self.digests and not (mode == _BOUND and (not is_node or value.BINDABLE)):
                continue
            parts = _parts_of(value)
            if parts is None:
                continue
            if is_node:
                self._number(value, mode)
            if not is_node:
                self.keep.append(value)  # may have been made on the way: its id must stay its own
            stack.append((value, mode, parts))
            inner = min(mode, _MAPPED) if is_node else mode
            stack.extend((v, _BOUND if b else inner, None) for _, b, v in reversed(parts) if type(v) not in _ATOMS)
        return self._digest(root)

    def _number(self, node: Node, mode: int) -> None:
        if not (node.BINDABLE or (node.SHARED and node.children())):
            return
        self.counter += 1
        self.numbers[id(node)] = self.counter
        if node.BINDABLE and mode == _USED:
            self.free.add(id(node))
        else:
            self.free.discard(id(node))

    def _combine(self, value: Any, parts: list[Any]) -> bytes:
        h = blake2b(_class_tag(value), digest_size=8)
        number = self.numbers.get(id(value))
        if number is not None:
            h.update(b"#%d" % number)
            if id(value) in self.free:
                h.update(_name(value).encode())
        named = isinstance(value, (Attrs, dict, IRModule))
        for label, _, part in parts:
            if named:
                h.update(label.encode())
            h.update(self._digest(part))
        return h.digest()

    def _digest(self, value: Any) -> bytes:
        found = self.digests.get(id(value))
        return found if found is not None else _leaf_digest(value)


def _class_tag(value: Any) -> bytes:
    if isinstance(value, (tuple, list)):
        return b"seq%d" % len(value)
    if isinstance(value, Attrs):
        return value.NAME.encode()
    return type(value).__name__.encode()


def _leaf_digest(value: Any) -> bytes:
    """A tagged, self-delimiting form of plain data."""
    if value is None:
        return b"N;"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, (bool, int)):
        return b"i%d;" % int(value)
    if isinstance(value, float):
        return b"f" + _bits(value) + b";"
    if isinstance(value, (str, bytes)) or type(value).__name__ == "DataType":
        value = value if isinstance(value, bytes) else str(value)
        raw = value.encode() if isinstance(value, str) else value
        return b"s%d:" % len(raw) + raw
    if _is_array(value):
        dtype, shape, data = _array_key(value)
        return b"a" + f"{dtype}{shape}".encode() + blake2b(data, digest_size=8).digest()
    return b"o" + type(value).__name__.encode() + (str(value).encode() if type(value).__str__ is not object.__str__ else b"") + b";"


__all__ = ["StructuralMismatch", "structural_equal", "first_difference", "assert_structural_equal", "structural_hash"]
