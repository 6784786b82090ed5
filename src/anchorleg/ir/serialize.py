"""Programs as JSON: a table of nodes that refer to each other by number.  Reading executes nothing.

The layout is upstream's (``root``, ``nodes`` with ``type_key``, ``b64ndarrays``), and so are the entries of tensor constants:
metadata sections of text files can be exchanged with it.  Of other classes every declared field is written under its name.
"""
from __future__ import annotations

import base64
import binascii
import importlib
import json
import math
from enum import Enum
from typing import Any, Callable, Iterable, NamedTuple

from ..runtime.container import String
from ..support.errors import AnchorlegError, ParseError
from .attrs import Attrs, DictAttrs
from .expr import IntImm
from .module import IRModule
from .node import ARRAY, ATTRS, Kind, Node
from .op import Op
from .span import SourceName, Span

_ONE = (Kind.CHILD, Kind.BIND)
_MANY = (Kind.CHILDREN, Kind.BINDS)
_ROOM_OF_KEY = {"relay": ("relay.expr", "relay.function", "relay.adt"), "tir": ("tir.expr", "tir.stmt", "tir.buffer", "tir.function")}
_PREFIXED_TYPES = {"TensorType": "relay.TensorType", "RefType": "relay.RefType", "TypeData": "relay.TypeData",
                   "Constructor": "relay.Constructor", "Any": "tir.Any"}


def type_key(value: Any) -> str:
    """The registered name of a node's class, e.g. ``relay.Constant`` or ``tir.Var``."""
    if isinstance(value, Attrs):
        return value.NAME
    if type(value).__name__ in _FORM_HOMES:
        return type(value).__name__
    if isinstance(value, (list, tuple)):
        return "Array"
    if isinstance(value, dict):
        return "Map"
    name = type(value).__name__
    room = type(value).__module__.split(".")
    prefix = room[1] if len(room) > 2 and room[1] in _ROOM_OF_KEY else ""
    return _PREFIXED_TYPES.get(name) or (f"{prefix}.{name}" if prefix else name)


class RowForm(NamedTuple):
    """How objects of a class with rows of its own kind are written and read.

    ``write(object)`` gives the attributes: text as it is, rows as `PlainRow`, `RowForm` objects, lists or dicts.  ``read`` makes the
    object from them, where attributes named in ``rows`` have been replaced by what their row holds.
    """

    rows: tuple[str, ...]
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]


_FORM_HOMES = {"VirtualDevice": "target.json_rows", "Target": "target.json_rows", "TargetKind": "target.json_rows"}


def _row_form(key: str) -> RowForm:
    """The form of a class's rows; the table of them is with the class."""
    return importlib.import_module(f"..{_FORM_HOMES[key]}", __package__).FORMS[key]  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------------------------------------- writing


def save_json(value: Any) -> str:
    """The JSON text of a node, a module, attributes, or lists and dictionaries of them."""
    return _Writer().text(value)


