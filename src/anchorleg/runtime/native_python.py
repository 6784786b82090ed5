"""Native code from a small part of Python: functions over 64-bit integers and raw memory.

The hot loops of the runtime are written in this part of the language, so that they can be read and reviewed as what they
are, and are compiled by LLVM once per machine (the object code is kept in the persistent cache)::

    def fill(p, count, value):
        i = 0
        while i < count:
            st(p + 8 * i, value)
            i += 1

Every value is a signed 64-bit integer; pointers are addresses.  There are ``if``/``while``/``break``/``continue``/
``return``, ``for i in range(n)`` (or ``range(first, n)``), assignments, comparisons, ``and``/``or``/``not``, the arithmetic
below, calls of functions in the same text, constants (upper-case module variables) and these:

==================================  ==============================================================================
``ld(p)``, ``ld4``, ``ld2``, ``ld1``  load 8 bytes, or 4, 2, 1 bytes with the sign (``ldu4``, ``ldu2``, ``ldu1``: without)
``ldf8(p)``, ``ldf4(p)``            load a float and round it toward zero
``st(p, v)``, ``st4``, ``st2``, ``st1``  store
``icall2(f, a, b)`` …               call the address ``f`` with so many arguments; its result is a C ``int``
``stack(n)``                        the address of ``n`` words that live until the function returns (``n`` a constant)
``log2(v)``                         the position of the highest bit that is set, of a positive number
``dispatch(TABLE, key, a, b)``      calls the function that a table ``TABLE = {KEY: function, …, None: function for other keys}``
                                    has for the key, with the arguments that follow; 0 for a key that has none
``malloc``, ``free``, ``memcpy``, ``memset``, ``aligned(n)``   as in C; ``aligned`` gives memory on a 128-byte border, or 0
==================================  ==============================================================================

``//`` and ``%`` round toward zero, as machines do.  A function with the decorator ``@inline`` becomes part of its callers, so
that small functions cost nothing; a table's functions are meant to have it.
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..support.errors import InternalError

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem", ast.BitAnd: "and", ast.BitOr: "or",
           ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr"}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}
_LOADS = {"ld": (64, ""), "ld4": (32, "sext"), "ld2": (16, "sext"), "ld1": (8, "sext"), "ldu4": (32, "zext"), "ldu2": (16, "zext"),
          "ldu1": (8, "zext")}
_STORES = {"st": 64, "st4": 32, "st2": 16, "st1": 8}

PRELUDE = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)

define internal i64 @np_aligned(i64 %n) noinline {
  %slot = alloca ptr
  store ptr null, ptr %slot
  %r = call i32 @posix_memalign(ptr %slot, i64 128, i64 %n)
  %p = load ptr, ptr %slot
  %v = ptrtoint ptr %p to i64
  %ok = icmp eq i32 %r, 0
  %out = select i1 %ok, i64 %v, i64 0
  ret i64 %out
}
"""


class _Program:
    """What a text defines: functions, constants, and tables from keys to names of functions."""

    def __init__(self, source: str, constants: dict[str, int] | None = None) -> None:
        self.constants: dict[str, int] = dict(constants or {})
        self.functions: dict[str, ast.FunctionDef] = {}
        self.tables: dict[str, dict[int | None, str]] = {}
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
                self._name(node.targets[0].id, node.value)

    def _name(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Dict):
            self.tables[name] = {None if _is_none(k) else self._fold(k): v.id for k, v in zip(value.keys, value.values)}  # type: ignore[arg-type, attr-defined]
        else:
            self.constants[name] = self._fold(value)

    def _fold(self, value: ast.expr) -> int:
        return int(eval(compile(ast.Expression(value), "<constant>", "eval"), {"__builtins__": {}}, self.constants))  # noqa: S307

    def check_call(self, name: str, count: int, where: str) -> None:
        """Raises InternalError unless there is such a function with so many parameters."""
        if name not in self.functions:
            raise InternalError(f"{where}: no function {name!r}")
        wanted = len(self.functions[name].args.args)
        if count != wanted:
            raise InternalError(f"{where}: {name} takes {wanted} arguments, got {count}")


def _is_none(e: ast.expr | None) -> bool:
    return isinstance(e, ast.Constant) and e.value is None


