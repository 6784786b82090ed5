"""Expressions to C text, by one table from node class to method.

Methods are generators run by ``trampoline`` (``value = yield self.value(child)``), so that nesting costs no Python stack.  A
sub-expression that is used more than once, and is more than a name, becomes a ``const`` local in the block being written.
"""
from __future__ import annotations

from typing import Any, Callable, Generator

from ....ir.expr import FloatImm, IntImm, PrimExpr
from ....ir.visit import post_order, trampoline
from ....support.errors import InternalError, UnsupportedOpError
from ....support.names import NameSupply
from ....tir import expr as tir
from ....tir.buffer import BufferLoad
from ....tir.dtypes import info, int_range, lanes_of, scalar_of
from .helpers import short
from .types import NARROW_FLOATS, computed_dtype, float_text, identifier, needs_math, storage_type, value_type
from .values import (CONDITIONAL, EQUALITY, LAND, LOR, PRIMARY, PRODUCT, RELATION, SUM, UNARY, Value, cast_text, fits, integer, interval)

Steps = Generator[Any, Any, Value]
_SYMBOL = {"Add": ("+", SUM), "Sub": ("-", SUM), "Mul": ("*", PRODUCT), "Div": ("/", PRODUCT)}
_COMPARE = {"EQ": ("==", EQUALITY), "NE": ("!=", EQUALITY), "LT": ("<", RELATION), "LE": ("<=", RELATION), "GT": (">", RELATION), "GE": (">=", RELATION)}
_HEAVY = 24  # the length from which a text used twice is worth a local
_LONG = 400  # the length from which any text is: lines stay readable, and building them stays linear


def operands(node: Any) -> Any:
    """The expressions inside an expression (not the buffers it names)."""
    if isinstance(node, BufferLoad):
        return node.indices
    return node.args if isinstance(node, tir.Call) else node.children()


class Pointer:
    """Where a buffer's memory is: a C name of a dtype; ``scalar`` when it is a plain variable."""

    __slots__ = ("name", "dtype", "scalar", "written")

    def __init__(self, name: str, dtype: str, scalar: bool = False) -> None:
        self.name, self.dtype, self.scalar, self.written = name, dtype, scalar, False