class _Writer:
    """Numbers objects as they are met; each becomes one row."""

    def __init__(self) -> None:
        self.index: dict[int, int] = {}
        self.objects: list[Any] = []
        self.arrays: list[str] = []
        self.array_index: dict[int, int] = {}
        self.keep: list[Any] = []

    def text(self, root: Any) -> str:
        """The whole document."""
        first = self.ref(self.boxed(root))
        rows: list[Any] = [{"type_key": ""}]
        done = 0
        while done < len(self.objects):
            rows.append(self.row(self.objects[done]))
            done += 1
        head = {"root": first, "nodes": rows, "b64ndarrays": self.arrays, "attrs": {"tvm_version": "0.16.dev0"}}
        return json.dumps(head, indent=2, allow_nan=False)

    def ref(self, value: Any) -> int:
        """The number of an object; 0 for None."""
        if value is None:
            return 0
        found = self.index.get(id(value))
        if found is None:
            self.objects.append(value)
            found = self.index[id(value)] = len(self.objects)
        return found

    def boxed(self, value: Any) -> Any:
        """The value itself if it has a row of its own; plain data in a box otherwise (kept alive, so that its id stays its own)."""
        if value is None or isinstance(value, _ROWS) or type(value).__name__ in _FORM_HOMES:
            return value
        box = _Boxed(value)
        self.keep.append(box)
        return box

    def row(self, value: Any) -> dict[str, Any]:
        """One object as a table row."""
        if isinstance(value, PlainRow):
            return value.row
        key = type_key(value)
        if isinstance(value, (list, tuple)):
            return {"type_key": key, "data": [self.ref(self.boxed(v)) for v in value]}
        if isinstance(value, dict):
            return {"type_key": key, "keys": [str(k) for k in value], "data": [self.ref(self.boxed(v)) for v in value.values()]}
        if isinstance(value, Span):
            return {"type_key": key, "attrs": {"source_name": str(self.ref(value.source_name)), **{n: str(getattr(value, n)) for n in _PLACE}}}
        if isinstance(value, SourceName):
            return {"type_key": key, "repr_str": value.name}
        if key in _FORM_HOMES:
            form = _row_form(key)
            return {"type_key": key, "attrs": {k: str(self.ref(self.boxed(v))) if k in form.rows else v for k, v in form.write(value).items()}}
        if isinstance(value, _Boxed):
            return {"type_key": "value", "value": self.plain(value.value)}
        if isinstance(value, Op):
            return {"type_key": key, "repr_str": value.name}
        if isinstance(value, IRModule):
            return {"type_key": key, "types": [[self.ref(k), self.ref(v)] for k, v in value.type_definitions.items()],
                    "functions": [[self.ref(k), self.ref(v)] for k, v in value.functions.items()], "module_attrs": self.ref(value.attrs)}
        if isinstance(value, Attrs):
            return {"type_key": key, "attrs": {k: self.plain(v) for k, v in value.items()}}
        if not isinstance(value, Node):
            raise AnchorlegError(f"cannot write a {type(value).__name__} as JSON: expected a node, attributes, numbers, strings or lists")
        return {"type_key": key, "attrs": self.fields(value)}

    def fields(self, node: Node) -> dict[str, Any]:
        """A node's fields: references as decimal strings, everything else as plain JSON."""
        out: dict[str, Any] = {}
        for name, kind in _stored_fields(type(node)).items():
            value = getattr(node, name)
            if name == _DEVICE:
                out.update({} if value is None else {name: str(self.ref(value))})
            elif kind in _ONE or kind is ATTRS:
                out[name] = str(self.ref(value))
            elif kind in _MANY:
                out[name] = [v if isinstance(v, int) or v is None else {"node": self.ref(v)} for v in value]
            elif kind is ARRAY:
                out[name] = str(self.array(value))
            else:
                out[name] = self.plain(value)
        if node.span is not None or type(node).__name__ == "Constant":
            out["span"] = str(self.ref(node.span))
        if type(node).__name__ == "Constant":
            out = {"_checked_type_": "0", _DEVICE: str(self.ref(_ANY_DEVICE)), **out}
        return out

    def array(self, value: Any) -> int:
        """The number of a tensor."""
        from ..runtime.params import save_ndarray

        found = self.array_index.get(id(value))
        if found is None:
            found = self.array_index[id(value)] = len(self.arrays)
            self.keep.append(value)
            self.arrays.append(base64.b64encode(save_ndarray(value)).decode())
        return found

    def plain(self, value: Any) -> Any:
        """Plain data as JSON; objects inside it by reference."""
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in value]
        if isinstance(value, dict):
            return {"map": [[self.plain(k), self.plain(v)] for k, v in value.items()]}
        if isinstance(value, (Node, Attrs)):
            return {"node": self.ref(value)}
        if hasattr(value, "as_numpy_view"):
            return {"array": self.array(value)}
        if type(value).__name__ == "DataType":
            return str(value)
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        raise AnchorlegError(f"cannot write a {type(value).__name__} as JSON: expected numbers, strings, lists, maps, nodes or tensors")


class _Boxed:
    """A plain value where a row is needed."""

    def __init__(self, value: Any) -> None:
        self.value = value


class PlainRow:
    """Text or a number that has a row of its own, in upstream's form."""

    def __init__(self, value: str | int | bool) -> None:
        if isinstance(value, str):
            self.row: dict[str, Any] = {"type_key": "runtime.String", **({"repr_str": value} if value else {})}
        else:
            dtype = "bool" if isinstance(value, bool) else "int32"
            self.row = {"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": str(int(value))}}