class _Function:
    """One function being translated."""

    def __init__(self, node: ast.FunctionDef, program: _Program, exported: bool) -> None:
        self.node, self.program, self.exported = node, program, exported
        self.inlined = any(isinstance(d, ast.Name) and d.id == "inline" for d in node.decorator_list)
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        self.allocas: list[str] = []
        self.names = {a.arg for a in node.args.args}
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.names.add(each.id)
        self.ended = False

    # -- text

    def fresh(self) -> str:
        """A new value name."""
        self.count += 1
        return f"%t{self.count}"

    def label(self, what: str) -> str:
        """A new block name."""
        self.count += 1
        return f"{what}{self.count}"

    def line(self, text: str) -> None:
        """Appends an instruction, unless the block has ended."""
        if not self.ended:
            self.lines.append(f"  {text}")

    def define(self, text: str) -> str:
        """Appends an instruction with a result."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def jump(self, label: str) -> None:
        """Ends the block."""
        self.line(f"br label %{label}")
        self.ended = True

    def start(self, label: str) -> None:
        """Begins a block; the one before goes on to it."""
        if not self.ended:
            self.line(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.ended = False

    def text(self) -> str:
        """The function in LLVM's language."""
        params = [a.arg for a in self.node.args.args]
        self.block(self.node.body)
        if not self.ended:
            self.line("ret i64 0")
        linkage, kind = "" if self.exported else "internal ", " alwaysinline" if self.inlined else ""
        head = f"define {linkage}i64 @np_{self.node.name}({', '.join(f'i64 %arg.{p}' for p in params)}){kind} {{"
        entry = ["entry:", *(f"  %v.{n} = alloca i64" for n in sorted(self.names)), *self.allocas,
                 *(f"  store i64 %arg.{p}, ptr %v.{p}" for p in params)]
        return "\n".join([head, *entry, *self.lines, "}"])

    # -- statements

    def block(self, body: list[ast.stmt]) -> None:
        """A list of statements."""
        for stmt in body:
            if not self.ended:
                self.statement(stmt)

    def statement(self, s: ast.stmt) -> None:
        """One statement."""
        if isinstance(s, ast.Assign):
            self.assign(s.targets[0], self.value(s.value))
        elif isinstance(s, ast.AugAssign):
            self.assign(s.target, self.binary(s.op, self.value(_as_load(s.target)), self.value(s.value)))
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):
                self.value(s.value)
        elif isinstance(s, ast.Return):
            self.line(f"ret i64 {self.value(s.value) if s.value is not None else 0}")
            self.ended = True
        elif isinstance(s, ast.If):
            self.if_(s)
        elif isinstance(s, ast.While):
            self.while_(s)
        elif isinstance(s, ast.For):
            self.for_(s)
        elif isinstance(s, (ast.Break, ast.Continue)):
            self.jump(self.loops[-1][isinstance(s, ast.Break)])
        elif not isinstance(s, ast.Pass):
            raise InternalError(f"{self.where(s)}: {type(s).__name__} is not in the language")

    def where(self, node: Any) -> str:
        """A place, for messages."""
        return f"native function {self.node.name}, line {node.lineno}"

    def assign(self, target: ast.expr, value: str) -> None:
        """Stores into a variable."""
        self.line(f"store i64 {value}, ptr %v.{target.id}")  # type: ignore[attr-defined]

    def if_(self, s: ast.If) -> None:
        """Two branches."""
        yes, no, after = self.label("then"), self.label("else"), self.label("after")
        self.branch(s.test, yes, no if s.orelse else after)
        self.start_cold(yes)
        self.block(s.body)
        if not self.ended:
            self.jump(after)
        if s.orelse:
            self.start_cold(no)
            self.block(s.orelse)
            if not self.ended:
                self.jump(after)
        self.start_cold(after)

    def start_cold(self, label: str) -> None:
        """Begins a block that is only jumped to."""
        self.lines.append(f"{label}:")
        self.ended = False

    def while_(self, s: ast.While) -> None:
        """A loop."""
        head, body, after = self.label("loop"), self.label("body"), self.label("done")
        self.start(head)
        if isinstance(s.test, ast.Constant) and s.test.value:
            self.jump(body)
        else:
            self.branch(s.test, body, after)
        self.start_cold(body)
        self.loops.append((head, after))
        self.block(s.body)
        self.loops.pop()
        if not self.ended:
            self.jump(head)
        self.start_cold(after)

    def for_(self, s: ast.For) -> None:
        """A loop over a range; its bounds are evaluated once."""
        if not (isinstance(s.target, ast.Name) and isinstance(s.iter, ast.Call) and _name_of(s.iter.func) == "range" and len(s.iter.args) in (1, 2)):
            raise InternalError(f"{self.where(s)}: a for loop goes over range(n) or range(first, n)")
        first, end = ["0", *(self.value(a) for a in s.iter.args)][-2:]
        head, body, following, after = self.label("loop"), self.label("body"), self.label("next"), self.label("done")
        self.assign(s.target, first)
        self.start(head)
        at = self.define(f"load i64, ptr %v.{s.target.id}")
        self.line(f"br i1 {self.define(f'icmp slt i64 {at}, {end}')}, label %{body}, label %{after}")
        self.start_cold(body)
        self.loops.append((following, after))
        self.block(s.body)
        self.loops.pop()
        self.start(following)
        self.assign(s.target, self.define(f"add i64 {self.define(f'load i64, ptr %v.{s.target.id}')}, 1"))
        self.jump(head)
        self.start_cold(after)

    # -- conditions

    def branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Goes to ``yes`` or ``no``."""
        if isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                next_ = self.label("and" if isinstance(test.op, ast.And) else "or")
                if isinstance(test.op, ast.And):
                    self.branch(part, next_, no)
                else:
                    self.branch(part, yes, next_)
                self.start_cold(next_)
            self.branch(test.values[-1], yes, no)
            return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, no, yes)
            return
        self.line(f"br i1 {self.condition(test)}, label %{yes}, label %{no}")
        self.ended = True

    def condition(self, test: ast.expr) -> str:
        """A truth value."""
        if isinstance(test, ast.Compare):
            a, b = self.value(test.left), self.value(test.comparators[0])
            return self.define(f"icmp {_COMPARE[type(test.ops[0])]} i64 {a}, {b}")
        return self.define(f"icmp ne i64 {self.value(test)}, 0")

    # -- values

    def value(self, e: ast.expr) -> str:
        """The text of a value."""
        if isinstance(e, ast.Constant):
            return str(int(e.value))  # type: ignore[arg-type]
        if isinstance(e, ast.Name):
            if e.id in self.names:
                return self.define(f"load i64, ptr %v.{e.id}")
            if e.id in self.program.constants:
                return str(self.program.constants[e.id])
            raise InternalError(f"{self.where(e)}: {e.id!r} is not known")
        if isinstance(e, ast.BinOp):
            return self.binary(e.op, self.value(e.left), self.value(e.right))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self.define(f"sub i64 0, {self.value(e.operand)}")
        if isinstance(e, ast.Compare):
            return self.define(f"zext i1 {self.condition(e)} to i64")
        if isinstance(e, ast.Call):
            return self.call(e)
        raise InternalError(f"{self.where(e)}: {type(e).__name__} is not in the language")

    def binary(self, op: ast.operator, a: str, b: str) -> str:
        """Arithmetic."""
        return self.define(f"{_BINARY[type(op)]} i64 {a}, {b}")

    def pointer(self, address: str) -> str:
        """An address as LLVM's pointer."""
        return self.define(f"inttoptr i64 {address} to ptr")

    def call(self, e: ast.Call) -> str:
        """A call of a function of the text or of the language."""
        name = e.func.id  # type: ignore[attr-defined]
        if name == "stack":
            place = self.fresh()
            self.allocas.append(f"  {place}.a = alloca [{self.value(e.args[0])} x i64], align 16")
            return self.define(f"ptrtoint ptr {place}.a to i64")
        if name == "dispatch":
            return self.dispatch(e)
        args = [self.value(a) for a in e.args]
        return self.call_of(name, args, e) if name in self.program.functions else self.builtin(name, args, e)

    def call_of(self, name: str, args: list[str], e: ast.Call) -> str:
        """A call of a function of the text."""
        self.program.check_call(name, len(args), self.where(e))
        return self.define(f"call i64 @np_{name}({', '.join(f'i64 {a}' for a in args)})")

    def dispatch(self, e: ast.Call) -> str:
        """A call of the function that a table has for a key."""
        table = self.program.tables.get(_name_of(e.args[0]))
        if table is None:
            raise InternalError(f"{self.where(e)}: dispatch's first argument is the name of a table")
        key, *args = [self.value(a) for a in e.args[1:]]
        slot, after = self.fresh(), self.label("dispatched")
        self.allocas.append(f"  {slot} = alloca i64")
        cases = [(k, name, self.label("case")) for k, name in table.items() if k is not None]
        otherwise = self.label("otherwise")
        self.line(f"switch i64 {key}, label %{otherwise} [{' '.join(f'i64 {k}, label %{label}' for k, _, label in cases)}]")
        for name, label in [*((name, label) for _, name, label in cases), (table.get(None), otherwise)]:
            self.start_cold(label)
            self.line(f"store i64 {self.call_of(name, args, e) if name else 0}, ptr {slot}")
            self.jump(after)
        self.start_cold(after)
        return self.define(f"load i64, ptr {slot}")

    def builtin(self, name: str, args: list[str], e: ast.Call) -> str:
        """The functions of the language."""
        if name in _LOADS:
            bits, extend = _LOADS[name]
            loaded = self.define(f"load i{bits}, ptr {self.pointer(args[0])}, align {bits // 8}")
            return loaded if bits == 64 else self.define(f"{extend} i{bits} {loaded} to i64")
        if name in _STORES:
            bits = _STORES[name]
            value = args[1] if bits == 64 else self.define(f"trunc i64 {args[1]} to i{bits}")
            self.line(f"store i{bits} {value}, ptr {self.pointer(args[0])}, align {bits // 8}")
            return "0"
        if name.startswith("icall"):
            result = self.define(f"call i32 {self.pointer(args[0])}({', '.join(f'i64 {a}' for a in args[1:])})")
            return self.define(f"sext i32 {result} to i64")
        if name not in _BUILTINS:
            raise InternalError(f"{self.where(e)}: no function {name!r}")
        return _BUILTINS[name](self, *args)

    def load_float(self, kind: str, address: str) -> str:
        """A float in memory as an integer."""
        return self.define(f"fptosi {kind} {self.define(f'load {kind}, ptr {self.pointer(address)}')} to i64")

    def log2(self, value: str) -> str:
        """The position of the highest bit that is set."""
        return self.define(f"sub i64 63, {self.define(f'call i64 @llvm.ctlz.i64(i64 {value}, i1 true)')}")

    def malloc(self, size: str) -> str:
        """Memory as C gives it."""
        return self.define(f"ptrtoint ptr {self.define(f'call ptr @malloc(i64 {size})')} to i64")

    def aligned(self, size: str) -> str:
        """Memory on a 128-byte border."""
        return self.define(f"call i64 @np_aligned(i64 {size})")

    def free(self, address: str) -> str:
        """Gives memory back."""
        self.line(f"call void @free(ptr {self.pointer(address)})")
        return "0"

    def memcpy(self, to: str, source: str, size: str) -> str:
        """Copies bytes; the places may overlap."""
        self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {self.pointer(to)}, ptr {self.pointer(source)}, i64 {size}, i1 false)")
        return "0"

    def memset(self, to: str, value: str, size: str) -> str:
        """Fills bytes."""
        byte = self.define(f"trunc i64 {value} to i8")
        self.line(f"call void @llvm.memset.p0.i64(ptr {self.pointer(to)}, i8 {byte}, i64 {size}, i1 false)")
        return "0"