class Expressions:
    """Evaluates expressions of one function; ``lines`` is the block being written."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.names = NameSupply()
        self.env: dict[int, Value] = {}
        self.pointers: dict[int, Pointer] = {}
        self.helpers: set[str] = set()
        self.uses_math = False
        self.externs: dict[str, str] = {}
        self.lines: list[str] = []
        self.indent = 1
        self.lane: Value | None = None
        self._memo: dict[int, Value] = {}
        self._uses: dict[int, int] = {}

    # -- the way in

    def evaluate(self, root: PrimExpr) -> Value:
        """An expression's value; locals it needs are written to the current block."""
        self._memo, self._uses = {}, {}
        for node in post_order(root, operands):
            for child in operands(node):
                self._uses[id(child)] = self._uses.get(id(child), 0) + 1
        return trampoline(self.value(root))

    def emit(self, text: str) -> None:
        """A line of the current block."""
        self.lines.append("    " * self.indent + text)

    def fresh(self, hint: str) -> str:
        """A C identifier not used in this function."""
        return self.names.fresh(identifier(hint))

    def helper(self, name: str) -> str:
        """Notes that the helper is used."""
        self.helpers.add(name)
        return name

    def value(self, node: Any) -> Steps:
        """The value of a node, evaluated once."""
        found = self._memo.get(id(node))
        if found is not None:
            return found
        method = _METHODS.get(type(node))
        if method is None:
            raise UnsupportedOpError(f"{self.symbol}: expression {type(node).__name__} has no C form; lower it first")
        result = yield method(self, node)
        if len(result.text) >= (_HEAVY if self._uses.get(id(node), 0) > 1 else _LONG):
            result = self._local(result)
        self._memo[id(node)] = result
        return result

    def _local(self, value: Value) -> Value:
        if value.ctype in ("handle", "void"):
            return value
        name = self.fresh("t")
        self.emit(f"const {value_type(value.ctype)} {name} = {self.converted(value, value.ctype).text};")
        return value._replace(text=name, binds=PRIMARY)

    def converted(self, value: Value, dtype: str) -> Value:
        """The value as one of the C type of ``dtype``, ready to be stored: truth becomes 0 or 1."""
        if dtype == "bool":
            return value._replace(text=f"(uint8_t){value.at(UNARY)}", binds=UNARY)
        return cast_text(value, dtype)

    # -- leaves

    def _var(self, node: tir.Var) -> Steps:
        yield from ()
        found = self.env.get(id(node))
        if found is None:
            pointer = self.pointers.get(id(node))
            if pointer is None:
                raise InternalError(f"{self.symbol}: variable {node.name} has no value here")
            return Value(pointer.name, PRIMARY, "handle")
        return found

    def _int(self, node: IntImm) -> Steps:
        yield from ()
        return integer(node.value, node.dtype)

    def float_constant(self, value: float, dtype: str) -> Value:
        """A floating-point constant."""
        computed = computed_dtype(dtype)
        text = float_text(value, computed)
        self.uses_math |= needs_math(text)
        return Value(text, PRIMARY, computed)

    def _float(self, node: FloatImm) -> Steps:
        yield from ()
        return self.float_constant(node.value, scalar_of(node.dtype))

    def _string(self, node: tir.StringImm) -> Steps:
        yield from ()
        return Value('"' + node.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"', PRIMARY, "handle")

    # -- arithmetic

    def _binary(self, node: tir.BinaryExpr) -> Steps:
        a = yield self.value(node.a)
        b = yield self.value(node.b)
        if isinstance(node, (tir.Max, tir.Min)) and any(isinstance(x, FloatImm) and x.value == x.value for x in (node.a, node.b)):
            return self._limited(node, a, b)
        return self.arithmetic(type(node).__name__, scalar_of(node.dtype), a, b)

    def _limited(self, node: tir.BinaryExpr, a: Value, b: Value) -> Value:
        """A maximum or minimum with a constant, which is no NaN: one comparison keeps a NaN on the other side."""
        x, limit = (b, a) if isinstance(node.a, FloatImm) else (a, b)
        computed = computed_dtype(node.dtype)
        helper = self.helper(f"al_{'at_least' if isinstance(node, tir.Max) else 'at_most'}_{short(computed)}")
        return self.rounded(Value(f"{helper}({x.text}, {limit.text})", PRIMARY, computed), scalar_of(node.dtype))

    def arithmetic(self, name: str, dtype: str, a: Value, b: Value) -> Value:
        """Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min or Max of values of ``dtype``."""
        if info(dtype).is_float:
            return self._float_arithmetic(name, dtype, a, b)
        if dtype == "bool":
            return self._bool_arithmetic(name, a, b)
        if name in ("Add", "Sub", "Mul"):
            return self._ring(name, dtype, a, b)
        if name in ("Min", "Max"):
            return self._extreme(name, dtype, a, b)
        return self._division(name, dtype, a, b)

    def _float_arithmetic(self, name: str, dtype: str, a: Value, b: Value) -> Value:
        computed = computed_dtype(dtype)
        if name in _SYMBOL:
            symbol, level = _SYMBOL[name]
            result = Value(f"{a.at(level)} {symbol} {b.at(level + 1)}", level, computed)
        elif name in ("Min", "Max"):
            return Value(f"{self.helper(f'al_{name.lower()}_{short(computed)}')}({a.text}, {b.text})", PRIMARY, computed)
        elif name == "FloorDiv":
            result = self.math("floor", computed, self._float_arithmetic("Div", computed, a, b))
        elif name == "FloorMod":
            result = Value(f"{self.helper(f'al_floormod_{short(computed)}')}({a.text}, {b.text})", PRIMARY, computed)
        else:
            result = self.math("fmod", computed, a, b)
        return self.rounded(result, dtype)

    def math(self, function: str, dtype: str, *args: Value) -> Value:
        """A call of ``<math.h>`` in ``dtype`` (float32 or float64)."""
        self.uses_math = True
        return Value(f"{function}{'' if dtype == 'float64' else 'f'}({', '.join(a.text for a in args)})", PRIMARY, dtype)

    def rounded(self, value: Value, dtype: str) -> Value:
        """A value computed wider, rounded to the precision of a narrow float type."""
        if dtype not in NARROW_FLOATS:
            return value
        return Value(f"{self.helper(f'al_round_{NARROW_FLOATS[dtype][1]}')}({value.text})", PRIMARY, "float32")

    def _bool_arithmetic(self, name: str, a: Value, b: Value) -> Value:
        if name in ("Add", "Max"):
            return Value(f"{a.at(EQUALITY)} || {b.at(EQUALITY)}", LOR, "bool", 0, 1)
        if name in ("Mul", "Min"):
            return Value(f"{a.at(EQUALITY)} && {b.at(EQUALITY)}", LAND, "bool", 0, 1)
        if name == "Sub":
            return Value(f"{a.at(RELATION + 1)} != {b.at(RELATION + 1)}", EQUALITY, "bool", 0, 1)
        return self._division(name, "uint8", a, b)

    def _ring(self, name: str, dtype: str, a: Value, b: Value) -> Value:
        """+, - or *: written plainly when it can't overflow, else in unsigned arithmetic, which wraps."""
        low, high = interval(name, a.bounds(dtype), b.bounds(dtype))
        if a.constant is not None and b.constant is not None and fits(low, high, dtype):
            return integer(low, dtype)
        folded = _neutral(name, a, b)
        if folded is not None:
            return folded
        symbol, level = _SYMBOL[name]
        if fits(low, high, dtype):
            for ctype in ("int32", "int64"):
                if fits(low, high, ctype) and (ctype == "int64" or a.is_int and b.is_int):
                    x, y = (a, b) if ctype == "int32" else (self.wide(a), self.wide(b))
                    return Value(f"{x.at(level)} {symbol} {y.at(level + 1)}", level, ctype, low, high)
        unsigned = "uint64" if info(dtype).bits == 64 else "uint32"
        x, y = cast_text(a, unsigned), cast_text(b, unsigned)
        return cast_text(Value(f"{x.at(level)} {symbol} {y.at(level + 1)}", level, unsigned), dtype)

    def wide(self, value: Value) -> Value:
        """As a 64-bit signed value, unless C widens it without help."""
        return cast_text(value, "int64")

    def _common(self, dtype: str, a: Value, b: Value) -> tuple[Value, Value, str]:
        """Both in one C type: int when both fit it, else that of ``dtype``."""
        if a.is_int and b.is_int:
            return a, b, "int32"
        return cast_text(a, dtype), cast_text(b, dtype), dtype

    def _extreme(self, name: str, dtype: str, a: Value, b: Value) -> Value:
        (al, ah), (bl, bh) = a.bounds(dtype), b.bounds(dtype)
        if al >= bh or bl >= ah:
            return a if (al >= bh) == (name == "Max") else b
        pick = max if name == "Max" else min
        x, y, ctype = self._common(dtype, a, b)
        return Value(f"{self.helper(f'al_{name.lower()}_{short(ctype)}')}({x.text}, {y.text})", PRIMARY, ctype, pick(al, bl), pick(ah, bh))

    def _division(self, name: str, dtype: str, a: Value, b: Value) -> Value:
        (al, ah), (bl, bh) = a.bounds(dtype), b.bounds(dtype)
        quotient = name in ("Div", "FloorDiv")
        if bl > 0 and al >= 0:
            return self._plain_division(quotient, dtype, a, b, (al, ah), (bl, bh))
        x, y, ctype = self._common(dtype, a, b)
        low, high = int_range(dtype) if quotient else (-max(abs(bl), abs(bh)), max(abs(bl), abs(bh)))
        if name == "FloorMod" and bl > 0:
            low, high = 0, bh - 1
        elif bl > 0 and quotient:
            low, high = min(al // bl, al // bh), max(ah // bl, ah // bh)
        verb = {"Div": "div", "Mod": "mod", "FloorDiv": "floordiv", "FloorMod": "floormod"}[name]
        if info(ctype).kind == "uint":
            verb = verb.removeprefix("floor")
        low, high = max(low, int_range(dtype)[0]), min(high, int_range(dtype)[1])
        result = Value(f"{self.helper(f'al_{verb}_{short(ctype)}')}({x.text}, {y.text})", PRIMARY, ctype, low, high)
        return result if fits(*int_range(ctype), dtype) or ctype == dtype else cast_text(result, dtype)

    def _plain_division(self, quotient: bool, dtype: str, a: Value, b: Value, ra: tuple[int, int], rb: tuple[int, int]) -> Value:
        """Nothing is negative or zero: C's division is every division."""
        if not quotient and ra[1] < rb[0]:
            return a
        low, high = (ra[0] // rb[1], ra[1] // rb[0]) if quotient else (0, min(ra[1], rb[1] - 1))
        if low == high:
            return integer(low, dtype)
        x, y, ctype = self._common(dtype, a, b)
        return Value(f"{x.at(PRODUCT)} {'/' if quotient else '%'} {y.at(PRODUCT + 1)}", PRODUCT, ctype, low, high)

    # -- truth

    def _compare(self, node: tir.CmpExpr) -> Steps:
        name, dtype = type(node).__name__, scalar_of(node.a.dtype)
        left, right = _without_offset(node.a, node.b, dtype)
        a = yield self.value(left)
        b = yield self.value(right)
        if info(dtype).is_integer:
            decided = _decide(name, a.bounds(dtype), b.bounds(dtype))
            if decided is not None:
                return integer(int(decided), "bool")
            a, b, _ = self._common(dtype, a, b)
        symbol, level = _COMPARE[name]
        return Value(f"{a.at(RELATION + 1)} {symbol} {b.at(RELATION + 1)}", level, "bool", 0, 1)  # compilers warn of comparisons of comparisons

    def _not(self, node: tir.Not) -> Steps:
        a = yield self.value(node.a)
        return integer(1 - a.constant, "bool") if a.constant is not None else Value(f"!{a.at(PRIMARY)}", UNARY, "bool", 0, 1)

    def _logical(self, node: tir.LogicalExpr) -> Steps:
        """The right side is evaluated only when the left one leaves it open."""
        a = yield self.value(node.a)
        is_and = isinstance(node, tir.And)
        if a.constant is not None:
            return (yield self.value(node.b)) if bool(a.constant) == is_and else a
        b, lines = yield self._aside(node.b)
        if b.constant is not None and not lines:
            return a if bool(b.constant) == is_and else b
        if not lines:
            return Value(f"{a.at(RELATION - 1)} {'&&' if is_and else '||'} {b.at(RELATION - 1)}", LAND if is_and else LOR, "bool", 0, 1)
        name = self.fresh("c")
        self.emit(f"uint8_t {name} = {self.converted(a, 'bool').text};")
        self.emit(f"if ({name if is_and else '!' + name}) {{")
        self.lines.extend(lines)
        self.emit(f"    {name} = {self.converted(b, 'bool').text};")
        self.emit("}")
        return Value(name, PRIMARY, "bool", 0, 1)

    def _aside(self, node: Any) -> Generator[Any, Any, tuple[Value, list[str]]]:
        """A value evaluated into lines of its own; what was remembered meanwhile is forgotten, as those lines may not run."""
        lines, memo = self.lines, self._memo
        self.lines, self._memo, self.indent = [], dict(memo), self.indent + 1
        value = yield self.value(node)
        written, self.lines, self._memo, self.indent = self.lines, lines, memo, self.indent - 1
        return value, written

    def _select(self, node: tir.Select) -> Steps:
        condition = yield self.value(node.condition)
        a = yield self.value(node.true_value)
        b = yield self.value(node.false_value)
        if condition.constant is not None:
            return a if condition.constant else b
        return self.choice(condition, scalar_of(node.dtype), a, b)

    def choice(self, condition: Value, dtype: str, a: Value, b: Value) -> Value:
        """``condition ? a : b``"""
        low = high = None
        ctype = a.ctype
        if info(dtype).is_integer:
            (al, ah), (bl, bh) = a.bounds(dtype), b.bounds(dtype)
            low, high = min(al, bl), max(ah, bh)
            a, b, ctype = self._common(dtype, a, b) if dtype != "bool" else (a, b, "bool")
        return Value(f"{condition.at(LOR)} ? {a.at(LOR)} : {b.at(LOR)}", CONDITIONAL, ctype, low, high)

    def conditional(self, node: tir.Call) -> Steps:
        """``tir.if_then_else``: only the side taken is evaluated."""
        condition = yield self.value(node.args[0])
        if condition.constant is not None:
            return (yield self.value(node.args[1 if condition.constant else 2]))
        a, a_lines = yield self._aside(node.args[1])
        b, b_lines = yield self._aside(node.args[2])
        merged = self.choice(condition, scalar_of(node.dtype), a, b)
        if not a_lines and not b_lines:
            return merged
        name = self.fresh("v")
        self.emit(f"{value_type(merged.ctype)} {name};")
        for head, lines, value in ((f"if ({condition.text}) {{", a_lines, a), ("} else {", b_lines, b)):
            self.emit(head)
            self.lines.extend(lines)
            self.emit(f"    {name} = {self.converted(value, merged.ctype).text};")
        self.emit("}")
        return merged._replace(text=name, binds=PRIMARY)

    # -- conversion

    def _cast(self, node: tir.Cast) -> Steps:
        value = yield self.value(node.value)
        return self.cast(value, scalar_of(node.value.dtype), scalar_of(node.dtype))

    def cast(self, value: Value, source: str, target: str) -> Value:
        """``value`` of TIR type ``source`` as ``target``."""
        s, t = info(source), info(target)
        if source == target or "handle" in (s.kind, t.kind):
            return value if source == target else Value(f"({storage_type(target)}){value.at(UNARY)}", UNARY, target)
        if t.kind == "bool":
            zero = self.float_constant(0.0, source) if s.is_float else integer(0, source)
            return value if value.ctype == "bool" else Value(f"{value.at(RELATION + 1)} != {zero.text}", EQUALITY, "bool", 0, 1)
        if t.is_float:
            if not s.is_float and value.constant is not None and abs(value.constant) <= 1 << 24:
                return self.float_constant(float(value.constant), target)
            return self.rounded(cast_text(value, computed_dtype(target)), target)
        return self._to_integer(value, source, target) if s.is_float else self._integer_cast(value, source, target)

    def _integer_cast(self, value: Value, source: str, target: str) -> Value:
        low, high = value.bounds(source)
        if fits(low, high, target):
            plain = value.is_int or value.ctype == target
            return value._replace(low=low, high=high) if plain else cast_text(value._replace(low=low, high=high), target)
        return cast_text(value._replace(low=None, high=None), target)

    def _to_integer(self, value: Value, source: str, target: str) -> Value:
        t, wide = info(target), computed_dtype(source)
        middle = target if t.bits == 64 else "int64" if target == "uint32" else "int32"
        call = Value(f"{self.helper(f'al_{short(wide)}_to_{short(middle)}')}({value.text})", PRIMARY, middle)
        return call if middle == target else cast_text(call, target)

    # -- vectors, one lane at a time

    def _ramp(self, node: tir.Ramp) -> Steps:
        base = yield self.value(node.base)
        stride = yield self.value(node.stride)
        dtype = node.base.dtype
        return self.arithmetic("Add", dtype, base, self.arithmetic("Mul", dtype, self._lane(), stride))

    def _lane(self) -> Value:
        if self.lane is None:
            raise InternalError(f"{self.symbol}: a vector is used where a scalar is expected")
        return self.lane

    def _broadcast(self, node: tir.Broadcast) -> Steps:
        return (yield self.value(node.value))

    def _shuffle(self, node: tir.Shuffle) -> Steps:
        if len(node.vectors) != len(node.indices) or any(lanes_of(v.dtype) > 1 for v in node.vectors):
            raise UnsupportedOpError(f"{self.symbol}: a shuffle of vectors has no C form: build without vectorisation")
        result = yield self.value(node.vectors[node.indices[-1]])
        for position in range(len(node.indices) - 2, -1, -1):
            one = yield self.value(node.vectors[node.indices[position]])
            test = Value(f"{self._lane().at(EQUALITY + 1)} == {position}", EQUALITY, "bool", 0, 1)
            result = self.choice(test, scalar_of(node.dtype), one, result)
        return result

    def _let(self, node: tir.Let) -> Steps:
        value = yield self.value(node.value)
        if len(value.text) >= _HEAVY:
            value = self._local(value)
        self.env[id(node.var)] = value
        return (yield self.value(node.body))

    # -- memory

    def pointer(self, data: tir.Var) -> Pointer:
        """The memory behind a data variable."""
        found = self.pointers.get(id(data))
        if found is None:
            raise InternalError(f"{self.symbol}: the buffer behind {data.name} has no memory here")
        return found

    def place(self, buffer: Any, indices: list[Value]) -> str:
        """An element as something C can read or assign."""
        pointer = self.pointer(buffer.data)
        index = self.flat_index(buffer, indices)
        if pointer.scalar and pointer.dtype == scalar_of(buffer.dtype):
            return pointer.name
        base = pointer.name if not pointer.scalar else f"&{pointer.name}"
        if pointer.dtype != scalar_of(buffer.dtype):
            base = f"(({storage_type(buffer.dtype)}*)(void*){base})"
        return f"{base}[{index.text}]"

    def flat_index(self, buffer: Any, indices: list[Value]) -> Value:
        """The position of an element."""
        offset = buffer.elem_offset
        if len(indices) != 1 or buffer.strides and not _unit_stride(buffer) or not isinstance(offset, IntImm):
            raise UnsupportedOpError(f"{self.symbol}: buffer {buffer.name} is accessed with strides or an offset known at run time only, "
                                     "which C kernels do not take")
        if offset.value == 0:
            return indices[0]
        return self.arithmetic("Add", "int64", indices[0], integer(offset.value, "int64"))

    def _load(self, node: BufferLoad) -> Steps:
        indices = []
        for index in node.indices:
            indices.append((yield self.value(index)))
        text, dtype = self.place(node.buffer, indices), scalar_of(node.buffer.dtype)
        if dtype in NARROW_FLOATS:
            return Value(f"{self.helper(f'al_{NARROW_FLOATS[dtype][1]}_to_f32')}({text})", PRIMARY, "float32")
        if not info(dtype).is_integer:
            return Value(text, PRIMARY, dtype)
        low, high = (0, 1) if dtype == "bool" else int_range(dtype)
        return Value(text, PRIMARY, dtype, low, high)

    def stored(self, value: Value, dtype: str) -> str:
        """What is assigned to an element of ``dtype``."""
        if dtype in NARROW_FLOATS:
            return f"{self.helper(f'al_f32_to_{NARROW_FLOATS[dtype][1]}')}({value.text})"
        t = info(dtype)
        if t.kind in ("int", "uint") and value.is_int and t.bits >= 32 and not (t.kind == "uint" and value.ctype != "uint32"):
            return value.text
        return self.converted(value, dtype).text

    def address(self, buffer: Any, indices: list[Value]) -> str:
        """The address of an element."""
        return f"&{self.place(buffer, indices)}"

    def _call(self, node: tir.Call) -> Steps:
        from .intrinsics import emit_call

        return emit_call(self, node)


def _unit_stride(buffer: Any) -> bool:
    return len(buffer.strides) == 1 and isinstance(buffer.strides[0], IntImm) and buffer.strides[0].value == 1


def _neutral(name: str, a: Value, b: Value) -> Value | None:
    """x + 0, x - 0, x * 1 and x * 0."""
    zero, one = 0, 1
    if name in ("Add", "Sub") and b.constant == zero:
        return a
    if name == "Add" and a.constant == zero:
        return b
    if name == "Mul":
        if b.constant == one or a.constant == zero:
            return a
        if a.constant == one or b.constant == zero:
            return b
    return None


def _without_offset(a: Any, b: Any, dtype: str) -> tuple[Any, Any]:
    """``x + 3 < 5`` as ``x < 2``: the sum might need a wider type."""
    if not isinstance(a, (tir.Add, tir.Sub)) or not isinstance(a.b, IntImm) or not isinstance(b, IntImm) or info(dtype).kind != "int":
        return a, b
    moved = b.value - a.b.value if isinstance(a, tir.Add) else b.value + a.b.value
    return (a.a, IntImm(b.dtype, moved)) if fits(moved, moved, dtype) else (a, b)


def _decide(name: str, a: tuple[int, int], b: tuple[int, int]) -> bool | None:
    """The outcome of a comparison that the bounds decide."""
    if name in ("GT", "GE"):
        return _decide("LT" if name == "GT" else "LE", b, a)
    if name == "LT":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if name == "LE":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if a == b and a[0] == a[1]:
        return name == "EQ"
    apart = a[1] < b[0] or b[1] < a[0]
    return name == "NE" if apart else None


_METHODS: dict[type, Callable[[Expressions, Any], Steps]] = {
    tir.Var: Expressions._var, tir.SizeVar: Expressions._var, IntImm: Expressions._int, FloatImm: Expressions._float,
    tir.StringImm: Expressions._string, tir.Cast: Expressions._cast, tir.Not: Expressions._not, tir.And: Expressions._logical,
    tir.Or: Expressions._logical, tir.Select: Expressions._select, tir.Ramp: Expressions._ramp, tir.Broadcast: Expressions._broadcast,
    tir.Shuffle: Expressions._shuffle, tir.Let: Expressions._let, BufferLoad: Expressions._load, tir.Call: Expressions._call,
    **{c: Expressions._binary for c in (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max)},
    **{c: Expressions._compare for c in (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)},
}