class VirtualDevice(Node):
    """Anywhere: where a constant is before devices are planned (upstream's files name it for every constant)."""

    __slots__ = ("device_type_int", "virtual_device_id", "target", "memory_scope")

    def __init__(self) -> None:
        self.device_type_int, self.virtual_device_id, self.target, self.memory_scope, self.span = -1, -1, None, "", None


_ANY_DEVICE = VirtualDevice()
_DEVICE = "virtual_device_"
_ROWS = (Node, Attrs, list, tuple, dict, Span, SourceName, PlainRow)


def _stored_fields(cls: type[Node]) -> dict[str, Kind]:
    """The declared fields, and those slots that a node's constructor works out (a dtype, a constructor's tag)."""
    extra = {name: Kind.DATA for name in ("dtype", "tag") if hasattr(cls, name) and name not in cls.FIELDS}
    return {**cls.FIELDS, **extra}


# -------------------------------------------------------------------------------------------------------------- reading


def load_json(text: str) -> Any:
    """What :func:`save_json` wrote; a ParseError that says what is wrong when the text is damaged."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ParseError(f"not JSON: {exc}") from None
    try:
        found = _Reader(document).root()
        return String(found) if type(found) is str else found
    except ParseError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, AnchorlegError) as exc:
        raise ParseError(f"damaged program text: {type(exc).__name__}: {exc}") from exc


class _Reader:
    """Builds objects children first, on an explicit stack."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
            raise ParseError("not a saved program: expected an object with 'root' and 'nodes'")
        self.rows: list[Any] = document["nodes"]
        self.first = document.get("root", -1)
        self.encoded: list[Any] = document.get("b64ndarrays", [])
        self.arrays: dict[int, Any] = {}
        self.built: dict[int, Any] = {0: None}

    def root(self) -> Any:
        """The object the document is about."""
        open_rows: set[int] = set()
        stack = [self._number(self.first)]
        while stack:
            at = stack[-1]
            if at in self.built:
                stack.pop()
                continue
            missing = [r for r in self._references(self.rows[at]) if r not in self.built]
            if not missing:
                self.built[at] = self._build(self.rows[at])
                stack.pop()
                open_rows.discard(at)
                continue
            if at in open_rows and any(r in open_rows for r in missing):
                raise ParseError(f"damaged program text: row {at} contains itself")
            open_rows.add(at)
            stack.extend(reversed(missing))
        return self.built[self._number(self.first)]

    def _number(self, value: Any) -> int:
        at = int(value)
        if isinstance(value, bool) or not 0 <= at < len(self.rows):
            raise ParseError(f"damaged program text: no row {value!r} among {len(self.rows)}")
        return at

    def _references(self, row: Any) -> list[int]:
        """The rows that must be built first."""
        key = row["type_key"]
        if key in ("Array", "Map"):
            return [self._number(r) for r in row.get("data", ())]
        if key == "IRModule" and "functions" in row:
            pairs = [*row["types"], *row["functions"]]
            return [self._number(r) for pair in pairs for r in pair] + [self._number(row["module_attrs"])]
        if key == "value":
            return list(self._inside(row["value"]))
        attrs = row.get("attrs") or {}
        if key == "Span":
            return [self._number(attrs["source_name"])]
        if key in _FORM_HOMES:
            return [self._number(attrs[name]) for name in _row_form(key).rows]
        if key in _HOLDS_ROW and _HOLDS_ROW[key] in attrs:
            return [self._number(attrs[_HOLDS_ROW[key]])]
        cls = None if key in Attrs.REGISTRY else _class_of(key)
        if cls is None:
            return [r for v in attrs.values() for r in self._inside(v)]
        found: list[int] = []
        for name, kind in _stored_fields(cls).items():
            stored = _stored_name(key, name, attrs)
            value = attrs.get(stored)
            if (kind in _ONE or kind is ATTRS or kind in _MANY or stored != name or name == _DEVICE) and isinstance(value, str):
                found.append(self._number(value))
            elif kind is not ARRAY:
                found.extend(self._inside(value))
        return [*found, self._number(attrs.get("span") or 0)]

    def _inside(self, value: Any) -> Iterable[int]:
        """References inside plain data."""
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, list):
                stack.extend(item)
            elif isinstance(item, dict):
                if "node" in item:
                    yield self._number(item["node"])
                stack.extend(v for k, v in item.items() if k == "map")

    def _build(self, row: dict[str, Any]) -> Any:
        key = row["type_key"]
        special: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_read_{key.replace('.', '_')}", None)
        if special is not None:
            return special(row)
        if key == "DictAttrs" and "__dict__" in (row.get("attrs") or {}):
            return DictAttrs(self.built[self._number(row["attrs"]["__dict__"])])
        if key in Attrs.REGISTRY:
            return _attrs(key, {k: self.plain(v) for k, v in (row.get("attrs") or {}).items()})
        if key in _FORM_HOMES:
            form = _row_form(key)
            return form.read({k: self.built[self._number(v)] if k in form.rows else v for k, v in row["attrs"].items()})
        cls = _class_of(key)
        if cls is None:
            raise ParseError(f"damaged program text: no class is named {key!r}")
        return self._node(cls, key, row.get("attrs") or {})

    def _node(self, cls: type[Node], key: str, attrs: dict[str, Any]) -> Node:
        values: dict[str, Any] = {}
        for name, kind in _stored_fields(cls).items():
            stored = _stored_name(key, name, attrs)
            if name == _DEVICE:
                values[name] = _fixed_device(self.built[self._number(attrs.get(name, 0))])
                continue
            if stored not in attrs:
                raise ParseError(f"damaged program text: {key} has no {name!r}")
            values[name] = self._field(key, name, kind, attrs[stored]) if kind in _MANY or stored == name else str(
                self.built[self._number(attrs[stored])])
        node = _assemble(cls, values)
        span = self.built[self._number(attrs.get("span") or 0)]
        node.span = span if isinstance(span, Span) else None
        return node

    def _field(self, key: str, name: str, kind: Kind, value: Any) -> Any:
        if kind is ARRAY:
            return self.array(value)
        if kind in _ONE or kind is ATTRS:
            found = self.built[self._number(value)]
            if found is not None and not isinstance(found, Attrs if kind is ATTRS else Node):
                raise ParseError(f"damaged program text: {key}.{name} is a {type(found).__name__}")
            return found
        if kind in _MANY:
            items = self.built[self._number(value)] if isinstance(value, str) else self.plain(value)
            return tuple(_member(key, name, v) for v in items or ())
        return _coerced(key, name, self.plain(value))

    def plain(self, value: Any) -> Any:
        """Plain data from JSON: lists become tuples."""
        if isinstance(value, list):
            return tuple(self.plain(v) for v in value)
        if not isinstance(value, dict):
            return value
        if "node" in value:
            return self.built[self._number(value["node"])]
        if "map" in value:
            return {self.plain(k): self.plain(v) for k, v in value["map"]}
        if "float" in value:
            return float(value["float"])
        if "array" in value:
            return self.array(value["array"])
        return base64.b64decode(value["bytes"], validate=True)

    def array(self, value: Any) -> Any:
        """A tensor by number."""
        from ..runtime.params import load_ndarray

        at = int(value)
        if not 0 <= at < len(self.encoded):
            raise ParseError(f"damaged program text: no tensor {at} among {len(self.encoded)}")
        if at not in self.arrays:
            try:
                raw = base64.b64decode(self.encoded[at], validate=True)
            except binascii.Error as exc:
                raise ParseError(f"damaged program text: tensor {at}: {exc}") from None
            self.arrays[at] = load_ndarray(raw)
        return self.arrays[at]

    # rows with a form of their own

    def _read_Array(self, row: dict[str, Any]) -> Any:
        return tuple(self.built[self._number(r)] for r in row.get("data", ()))

    def _read_Map(self, row: dict[str, Any]) -> Any:
        return dict(zip(row.get("keys", ()), (self.built[self._number(r)] for r in row.get("data", ()))))

    def _read_value(self, row: dict[str, Any]) -> Any:
        return self.plain(row["value"])

    def _read_runtime_String(self, row: dict[str, Any]) -> str:
        return str(row.get("repr_str", ""))

    def _read_relay_Id(self, row: dict[str, Any]) -> str:
        return str(self.built[self._number(row["attrs"]["name_hint"])])

    def _read_SourceName(self, row: dict[str, Any]) -> SourceName:
        return SourceName(str(row.get("repr_str", "")))

    def _read_Span(self, row: dict[str, Any]) -> Span:
        attrs = row["attrs"]
        return Span(self.built[self._number(attrs["source_name"])], *(int(attrs[n]) for n in _PLACE))

    def _read_Op(self, row: dict[str, Any]) -> Op:
        return Op.get(str(row["repr_str"]))

    def _read_IRModule(self, row: dict[str, Any]) -> IRModule:
        if "functions" not in row:
            raise ParseError("a module in upstream's JSON layout cannot be read: use its text format")
        pairs = {name: [(self.built[self._number(k)], self.built[self._number(v)]) for k, v in row[name]] for name in ("types", "functions")}
        return IRModule(dict(pairs["functions"]), dict(pairs["types"]), self.built[self._number(row["module_attrs"])])