_BUILTINS: dict[str, Callable[..., str]] = {
    "ldf8": lambda f, a: f.load_float("double", a), "ldf4": lambda f, a: f.load_float("float", a), "log2": _Function.log2,
    "malloc": _Function.malloc, "aligned": _Function.aligned, "free": _Function.free, "memcpy": _Function.memcpy, "memset": _Function.memset,
}


def _name_of(e: ast.expr) -> str:
    return e.id if isinstance(e, ast.Name) else ""


def _as_load(target: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)  # type: ignore[attr-defined]


def translate(source: str, exported: list[str], constants: dict[str, int] | None = None) -> str:
    """LLVM text of the functions in ``source``; those in ``exported`` are visible as ``np_<name>``.

    Raises InternalError, with the line, for what is not in the language.
    """
    program = _Program(source, constants)
    return "\n\n".join([PRELUDE, *(_Function(d, program, d.name in exported).text() for d in program.functions.values())])


def constants_of(source: str, constants: dict[str, int] | None = None) -> dict[str, int]:
    """The constants that a text defines, and those it is given."""
    return _Program(source, constants).constants


def compile_native(source: str, exported: list[str], constants: dict[str, int] | None = None) -> bytes:
    """Object code for the host, from the persistent cache when it has been made before."""
    from ..support.cache import key_of, open_cache
    from . import llvm

    text = translate(source, exported, constants)
    cache = open_cache("runtime")
    key = key_of("native-python-2", ".".join(map(str, llvm.binding().llvm_version_info)), llvm.host_triple(), text) if cache is not None else ""
    code = cache.get(key) if cache is not None else None
    if code is None:
        code = _optimised(text)
        if cache is not None:
            cache.put(key, code)
    return code


def _optimised(text: str) -> bytes:
    from . import llvm

    binding: Any = llvm.binding()
    machine = llvm.target_machine(2)
    module = binding.parse_assembly(f'target triple = "{llvm.host_triple()}"\n{text}')
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)
