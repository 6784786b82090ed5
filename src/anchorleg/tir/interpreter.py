"""The interpreter: what a loop program means.

``run_primfunc`` translates a function into Python source (once per function), in which scalars are Python ints, bools and numpy
floating scalars, vectors are numpy arrays and buffers numpy views; then runs it.  Every access is checked against the buffer's
bounds.  All loops run serially.  Fresh memory is filled with NaN (integers: with a conspicuous number), so that reading what was
never written shows.
"""
from __future__ import annotations

import weakref
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ..ir.expr import FloatImm, IntImm, PrimExpr
from ..ir.op import Op
from ..runtime.dtype import numpy_dtype
from ..support.errors import ArgumentError, OutOfBoundsError, TypeMismatchError, UnsupportedOpError
from . import expr as tir
from . import numeric
from . import stmt as ts
from .buffer import Buffer, BufferLoad
from .dtypes import info, int_range, scalar_of
from .function import PrimFunc
from .functor import StmtVisitor, contains, kids, post_order

_MAX_NEST = 8  # loops in one Python function (Python allows 20)
_MAX_PARENS = 35  # levels of an expression in one Python expression (Python allows 200 parentheses)
_POISON = {1: 0xA5, 2: 0xA5A5 & 0x7FFF, 4: 0x2EADBEEF, 8: 0x2EADBEEF2EADBEEF}

# ---------------------------------------------------------------- what the generated code calls


def _out_of_bounds(name: str, axis: int, index: Any, extent: int) -> Any:
    raise OutOfBoundsError(f"access to buffer {name!r} out of bounds: index {index} on axis {axis} is not in [0, {extent})")


def _check_vector(name: str, axis: int, index: Any, extent: int) -> Any:
    if index.min() < 0 or index.max() >= extent:
        _out_of_bounds(name, axis, index.tolist(), extent)
    return index


def _fresh(dtype: str, count: int) -> np.ndarray:
    t = info(dtype)
    if count < 0:
        raise ArgumentError(f"cannot allocate {count} elements")
    out = np.empty(count * t.lanes, numpy_dtype(t.scalar))
    if t.is_float:
        out.fill(np.nan)
    elif t.kind == "bool":
        out.fill(True)
    else:
        out.fill(min(_POISON[out.itemsize], int_range(t.scalar)[1]))
    return out


def _view(storage: np.ndarray, dtype: str, shape: Sequence[int], strides: Sequence[int], offset: int, name: str) -> np.ndarray:
    """The numpy view of a buffer over flat storage; what does not fit into the storage is an error."""
    t = info(dtype)
    flat = storage.reshape(-1).view(numpy_dtype(t.scalar))[offset:]
    dims = tuple(shape) + ((t.lanes,) if t.lanes > 1 else ())
    if strides:
        steps = tuple(s * t.lanes for s in strides) + ((1,) if t.lanes > 1 else ())
        last = sum((d - 1) * s for d, s in zip(dims, steps)) if all(dims) else -1
        if last >= flat.size:
            raise OutOfBoundsError(f"buffer {name!r} of shape {tuple(shape)} and strides {tuple(strides)} exceeds its memory of {flat.size} elements")
        return np.lib.stride_tricks.as_strided(flat, dims, tuple(s * flat.itemsize for s in steps))
    count = int(np.prod(dims, dtype=np.int64))
    if count > flat.size:
        raise OutOfBoundsError(f"buffer {name!r} of shape {tuple(shape)} exceeds its memory of {flat.size} elements")
    return flat[:count].reshape(dims)


def _select(c: Any, t: Any, f: Any) -> Any:
    return t if c else f


def _failed(message: str) -> None:
    raise ArgumentError(f"assertion of the loop program failed: {message}")


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def _return(value: Any) -> Any:
    raise _Return(value)