_PLACE = ("line", "end_line", "column", "end_column")
_HOLDS_ROW = {"relay.Id": "name_hint", "DictAttrs": "__dict__"}  # upstream's rows whose one entry is a row number
_ALIASES = {("relay.Var", "name_hint"): "vid", ("relay.TensorType", "dims"): "shape"}  # upstream's names of fields


def _stored_name(key: str, name: str, attrs: dict[str, Any]) -> str:
    """The name under which a row holds a field: ours, or upstream's."""
    other = _ALIASES.get((key, name), name)
    return other if other in attrs else name


def _class_of(key: str) -> type[Node] | None:
    """The node class registered under a type key."""
    if not _CLASSES:
        _collect_classes()
    return _CLASSES.get(key)


_CLASSES: dict[str, type[Node]] = {}


def _collect_classes() -> None:
    import importlib

    for rooms in _ROOM_OF_KEY.values():
        for room in rooms:
            importlib.import_module(f"..{room}", __package__)
    stack: list[type[Node]] = [Node]
    while stack:
        cls = stack.pop()
        stack.extend(cls.__subclasses__())
        if cls.FIELDS or cls.__name__ == "PatternWildcard":
            _CLASSES.setdefault(type_key(object.__new__(cls)), cls)


def _attrs(key: str, values: dict[str, Any]) -> Attrs:
    return DictAttrs(values) if key == "DictAttrs" else Attrs.REGISTRY[key](**values)


