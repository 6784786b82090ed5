"""Expressions to values.

A value is the text of an operand, or for 64-bit integers a :class:`Lin` (scalars) or :class:`VLin` (vectors), which is turned
into instructions only when something other than index arithmetic needs it.  Evaluation runs on an explicit stack.
"""
from __future__ import annotations

from functools import partial
from typing import Any, Callable, Union

from ....ir.expr import FloatImm, IntImm, PrimExpr
from ....ir.node import Node
from ....ir.op import Op
from ....support.errors import InternalError, UnsupportedOpError
from ....tir import expr as tir
from ....tir.buffer import BufferLoad
from ....tir.dtypes import info, lanes_of, with_lanes
from .arith import Arith
from .builder import FunctionBuilder
from .dot import DOTS, PACK, dot_product, loads_of
from .linear import Lin, VLin, combine_terms, lin_range, split_by, wrap_signed
from .memory import Memory
from .module_text import ModuleText
from .types import constant_text, llvm_type
from .usage import Usage

Value = Union[str, Lin, VLin]
_DIVISIONS = ("Div", "Mod", "FloorDiv", "FloorMod")
_FLIPPED = {"EQ": lambda lo, hi: True if lo == hi == 0 else False if lo > 0 or hi < 0 else None,
            "LT": lambda lo, hi: True if hi < 0 else False if lo >= 0 else None,
            "LE": lambda lo, hi: True if hi <= 0 else False if lo > 0 else None,
            "GT": lambda lo, hi: True if lo > 0 else False if hi <= 0 else None,
            "GE": lambda lo, hi: True if lo >= 0 else False if hi < 0 else None}
_INFINITE = 1 << 80