_GLOBALS: dict[str, Any] = {
    "np": np, "_oob": _out_of_bounds, "_vec": _check_vector, "_fresh": _fresh, "_view": _view, "_select": _select, "_failed": _failed,
    "_return": _return, "_tdiv": numeric.trunc_div, "_tmod": numeric.trunc_mod, "_min": numeric.minimum, "_max": numeric.maximum,
}

# ---------------------------------------------------------------- translation of expressions

_INFIX = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*", tir.EQ: "==", tir.NE: "!=", tir.LT: "<", tir.LE: "<=", tir.GT: ">", tir.GE: ">=",
          tir.FloorDiv: "//", tir.FloorMod: "%"}
_WRAPS = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.FloorDiv)


class _Text:
    """Python source of an expression, and how deeply it nests."""

    __slots__ = ("text", "depth")

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.depth = text, depth


class _Compiler(StmtVisitor):
    """Builds the source of one function."""

    def __init__(self, func: PrimFunc, externs: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.func, self.externs = func, externs
        self.env: dict[str, Any] = dict(_GLOBALS)
        self.names: dict[int, str] = {}
        self.keep: list[Any] = []
        self.scope: list[str] = []
        self.finished: list[str] = []
        self.lines: list[str] = []
        self.indent, self.nest = 1, 0
        self.mins: dict[int, list[str]] = {}
        self.views: dict[int, list[Buffer]] = {}
        self.shapes: dict[int, list[str]] = {}
        self.count = 0
        self._collect_buffers()

    def _collect_buffers(self) -> None:
        seen: set[int] = set()
        realized = {id(s.buffer) for s in post_order(self.func.body) if isinstance(s, ts.BufferRealize)}
        mapped = [b for b in self.func.buffers if b is not None]
        for n in post_order(self.func.body):
            if isinstance(n, (BufferLoad, ts.BufferStore)) and id(n.buffer) not in seen:
                seen.add(id(n.buffer))
                mapped.append(n.buffer)
        done: set[int] = set()
        for b in mapped:
            if id(b) not in done and id(b) not in realized:
                done.add(id(b))
                self.views.setdefault(id(b.data), []).append(b)

    # ------------------------------------------------------------ names and lines

    def fresh(self, hint: str) -> str:
        self.count += 1
        clean = "".join(c if c.isalnum() else "_" for c in hint)
        return f"{clean[:24]}_{self.count}"

    def name(self, node: Any, hint: str) -> str:
        found = self.names.get(id(node))
        if found is None:
            found = self.names[id(node)] = self.fresh(hint)
            self.keep.append(node)
        return found

    def constant(self, value: Any, hint: str) -> str:
        name = self.fresh(f"_c{hint}")
        self.env[name] = value
        return name

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def define(self, node: Any, hint: str) -> str:
        """The name of a variable that comes into scope here."""
        name = self.name(node, hint)
        if name not in self.scope:
            self.scope.append(name)
        return name

    def local(self, hint: str, text: str) -> str:
        name = self.fresh(hint)
        self.put(f"{name} = {text}")
        self.scope.append(name)
        return name

    def _wrap_function(self, body: list[str]) -> str:
        """Moves lines into a function of their own; gives its call."""
        name = self.fresh("_f")
        self.finished.append("\n".join([f"def {name}({', '.join(self.scope)}):", *body]))
        return f"{name}({', '.join(self.scope)})"

    # ------------------------------------------------------------ expressions

    def text(self, root: PrimExpr) -> str:
        """The source of an expression, built on an explicit stack."""
        done: dict[int, _Text] = {}
        stack: list[tuple[PrimExpr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if id(e) in done:
                continue
            if not ready:
                stack.append((e, True))
                if isinstance(e, tir.Let):
                    self.define(e.var, e.var.name)
                stack.extend((k, False) for k in kids(e) if id(k) not in done)  # type: ignore[misc]
                continue
            below = [done[id(k)] for k in kids(e)]
            t = self._one(e, [b.text for b in below])
            depth = 1 + max((b.depth for b in below), default=0)
            if depth > _MAX_PARENS:
                t, depth = self._wrap_function([f"    return {t}"]), 1
            done[id(e)] = _Text(t, depth)
        return done[id(root)].text

    def _one(self, e: Any, a: list[str]) -> str:
        rule = _EXPRS.get(type(e))
        if rule is not None:
            return rule(self, e, a)
        if isinstance(e, tir.BinaryExpr):
            return self._binary(e, a[0], a[1])
        raise UnsupportedOpError(f"the interpreter cannot evaluate a {type(e).__name__} (it must be lowered first)")

    def _binary(self, e: tir.BinaryExpr, a: str, b: str) -> str:
        t, cls = info(e.a.dtype), type(e)
        if cls in (tir.And, tir.Or):
            return f"({a} {'&' if cls is tir.And else '|'} {b})"
        if cls in (tir.Min, tir.Max):
            word = "min" if cls is tir.Min else "max"
            return f"_{word}({a}, {b})" if t.is_float or t.lanes > 1 else f"{word}({a}, {b})"
        if cls in (tir.Div, tir.Mod):
            raw = f"({a} / {b})" if t.is_float else f"_t{'div' if cls is tir.Div else 'mod'}({a}, {b})"
        else:
            raw = f"({a} {_INFIX[cls]} {b})"
        if t.kind in ("bfloat", "fp8") and not isinstance(e, tir.CmpExpr):
            return self._as(raw, e.dtype)
        return self._wrapped(raw, e) if cls in _WRAPS else raw

    def _wrapped(self, raw: str, e: PrimExpr) -> str:
        """Integer results brought to their width (index arithmetic, which does not overflow, is left alone)."""
        t = info(e.dtype)
        if t.lanes > 1 or t.kind not in ("int", "uint") or t.bits == 64 and t.kind == "int" and not self._is_data(e):
            return raw
        if t.kind == "uint":
            return f"({raw} & {(1 << t.bits) - 1})"
        half = 1 << t.bits - 1
        return f"(({raw} + {half} & {2 * half - 1}) - {half})"

    @staticmethod
    def _is_data(e: PrimExpr) -> bool:
        return contains(e, lambda n: isinstance(n, (BufferLoad, tir.Cast, tir.Call)))

    def _as(self, raw: str, dtype: str) -> str:
        t = info(dtype)
        new = numpy_dtype(t.scalar)
        return f"np.asarray({raw}).astype({self.constant(new, 'dt')}){'' if t.lanes > 1 else '[()]'}"

    def _const(self, e: Any, a: list[str]) -> str:
        if isinstance(e, IntImm):
            return str(bool(e.value)) if e.dtype == "bool" else f"({e.value})" if e.value < 0 else str(e.value)
        return self.constant(np.asarray(e.value, np.float64).astype(numpy_dtype(e.dtype))[()], "f")

    def _var(self, e: tir.Var, a: list[str]) -> str:
        name = self.name(e, e.name)
        if name not in self.scope:
            raise ArgumentError(f"variable {e.name!r} is used where it is not defined")
        return name

    def _cast(self, e: tir.Cast, a: list[str]) -> str:
        s, t = info(e.value.dtype), info(e.dtype)
        if t.lanes == 1 and s.is_integer and t.kind == "int" and t.bits == 64 and s.kind == "int":
            return a[0]
        return f"{self.constant(numeric.converter(e.value.dtype, e.dtype), 'cast')}({a[0]})"

    def _select(self, e: tir.Select, a: list[str]) -> str:
        return f"{'np.where' if info(e.condition.dtype).lanes > 1 else '_select'}({a[0]}, {a[1]}, {a[2]})"

    def _ramp(self, e: tir.Ramp, a: list[str]) -> str:
        steps = self.constant(np.arange(e.lanes, dtype=numpy_dtype(scalar_of(e.dtype))), "ramp")
        return f"({a[0]} + {a[1]} * {steps})"

    def _broadcast(self, e: tir.Broadcast, a: list[str]) -> str:
        return f"np.full({e.lanes}, {a[0]}, {self.constant(numpy_dtype(scalar_of(e.dtype)), 'dt')})"

    def _shuffle(self, e: tir.Shuffle, a: list[str]) -> str:
        joined = f"np.concatenate([{', '.join(f'np.atleast_1d({x})' for x in a)}])"
        picked = f"{joined}[{list(e.indices)}]"
        return picked if len(e.indices) > 1 else f"{picked}[0]"

    def _let(self, e: tir.Let, a: list[str]) -> str:
        return f"(({self.names[id(e.var)]} := {a[0]}), {a[1]})[1]"

    def _load(self, e: BufferLoad, a: list[str]) -> str:
        t = info(e.dtype)
        access = f"{self.buffer(e.buffer)}[{self._indices(e.buffer, e.indices, a)}]"
        if t.lanes > 1 or t.is_float:
            return access
        return f"bool({access})" if t.kind == "bool" else f"int({access})"

    def buffer(self, b: Buffer) -> str:
        name = self.name(b, b.name)
        if name not in self.scope:
            raise ArgumentError(f"buffer {b.name!r} is accessed where its memory is not defined")
        return name

    def _indices(self, b: Buffer, indices: Sequence[PrimExpr], a: list[str]) -> str:
        shape, mins = self.shapes[id(b)], self.mins.get(id(b))
        if len(a) != len(shape):
            raise TypeMismatchError(f"buffer {b.name!r} has {len(shape)} dimensions, but is accessed with {len(a)} indices")
        out = []
        for axis, (i, text) in enumerate(zip(indices, a)):
            if mins is not None and mins[axis] != "0":
                text = f"({text} - {mins[axis]})"
            if info(i.dtype).lanes > 1:
                out.append(f"_vec({b.name!r}, {axis}, {text}, {shape[axis]})")
            elif text.isdigit() and shape[axis].isdigit() and int(text) < int(shape[axis]):
                out.append(text)
            else:
                v = self.fresh("_i")
                out.append(f"{v} if 0 <= ({v} := {text}) < {shape[axis]} else _oob({b.name!r}, {axis}, {v}, {shape[axis]})")
        return ", ".join(out) if out else "()"

    def _call(self, e: tir.Call, a: list[str]) -> str:
        name = e.op.name.removeprefix("tir.") if isinstance(e.op, Op) else getattr(e.op, "name_hint", "?")
        rule = _CALLS.get(name)
        if rule is not None:
            return rule(self, e, a)
        fn = numeric.intrinsic(name, [x.dtype for x in e.args], e.dtype)
        return self._result(f"{self.constant(fn, name)}({', '.join(a)})", e)

    def _result(self, raw: str, e: PrimExpr) -> str:
        t = info(e.dtype)
        if t.is_float or t.lanes > 1:
            return self._as(raw, e.dtype)
        if t.kind == "bool":
            return f"bool({raw})"
        return self._wrapped(f"int({raw})", e) if t.kind != "handle" else raw

    # ------------------------------------------------------------ calls out of the language

    def _if_then_else(self, e: tir.Call, a: list[str]) -> str:
        return f"({a[1]} if {a[0]} else {a[2]})"

    def _extern(self, e: tir.Call, a: list[str]) -> str:
        symbol = e.args[0].value  # type: ignore[attr-defined]
        fn = self.externs.get(symbol)
        if fn is None:
            raise UnsupportedOpError(f"the interpreter does not know the C function {symbol!r}; pass it as externs={{{symbol!r}: function}}")
        return f"{self.constant(fn, symbol)}({', '.join(a[1:])})"

    def _llvm(self, e: tir.Call, a: list[str]) -> str:
        fn = numeric.llvm_intrinsic(e.args[0].value)  # type: ignore[attr-defined]
        return self._result(f"{self.constant(fn, 'llvm')}({', '.join(a[1:])})", e)

    def _packed(self, e: tir.Call, a: list[str]) -> str:
        symbol = e.args[0].value  # type: ignore[attr-defined]
        return f"{self.constant(_packed_caller(symbol, self.externs), 'packed')}({', '.join(a[1:])})"

    def _make_array(self, e: tir.Call, a: list[str]) -> str:
        return f"_view({a[0]}, {scalar_of(e.args[4].dtype)!r}, {a[1]}, {a[2] if a[2] != '0' else '()'}, {a[5]}, 'argument')"

    def _make_shape(self, e: tir.Call, a: list[str]) -> str:
        return f"({''.join(x + ', ' for x in a)})"

    def _address(self, e: tir.Call, a: list[str]) -> str:
        load = e.args[0]
        assert isinstance(load, BufferLoad)
        return f"{self.buffer(load.buffer)}.reshape(-1)[np.ravel_multi_index(({''.join(self.text(i) + ', ' for i in load.indices)}), " \
               f"{self.buffer(load.buffer)}.shape):]"

    def _access_ptr(self, e: tir.Call, a: list[str]) -> str:
        return f"{a[1]}.view({self.constant(numpy_dtype(scalar_of(e.args[0].dtype)), 'dt')})[{a[2]}:]"

    # ------------------------------------------------------------ statements

    def block(self, header: str) -> None:
        self.put(header)
        self.indent += 1

    def visit_SeqStmt(self, s: ts.SeqStmt) -> Any:
        yield from s.seq

    def visit_Evaluate(self, s: ts.Evaluate) -> None:
        if not isinstance(s.value, IntImm):
            self.put(self.text(s.value))

    def visit_BufferStore(self, s: ts.BufferStore) -> None:
        at = self._indices(s.buffer, s.indices, [self.text(i) for i in s.indices])
        self.put(f"{self.buffer(s.buffer)}[{at}] = {self.text(s.value)}")

    def _body(self, body: ts.Stmt) -> Any:
        """The lines of a nested body, in a function of its own when the nesting gets deep."""
        mark = len(self.scope)
        if self.nest >= _MAX_NEST:
            saved = self.lines, self.indent, self.nest
            self.lines, self.indent, self.nest = [], 1, 0
            scope = list(self.scope)
            yield body
            lines = self.lines or ["    pass"]
            self.lines, self.indent, self.nest = saved
            self.scope = scope
            self.put(self._wrap_function(lines))
        else:
            self.nest += 1
            size = len(self.lines)
            yield body
            if len(self.lines) == size:
                self.put("pass")
            self.nest -= 1
        del self.scope[mark:]

    def visit_For(self, s: ts.For) -> Any:
        low, extent = self.text(s.min), self.text(s.extent)
        mark = len(self.scope)
        v = self.define(s.loop_var, s.loop_var.name)
        self.block(f"for {v} in range({extent}):" if low == "0" else f"for {v} in range({low}, {low} + {extent}):")
        yield from self._body(s.body)
        self.indent -= 1
        del self.scope[mark:]

    def visit_While(self, s: ts.While) -> Any:
        self.block(f"while {self.text(s.condition)}:")
        yield from self._body(s.body)
        self.indent -= 1

    def visit_IfThenElse(self, s: ts.IfThenElse) -> Any:
        self.block(f"if {self.text(s.condition)}:")
        yield from self._body(s.then_case)
        self.indent -= 1
        if s.else_case is not None:
            self.block("else:")
            yield from self._body(s.else_case)
            self.indent -= 1

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.text(s.value)
        self.put(f"{self.define(s.var, s.var.name)} = {value}")
        if s.var.dtype == "handle":
            self._bind_views(s.var)
        yield s.body

    def visit_AssertStmt(self, s: ts.AssertStmt) -> Any:
        message = s.message.value if isinstance(s.message, tir.StringImm) else "condition does not hold"
        self.put(f"if not {self.text(s.condition)}: _failed({message!r})")
        yield s.body

    def visit_AttrStmt(self, s: ts.AttrStmt) -> Any:
        if s.attr_key in ("thread_extent", "virtual_thread"):
            v = s.node.var if isinstance(s.node, tir.IterVar) else s.node
            if self.names.get(id(v)) in self.scope:
                yield s.body
                return
            mark = len(self.scope)
            self.block(f"for {self.define(v, v.name)} in range({self.text(s.value)}):")
            yield from self._body(s.body)
            self.indent -= 1
            del self.scope[mark:]
        else:
            yield s.body

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        count = " * ".join(self.text(e) for e in s.extents) or "1"
        self.put(f"{self.define(s.buffer_var, s.buffer_var.name)} = _fresh({s.dtype!r}, {count})")
        self._bind_views(s.buffer_var)
        yield s.body

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        data = np.array(s.values()).reshape(-1)
        self.put(f"{self.define(s.buffer_var, s.buffer_var.name)} = {self.constant(data, 'data')}")
        self._bind_views(s.buffer_var)
        yield s.body

    def visit_DeclBuffer(self, s: ts.DeclBuffer) -> Any:
        if self.names.get(id(s.buffer)) not in self.scope:
            self.bind_view(s.buffer)
        yield s.body

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        mins = [self._local_or_const("m", r.min) for r in s.bounds]
        extents = [self._local_or_const("n", r.extent) for r in s.bounds]
        shape = f"({''.join(x + ', ' for x in extents)})"
        storage = self.define(s.buffer.data, s.buffer.data.name)
        self.put(f"{storage} = _fresh({s.buffer.dtype!r}, int(np.prod({shape}, dtype=np.int64)))")
        self.put(f"{self.define(s.buffer, s.buffer.name)} = _view({storage}, {s.buffer.dtype!r}, {shape}, (), 0, {s.buffer.name!r})")
        self.mins[id(s.buffer)], self.shapes[id(s.buffer)] = mins, extents
        yield s.body

    def _local_or_const(self, hint: str, e: PrimExpr) -> str:
        return str(e.value) if isinstance(e, IntImm) else self.local(f"_{hint}", self.text(e))

    def _bind_views(self, data: tir.Var) -> None:
        for b in self.views.get(id(data), ()):
            self.bind_view(b)

    def bind_view(self, b: Buffer) -> None:
        shape = [self._local_or_const("d", d) for d in b.shape]
        strides = "".join(self.text(x) + ", " for x in b.strides)
        self.shapes[id(b)] = shape
        data = self.name(b.data, b.data.name)
        dims = "".join(x + ", " for x in shape)
        self.put(f"{self.define(b, b.name)} = _view({data}, {b.dtype!r}, ({dims}), ({strides}), {self.text(b.elem_offset)}, {b.name!r})")

    # ------------------------------------------------------------ the whole function

    def compile(self) -> Callable[..., Any]:
        """The function, to be called with one storage (or scalar) per parameter and one value per shape variable."""
        f = self.func
        arguments = [self.define(b.data if b is not None else p, p.name) for p, b in zip(f.params, f.buffers)]
        arguments += [self.define(v, v.name) for v in shape_variables(f)]
        handles = {id(b.data if b is not None else p): (b.data if b is not None else p) for p, b in zip(f.params, f.buffers)}
        for v in handles.values():
            self._bind_views(v)
        self.visit(f.body)
        self.put("return None")
        source = "\n\n".join([*self.finished, "\n".join([f"def main({', '.join(arguments)}):", *self.lines])])
        exec(compile(source, f"<{f.get_attr('global_symbol', 'primfunc')}>", "exec"), self.env)
        return self.env["main"]


_EXPRS: dict[type, Callable[[_Compiler, Any, list[str]], str]] = {
    IntImm: _Compiler._const, FloatImm: _Compiler._const, tir.Var: _Compiler._var, tir.SizeVar: _Compiler._var,
    tir.StringImm: lambda c, e, a: repr(e.value), tir.Cast: _Compiler._cast, tir.Select: _Compiler._select, tir.Ramp: _Compiler._ramp,
    tir.Broadcast: _Compiler._broadcast, tir.Shuffle: _Compiler._shuffle, tir.Let: _Compiler._let, BufferLoad: _Compiler._load,
    tir.Call: _Compiler._call,
    tir.Not: lambda c, e, a: f"np.logical_not({a[0]})" if info(e.dtype).lanes > 1 else f"(not {a[0]})",
}
_CALLS: dict[str, Callable[[_Compiler, Any, list[str]], str]] = {
    "if_then_else": _Compiler._if_then_else, "call_extern": _Compiler._extern, "call_pure_extern": _Compiler._extern,
    "call_llvm_intrin": _Compiler._llvm, "call_llvm_pure_intrin": _Compiler._llvm, "tvm_call_packed": _Compiler._packed,
    "tvm_call_cpacked": _Compiler._packed, "tvm_stack_make_array": _Compiler._make_array, "tvm_stack_make_shape": _Compiler._make_shape,
    "address_of": _Compiler._address, "tvm_access_ptr": _Compiler._access_ptr, "type_annotation": lambda c, e, a: "None",
    "ret": lambda c, e, a: f"_return({a[0]})", "likely": lambda c, e, a: a[0], "prefetch": lambda c, e, a: "None",
    "isnullptr": lambda c, e, a: f"({a[0]} is None)",
}


def _packed_caller(symbol: str, externs: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Calls a registered function on arrays over the interpreter's memory, and copies back what it wrote."""
    def call(*args: Any) -> Any:
        if symbol in externs:
            return externs[symbol](*args)
        from ..runtime.ndarray import array
        from ..runtime.registry import get_global_func

        given = [array(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in args]
        result = get_global_func(symbol)(*given)  # type: ignore[misc]
        for a, g in zip(args, given):
            if isinstance(a, np.ndarray):
                a[...] = g.numpy()
        return result

    return call


# ---------------------------------------------------------------- arguments


def shape_variables(func: PrimFunc) -> list[tir.Var]:
    """The variables in shapes, strides and offsets of the parameters' buffers that are no parameters themselves."""
    known = {id(p) for p in func.params}
    found: dict[int, tir.Var] = {}
    for b in func.buffers:
        if b is not None:
            for e in (*b.shape, *b.strides, b.elem_offset):
                for v in post_order(e):
                    if isinstance(v, tir.Var) and id(v) not in known:
                        found.setdefault(id(v), v)
    return list(found.values())


def _bind_shapes(func: PrimFunc, arrays: Sequence[Any]) -> dict[int, int]:
    values: dict[int, int] = {}
    for p, b, a in zip(func.params, func.buffers, arrays):
        if b is None:
            continue
        _check_array(p.name, b, a)
        steps = [s // a.itemsize for s in a.strides]
        for e, v in [*zip(b.shape, a.shape), *zip(b.strides, steps), (b.elem_offset, 0)]:
            if isinstance(e, tir.Var):
                if values.setdefault(id(e), v) != v:
                    raise TypeMismatchError(f"argument {p.name!r}: {e.name} is {values[id(e)]} elsewhere, but {v} here (shape {a.shape})")
            elif isinstance(e, IntImm) and e.value != v:
                raise TypeMismatchError(f"argument {p.name!r}: expected shape {_dims(b.shape)}"
                                        f"{f' and strides {_dims(b.strides)}' if b.strides else ''}, got shape {a.shape}, strides {tuple(steps)}")
    return values


def _dims(shape: Sequence[PrimExpr]) -> tuple[Any, ...]:
    return tuple(d.value if isinstance(d, IntImm) else getattr(d, "name", "?") for d in shape)


def _check_array(name: str, b: Buffer, a: Any) -> None:
    t = info(b.dtype)
    if not isinstance(a, np.ndarray):
        raise TypeMismatchError(f"argument {name!r}: expected an array, got {type(a).__name__}")
    want = numpy_dtype(t.scalar)
    if a.dtype != want:
        raise TypeMismatchError(f"argument {name!r}: expected dtype {b.dtype}, got {a.dtype}")
    if a.ndim != len(b.shape) + (t.lanes > 1):
        raise TypeMismatchError(f"argument {name!r}: expected {len(b.shape)} dimensions {_dims(b.shape)}, got shape {a.shape}")


def _storage(b: Buffer, a: np.ndarray) -> np.ndarray:
    """The argument's memory as a flat array: the array itself when its layout is the buffer's, else a compact copy."""
    if b.strides:
        last = sum((d - 1) * s for d, s in zip(a.shape, a.strides)) // a.itemsize + 1 if a.size else 0
        return np.lib.stride_tricks.as_strided(a, (max(last, 0),), (a.itemsize,))
    return a.reshape(-1) if a.flags.c_contiguous else np.ascontiguousarray(a).reshape(-1)


_CACHE: "weakref.WeakKeyDictionary[PrimFunc, Callable[..., Any]]" = weakref.WeakKeyDictionary()


def compile_primfunc(func: PrimFunc, externs: Mapping[str, Callable[..., Any]] | None = None) -> Callable[..., Any]:
    """The Python function for a loop program (kept while the program lives, unless ``externs`` are given)."""
    from .transform.lower_blocks import lower_blocks

    if externs:
        return _Compiler(lower_blocks(func), externs).compile()
    found = _CACHE.get(func)
    if found is None:
        found = _CACHE[func] = _Compiler(lower_blocks(func), {}).compile()
    return found


def run_primfunc(func: PrimFunc, *arrays: Any, externs: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """Runs a loop program on numpy arrays (or runtime arrays; numbers for scalar parameters), writing results in place.

    Returns what the program returns, or None.  ``externs`` gives Python functions for C functions it calls.
    Raises OutOfBoundsError for an access outside of a buffer, TypeMismatchError for arguments that do not fit.
    """
    if len(arrays) != len(func.params):
        raise ArgumentError(f"expected {len(func.params)} arguments ({', '.join(p.name for p in func.params)}), got {len(arrays)}")
    given = [a.as_numpy_view() if hasattr(a, "as_numpy_view") else a for a in arrays]
    values = _bind_shapes(func, given)
    missing = [v.name for v in shape_variables(func) if id(v) not in values]
    if missing:
        raise ArgumentError(f"the arguments do not determine {', '.join(missing)}")
    call: list[Any] = [a if b is None else _storage(b, a) for b, a in zip(func.buffers, given)]
    main = compile_primfunc(func, externs)
    result = None
    with np.errstate(all="ignore"):
        try:
            main(*(_scalar(p, a) if b is None else a for p, b, a in zip(func.params, func.buffers, call)),
                 *(values[id(v)] for v in shape_variables(func)))
        except _Return as r:
            result = r.value
        except ZeroDivisionError as exc:
            raise ArgumentError("the loop program divides an integer by zero") from exc
    for b, a, storage in zip(func.buffers, given, call):
        if b is not None and not b.strides and not a.flags.c_contiguous:
            a[...] = storage.reshape(a.shape)
    return result


def _scalar(p: tir.Var, value: Any) -> Any:
    t = info(p.dtype)
    if t.kind == "handle":
        return value
    if t.is_float:
        return numpy_dtype(t.scalar).type(value)
    return bool(value) if t.kind == "bool" else int(value)


__all__ = ["compile_primfunc", "run_primfunc", "shape_variables"]