def _fixed_device(device: Any) -> Any:
    """A device, or None for one that leaves everything open."""
    return None if device is None or device.is_fully_unconstrained else device


def _member(key: str, name: str, value: Any) -> Any:
    """An element of a list of nodes; dimensions may be ints."""
    if isinstance(value, IntImm) and name == "dims":
        return value.value
    if value is None or isinstance(value, Node) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ParseError(f"damaged program text: {key}.{name} holds a {type(value).__name__}")


_NUMBERS = {("IntImm", "value"): int, ("FloatImm", "value"): float, ("relay.TupleGetItem", "index"): int,
            ("relay.Match", "complete"): lambda v: bool(int(v)), ("TypeVar", "kind"): int, ("GlobalTypeVar", "kind"): int,
            ("IncompleteType", "kind"): int, ("relay.Constructor", "tag"): int}


def _coerced(key: str, name: str, value: Any) -> Any:
    """Numbers that upstream writes as strings, and kinds as their enumeration."""
    if (key, name) in _NUMBERS:
        value = _NUMBERS[key, name](value)
    if name == "kind" and key in ("TypeVar", "GlobalTypeVar", "IncompleteType"):
        from .type import TypeKind

        return TypeKind(value)
    return value


def _assemble(cls: type[Node], values: dict[str, Any]) -> Node:
    """A node with these fields; constructors are not called, so that nothing is worked out anew."""
    if cls.__name__ == "Constant":
        return cls(values["data"])  # type: ignore[call-arg]
    node = object.__new__(cls)
    node.span = None
    for base in cls.__mro__:
        for slot in getattr(base, "__slots__", ()) if base is not Node else ():
            if slot not in values and slot not in ("__weakref__",):
                setattr(node, slot, None)
    for name, value in values.items():
        setattr(node, name, value)
    return node