class Expressions(Memory):
    """Evaluates expressions in the function ``builder`` writes; ``env`` maps ``id`` of a variable to its value."""

    def __init__(self, module: ModuleText, builder: FunctionBuilder, usage: Usage) -> None:
        self.module, self.b, self.usage = module, builder, usage
        self.ar = Arith(builder, module.cpu)
        self.env: dict[int, Value] = {}
        self.wide: dict[str, Lin] = {}
        self.memo: dict[int, Value] = {}
        self._log: list[int] = []
        Memory.__init__(self)

    # -- forms of values

    def text(self, value: Value) -> str:
        """A value as an operand."""
        if isinstance(value, str):
            return value
        if isinstance(value, Lin):
            return self.b.index(value)
        return self._vector_index(value)

    def lin(self, value: Value) -> Lin:
        """A 64-bit integer value in linear form."""
        if isinstance(value, Lin):
            return value
        if isinstance(value, VLin):
            raise InternalError("a vector was used where a scalar index is expected")
        return Lin(0, ((value, 1),)) if value.startswith("%") else Lin(int(value))

    def _vector_index(self, value: VLin) -> str:
        dtype = with_lanes("int64", value.lanes)
        base = self.ar.splat(self.text(value.base), "int64", value.lanes)
        if value.stride == 0:
            return base
        steps = ", ".join(f"i64 {step}" for step in value.steps())
        return base_plus(self.ar, dtype, base, f"<{steps}>")

    # -- the evaluator

    def start_statement(self) -> None:
        """Forgets the values of the last statement's expressions: memory may have changed."""
        self.memo.clear()
        self._log.clear()

    def evaluate(self, root: PrimExpr) -> Value:
        """The value of an expression."""
        quick = self._affine_value(root)
        if quick is not None:
            return quick
        memo, stack = self.memo, [root]
        while stack:
            node: Any = stack[-1]
            if isinstance(node, partial):
                stack.pop()
                node(stack)
                continue
            if id(node) in memo:
                stack.pop()
                continue
            first = self._first_needed(node)
            if isinstance(first, list):
                stack.pop()
                stack.extend(first)
                continue
            todo = [c for c in first if id(c) not in memo]
            if todo:
                stack.extend(reversed(todo))
                continue
            stack.pop()
            self._set(node, self._combine(node))
        return memo[id(root)]

    def operand(self, root: PrimExpr) -> str:
        """The value of an expression as an operand."""
        return self.text(self.evaluate(root))

    def _set(self, node: Node, value: Value) -> None:
        self.memo[id(node)] = value
        self._log.append(id(node))

    def _get(self, node: Node) -> Value:
        return self.memo[id(node)]

    def _operand_of(self, node: Node) -> str:
        return self.text(self.memo[id(node)])

    def _affine_value(self, node: PrimExpr) -> Value | None:
        """The quick way for indices: constants and multiples of variables, added up."""
        if node.dtype != "int64":
            ramp = type(node) is tir.Ramp and type(node.stride) is IntImm and node.base.dtype == "int64"
            base = self._affine_value(node.base) if ramp else None
            return None if base is None else VLin(self.lin(base), node.stride.value, node.lanes)
        parts = self.usage.affine(node)
        if parts is None:
            return None
        const, terms = parts[0], []
        for var, coefficient in parts[1]:
            value = self.env.get(id(var))
            if value is None:
                raise self._unbound(var)
            if type(value) is not Lin:
                value = self.lin(value)
            const += coefficient * value.const
            if value.terms:
                terms.append((value.terms, coefficient))
        return Lin(wrap_signed(const), combine_terms(terms))

    def _unbound(self, var: tir.Var) -> InternalError:
        return InternalError(f"variable {var.name} ({var.dtype}) is used in {self.module.name} where it has no value")

    # -- what must be evaluated first; a list instead replaces the node by further steps

    def _first_needed(self, node: Node) -> Any:
        if isinstance(node, (tir.Var, IntImm)):
            return ()
        if isinstance(node, tir.Let):
            return [partial(self._alias, node, node.body), node.body, partial(self._bind_let, node), node.value]
        if isinstance(node, (tir.And, tir.Or)) and node.dtype == "bool" and self._has_load(node.b):
            yes = isinstance(node, tir.And)
            return self._branch_steps(node, node.a, node.b if yes else "true", "false" if yes else node.b)
        if isinstance(node, tir.Call):
            return self._first_of_call(node)
        if isinstance(node, BufferLoad):
            return () if len(node.indices) == 1 and self._is_affine_index(node.indices[0]) else node.indices
        return tuple(node.children())

    def _first_of_call(self, node: tir.Call) -> Any:
        name = node.op.name if isinstance(node.op, Op) else ""
        if name == "tir.if_then_else":
            return self._branch_steps(node, *node.args)
        if name == "tir.address_of" and isinstance(node.args[0], BufferLoad):
            return node.args[0].indices
        if name == PACK:
            loads, _ = loads_of(node)
            return tuple(i for load in loads for i in load.indices if not self._is_affine_index(i)) if loads else node.args
        return node.args

    def _is_affine_index(self, index: PrimExpr) -> bool:
        if type(index) is tir.Ramp:
            return type(index.stride) is IntImm and index.base.dtype == "int64" and self.usage.affine(index.base) is not None
        return index.dtype == "int64" and self.usage.affine(index) is not None

    def _has_load(self, root: PrimExpr) -> bool:
        from ....ir.visit import post_order

        from .usage import operands

        return any(isinstance(n, BufferLoad) for n in post_order(root, operands))

    def _alias(self, node: Node, source: Node, stack: list[Any]) -> None:
        self._set(node, self._get(source))

    def _bind_let(self, node: tir.Let, stack: list[Any]) -> None:
        self.env[id(node.var)] = self._get(node.value)

    # -- conditional evaluation

    def _branch_steps(self, node: Node, condition: PrimExpr, yes: Any, no: Any) -> list[Any]:
        return [partial(self._after_condition, node, condition, yes, no), condition]

    def _after_condition(self, node: Node, condition: PrimExpr, yes: Any, no: Any, stack: list[Any]) -> None:
        test = self._operand_of(condition)
        if test in ("true", "false"):
            self._take(node, yes if test == "true" else no, stack)
            return
        state = _Branching(test, self.b.block, len(self._log))
        stack.append(partial(self._join, node, state))
        for side in (no, yes):
            stack.append(partial(self._close_side, side, state))
            if not isinstance(side, str):
                stack.append(side)
            stack.append(partial(self._open_side, state))

    def _take(self, node: Node, side: Any, stack: list[Any]) -> None:
        if isinstance(side, str):
            self._set(node, side)
        else:
            stack.extend((partial(self._alias, node, side), side))

    def _open_side(self, state: _Branching, stack: list[Any]) -> None:
        block = self.b.new_block("side")
        state.starts.append(block)
        self.b.open_scope(block, True)

    def _close_side(self, side: Any, state: _Branching, stack: list[Any]) -> None:
        value = side if isinstance(side, str) else self._operand_of(side)
        state.ends.append((value, self.b.close_scope()))
        for key in self._log[state.mark:]:
            self.memo.pop(key, None)
        del self._log[state.mark:]

    def _join(self, node: Node, state: _Branching, stack: list[Any]) -> None:
        join = self.b.new_block("join")
        yes, no = state.starts
        self.b.terminate(state.origin, f"br i1 {state.test}, label %{yes.label}, label %{no.label}")
        for _, end in state.ends:
            self.b.terminate(end, f"br label %{join.label}")
        self.b.continue_in(join)
        sources = ", ".join(f"[ {value}, %{end.label} ]" for value, end in state.ends)
        self._set(node, self.b.define(f"phi {llvm_type(node.dtype)} {sources}"))  # type: ignore[attr-defined]

    # -- combining evaluated operands

    def _combine(self, node: Any) -> Value:
        method = _METHODS.get(type(node))
        if method is None:
            raise UnsupportedOpError(f"{self.module.name}: expression {type(node).__name__} cannot be compiled for the processor")
        return method(self, node)

    def _var(self, node: tir.Var) -> Value:
        value = self.env.get(id(node))
        if value is None:
            value = self.pointers.get(id(node))
            if value is None:
                raise self._unbound(node)
        return value

    def _int(self, node: IntImm) -> Value:
        return Lin(node.value) if node.dtype == "int64" else constant_text(node.value, node.dtype)

    def _float(self, node: FloatImm) -> Value:
        return constant_text(node.value, node.dtype)

    def _string(self, node: tir.StringImm) -> Value:
        return self.module.string(node.value)

    def _sum(self, node: tir.Add) -> Value:
        """A sum; a dot product that starts at 0 is added up by its own instruction."""
        for dot, other in ((node.b, node.a), (node.a, node.b)):
            signed = DOTS.get(dot.op.name) if isinstance(dot, tir.Call) and isinstance(dot.op, Op) else None
            if signed is not None and _starts_at_zero(dot):
                return dot_product(self, signed, node.dtype, *(self._operand_of(a) for a in dot.args[:2]), self._operand_of(other))
        return self._binary(node)

    def _binary(self, node: tir.BinaryExpr) -> Value:
        name, dtype = type(node).__name__, node.dtype
        a, b = self._get(node.a), self._get(node.b)
        if dtype == "int64":
            return self._index_binary(name, self.lin(a), self.lin(b))
        if isinstance(a, VLin) and isinstance(b, VLin):
            found = self._vector_index_binary(name, a, b)
            if found is not None:
                return found
        return self.ar.binary(name, dtype, self.text(a), self.text(b))

    def _vector_index_binary(self, name: str, a: VLin, b: VLin) -> VLin | None:
        if name in ("Add", "Sub"):
            sign = 1 if name == "Add" else -1
            if a.stride and b.stride and a.repeat != b.repeat:
                return None
            return VLin(a.base.add(b.base, sign), a.stride + sign * b.stride, a.lanes, a.repeat if a.stride else b.repeat)
        if name == "Mul":
            a, b = (b, a) if a.stride == 0 and a.base.is_const else (a, b)
            if b.stride == 0 and b.base.is_const:
                return VLin(a.base.scaled(b.base.const), a.stride * b.base.const, a.lanes, a.repeat)
        if name in ("FloorDiv", "Div") and b.stride == 0 and b.base.is_const:
            least = self.b.range_of(a.base)[0]
            if name == "FloorDiv" or least is not None and least >= 0:
                return a.divided(b.base.const)
        return None

    def _index_binary(self, name: str, a: Lin, b: Lin) -> Value:
        if name == "Add":
            return a.add(b)
        if name == "Sub":
            return a.add(b, -1)
        if name == "Mul":
            if a.is_const or b.is_const:
                return b.scaled(a.const) if a.is_const else a.scaled(b.const)
            x, y = self.text(a), self.text(b)
            return self._ranged(self.b.op(f"mul i64 {x}, {y}", x, y, cheap=True), _product_range(self.b.range_of(a), self.b.range_of(b)))
        if name in _DIVISIONS:
            return self._index_division(name, a, b)
        return self._index_extreme(name, a, b)

    def _ranged(self, name: str, bounds: tuple[int | None, int | None]) -> Lin:
        if name.startswith("%") and bounds != (None, None):
            self.b.ranges.setdefault(name, bounds)
        return self.lin(name)

    def _index_extreme(self, name: str, a: Lin, b: Lin) -> Value:
        low, high = self.b.range_of(a.add(b, -1))
        if low is not None and low >= 0:
            return a if name == "Max" else b
        if high is not None and high <= 0:
            return b if name == "Max" else a
        value = self.ar.binary(name, "int64", self.text(a), self.text(b))
        return self._ranged(value, _extreme_range(name, self.b.range_of(a), self.b.range_of(b)))

    def _index_division(self, name: str, a: Lin, b: Lin) -> Value:
        if a.is_const and b.is_const:
            return Lin(_divide(name, a.const, b.const))
        if not b.is_const or b.const <= 0:
            low_a, low_b = self.b.range_of(a)[0], self.b.range_of(b)[0]
            known = low_a is not None and low_b is not None and low_a >= 0 and low_b >= 0
            return self.lin(self.ar.divide(name, "int64", self.text(a), self.text(b), known))
        divisor = b.const
        whole, rest = split_by(a, divisor)
        low, high = self.b.range_of(rest)
        least = self.b.range_of(a)[0]
        floor = name in ("FloorDiv", "FloorMod") or least is not None and least >= 0
        if floor and low is not None and high is not None and low // divisor == high // divisor:
            return self._exact_division(name, whole, rest, low // divisor, divisor)
        return self._real_division(name, a, divisor)

    def _exact_division(self, name: str, whole: Lin, rest: Lin, carry: int, divisor: int) -> Lin:
        """What is not a multiple stays within one step of the divisor, so no instruction is needed."""
        if name in ("Div", "FloorDiv"):
            return whole.add(Lin(carry))
        return rest.add(Lin(-carry * divisor))

    def _real_division(self, name: str, a: Lin, divisor: int) -> Lin:
        low, high = self.b.range_of(a)
        positive = low is not None and low >= 0
        value = self.ar.divide(name, "int64", self.text(a), str(divisor), positive)
        if name in ("Mod", "FloorMod"):
            return self._ranged(value, (0 if positive or name == "FloorMod" else 1 - divisor, divisor - 1))
        bounds = (None if low is None else low // divisor, None if high is None else -(-high // divisor))
        return self._ranged(value, bounds)

    def _compare(self, node: tir.CmpExpr) -> Value:
        name, dtype = type(node).__name__, node.a.dtype
        a, b = self._get(node.a), self._get(node.b)
        if dtype == "int64":
            decided = self._decide(name, self.lin(a).add(self.lin(b), -1))
            if decided is not None:
                return "true" if decided else "false"
        return self.ar.compare(name, dtype, self.text(a), self.text(b))

    def _decide(self, name: str, difference: Lin) -> bool | None:
        low, high = lin_range(difference, self.b.ranges)
        bounds = (-_INFINITE if low is None else low, _INFINITE if high is None else high)
        if name == "NE":
            found = _FLIPPED["EQ"](*bounds)
            return None if found is None else not found
        return _FLIPPED[name](*bounds)

    def _logical(self, node: tir.LogicalExpr) -> Value:
        a, b = self._operand_of(node.a), self._operand_of(node.b)
        neutral, absorbing = ("true", "false") if isinstance(node, tir.And) else ("false", "true")
        if absorbing in (a, b):
            return absorbing
        if neutral in (a, b):
            return b if a == neutral else a
        return self.ar.op(f"{'and' if isinstance(node, tir.And) else 'or'} {llvm_type(node.dtype)} {a}, {b}", a, b)

    def _not(self, node: tir.Not) -> Value:
        a = self._operand_of(node.a)
        if a in ("true", "false"):
            return "false" if a == "true" else "true"
        return self.ar.op(f"xor {llvm_type(node.dtype)} {a}, {constant_text(1, node.dtype)}", a)

    def _select(self, node: tir.Select) -> Value:
        condition = self._operand_of(node.condition)
        if condition in ("true", "false"):
            return self._get(node.true_value if condition == "true" else node.false_value)
        lanes = lanes_of(node.condition.dtype)
        a, b = self._get(node.true_value), self._get(node.false_value)
        value = self.ar.select(condition, node.dtype, self.text(a), self.text(b), lanes)
        if node.dtype != "int64":
            return value
        return self._ranged(value, _hull(self.b.range_of(self.lin(a)), self.b.range_of(self.lin(b))))

    def _cast(self, node: tir.Cast) -> Value:
        source, value = node.value.dtype, self._get(node.value)
        if source == node.dtype:
            return value
        if node.dtype == "int64" and isinstance(value, str) and value in self.wide:
            return self.wide[value]
        if isinstance(value, Lin) and value.is_const and not info(node.dtype).kind == "handle":
            return constant_text(value.const, node.dtype)
        cast = self.ar.cast_bounded if info(source).is_float and _within_int32(node.value) else self.ar.cast
        result = cast(self.text(value), source, node.dtype)
        if isinstance(value, Lin) and node.dtype == "int32" and self._fits_int32(value):
            self.wide[result] = value
        return result

    def _fits_int32(self, value: Lin) -> bool:
        low, high = self.b.range_of(value)
        return low is not None and high is not None and -(1 << 31) <= low and high < 1 << 31

    def _ramp(self, node: tir.Ramp) -> Value:
        base, stride = self._get(node.base), self._get(node.stride)
        if node.base.dtype == "int64":
            step = self.lin(stride)
            if step.is_const:
                return VLin(self.lin(base), step.const, node.lanes)
        steps = [constant_text(i, node.base.dtype) for i in range(node.lanes)]
        scalar = llvm_type(node.base.dtype)
        numbers = "<" + ", ".join(f"{scalar} {s}" for s in steps) + ">"
        stride_vector = self.ar.splat(self.text(stride), node.base.dtype, node.lanes)
        scaled = self.ar.binary("Mul", node.dtype, stride_vector, numbers)
        return self.ar.binary("Add", node.dtype, self.ar.splat(self.text(base), node.base.dtype, node.lanes), scaled)

    def _broadcast(self, node: tir.Broadcast) -> Value:
        value = self._get(node.value)
        if node.value.dtype == "int64":
            return VLin(self.lin(value), 0, node.lanes)
        return self.ar.splat(self.text(value), node.value.dtype, node.lanes)

    def _shuffle(self, node: tir.Shuffle) -> Value:
        lanes: list[str] = []
        for vector in node.vectors:
            value, count = self._operand_of(vector), lanes_of(vector.dtype)
            lanes.extend([value] if count == 1 else [self.ar.lane(value, vector.dtype, i) for i in range(count)])
        picked = [lanes[i] for i in node.indices]
        return picked[0] if len(picked) == 1 else self.ar.from_lanes(picked, node.dtype)

    def _load(self, node: BufferLoad) -> Value:
        index = self._buffer_index(node.buffer, node.indices, [self._index_value(i) for i in node.indices])
        if isinstance(index, str):
            return self.load_lanes(node.buffer, index, lanes_of(node.dtype))
        value = self.load_element(node.buffer, index)
        return self.lin(value) if node.dtype == "int64" else value

    def _index_value(self, index: PrimExpr) -> Value:
        found = self.memo.get(id(index))
        if found is not None:
            return found
        quick = self._affine_value(index)
        if quick is None:
            raise InternalError("an index was not evaluated before its load")
        return quick

    def _buffer_index(self, buffer: Any, indices: Any, values: list[Value]) -> Value:
        """The position of an element in memory, in elements."""
        values = [self.lin(v) if isinstance(v, str) and not _is_vector(i) else v for v, i in zip(values, indices)]
        if len(values) == 1 and not buffer.strides:
            index = values[0]
        else:
            index = self._strided_index(buffer, values)
        if isinstance(buffer.elem_offset, IntImm) and buffer.elem_offset.value == 0:
            return index
        offset = self.lin(self.evaluate(buffer.elem_offset))
        return self._index_sum(index, offset)

    def _index_sum(self, index: Value, offset: Lin) -> Value:
        if isinstance(index, VLin):
            return VLin(index.base.add(offset), index.stride, index.lanes, index.repeat)
        if isinstance(index, Lin):
            return index.add(offset)
        raise UnsupportedOpError(f"{self.module.name}: an index computed lane by lane needs a flat buffer without offset")

    def _strided_index(self, buffer: Any, values: list[Value]) -> Value:
        total: Value = Lin(0)
        for value, stride in zip(values, self._strides(buffer)):
            if isinstance(value, VLin):
                if not stride.is_const:
                    raise UnsupportedOpError(f"{self.module.name}: a vector access to {buffer.name} across a stride not known when compiling")
                base = self.lin(total) if not isinstance(total, VLin) else total.base
                total = VLin(base.add(value.base, stride.const), value.stride * stride.const, value.lanes, value.repeat)
            elif isinstance(total, VLin):
                total = VLin(total.base.add(self._times(self.lin(value), stride)), total.stride, total.lanes, total.repeat)
            else:
                total = self.lin(total).add(self._times(self.lin(value), stride))
        return total

    def _times(self, a: Lin, b: Lin) -> Lin:
        return self.lin(self._index_binary("Mul", a, b))

    def _strides(self, buffer: Any) -> list[Lin]:
        if buffer.strides:
            return [self.lin(self.evaluate(s)) for s in buffer.strides]
        result, step = [], Lin(1)
        for extent in reversed(buffer.shape):
            result.append(step)
            step = self._times(step, self.lin(self.evaluate(extent)))
        return result[::-1]

    def _call(self, node: tir.Call) -> Value:
        from .intrinsics import emit_call

        value = emit_call(self, node)
        return self.lin(value) if node.dtype == "int64" and isinstance(value, str) and value else value


class _Branching:
    """A conditional expression while its sides are emitted."""

    __slots__ = ("test", "origin", "mark", "starts", "ends")

    def __init__(self, test: str, origin: Any, mark: int) -> None:
        self.test, self.origin, self.mark = test, origin, mark
        self.starts: list[Any] = []
        self.ends: list[tuple[str, Any]] = []


def _within_int32(value: PrimExpr) -> bool:
    """Whether a float is NaN or between bounds that int32 holds: the form that clipping has."""
    bounds: dict[type, float] = {}
    while isinstance(value, tir.Select) and isinstance(value.condition, (tir.LT, tir.GT)) and value.condition.a is value.false_value:
        bound, limit = (v.value if isinstance(v, tir.Broadcast) else v for v in (value.true_value, value.condition.b))
        if not isinstance(bound, FloatImm) or not isinstance(limit, FloatImm) or bound.value != limit.value:
            break
        bounds.setdefault(type(value.condition), bound.value)
        value = value.false_value
    return -(1 << 31) <= bounds.get(tir.LT, float("-inf")) and bounds.get(tir.GT, float("inf")) <= 2147483520


def _starts_at_zero(dot: tir.Call) -> bool:
    start = dot.args[2].value if isinstance(dot.args[2], tir.Broadcast) else dot.args[2]
    return isinstance(start, IntImm) and start.value == 0


def _is_vector(index: PrimExpr) -> bool:
    return lanes_of(index.dtype) > 1


def base_plus(ar: Arith, dtype: str, base: str, steps: str) -> str:
    """base + constant steps, lane by lane."""
    return ar.op(f"add {llvm_type(dtype)} {base}, {steps}", base)


def _divide(name: str, a: int, b: int) -> int:
    """Integer division as the emitted code does it: by zero, 0."""
    if b == 0:
        return 0
    if name in ("FloorDiv", "FloorMod"):
        return a // b if name == "FloorDiv" else a % b
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if name == "Div" else a - quotient * b


def _product_range(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    if None in a or None in b:
        known = a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0
        return (a[0] * b[0], None) if known else (None, None)  # type: ignore[operator]
    ends = [x * y for x in a for y in b]  # type: ignore[operator]
    return min(ends), max(ends)


def _extreme_range(name: str, a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    lows, highs = [x for x in (a[0], b[0]) if x is not None], [x for x in (a[1], b[1]) if x is not None]
    if name == "Max":
        return (max(lows) if lows else None), (max(highs) if len(highs) == 2 else None)
    return (min(lows) if len(lows) == 2 else None), (min(highs) if highs else None)


def _hull(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


_METHODS: dict[type, Callable[[Expressions, Any], Value]] = {
    tir.Var: Expressions._var, tir.SizeVar: Expressions._var, IntImm: Expressions._int, FloatImm: Expressions._float,
    tir.StringImm: Expressions._string, tir.Not: Expressions._not, tir.Select: Expressions._select, tir.Cast: Expressions._cast,
    tir.Ramp: Expressions._ramp, tir.Broadcast: Expressions._broadcast, tir.Shuffle: Expressions._shuffle, BufferLoad: Expressions._load,
    tir.Call: Expressions._call, tir.Add: Expressions._sum, tir.And: Expressions._logical, tir.Or: Expressions._logical,
    **{c: Expressions._binary for c in (tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max)},
    **{c: Expressions._compare for c in (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)},
}
