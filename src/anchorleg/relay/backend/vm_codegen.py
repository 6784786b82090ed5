"""From Relay with explicit memory to the virtual machine's instructions."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import TensorType, TupleType
from ...ir.visit import trampoline
from ...runtime.vm.bytecode import Instruction, Opcode, VMFunction, make
from ...support.errors import BuildError
from ..adt import Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.shape_func.registry import flatten_types
from ..transform.common import is_primitive
from .placement import HOST, Where, where, where_of


class Context:
    """What all functions share: constants, numbers of functions and packed functions."""

    def __init__(self, mod: IRModule, request: Callable[[Function, str, Any], int]) -> None:
        self.mod, self.request = mod, request
        names = [v for v, f in mod.functions.items() if isinstance(f, Function) and not is_primitive(f)]
        self.index = {v.name_hint: i for i, v in enumerate(names)}
        self.functions = names
        self.constants: list[Any] = []
        self.constant_devices: list[int] = []
        self.devices: list[Where] = [HOST]
        self._known: dict[Any, int] = {}

    def constant(self, data: Any, place: Where = HOST) -> int:
        """The number of a constant on a device; small equal ones are one."""
        key = (place, (data.dtype, data.shape, data.as_numpy_view().tobytes()) if data.size <= 64 else id(data))
        if key not in self._known:
            self._known[key] = len(self.constants)
            self.constants.append(data)
            self.constant_devices.append(self.device(place))
        return self._known[key]

    def device(self, place: Where) -> int:
        """The number of a device."""
        if place not in self.devices:
            self.devices.append(place)
        return self.devices.index(place)

    def is_closure(self, var: GlobalVar) -> bool:
        """Whether a global function stands for the closures it makes."""
        func = self.mod[var.name_hint]
        return isinstance(func, Function) and bool(func.get_attr("Closure"))


class FunctionCompiler:
    """Instructions of one function."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.code: list[Instruction] = []
        self.register_of: dict[int, int] = {}
        self.count = 0
        self.keep: list[Any] = []

    def new(self) -> int:
        """A new register."""
        self.count += 1
        return self.count - 1

    def emit(self, op: Opcode, *operands: Any) -> int:
        """Appends an instruction; its place."""
        self.code.append(make(op, *operands))
        return len(self.code) - 1

    def compile(self, name: str, func: Function) -> VMFunction:
        """The whole function."""
        params: Sequence[Var] = func.params
        body = func.body
        if func.get_attr("Closure") and isinstance(body, Function):
            params, body = (*func.params, *body.params), body.body
        for p in params:
            self.define(p, self.new())
        result = trampoline(self.chain(body))
        self.emit(Opcode.Ret, result)
        devices = tuple(self.context.device(where_of(n)) for n in (*params, func))
        return VMFunction(name, tuple(p.name_hint for p in params), tuple(self.code), self.count, devices)

    def define(self, var: Any, register: int) -> None:
        """Notes where a value is."""
        self.register_of[id(var)] = register
        self.keep.append(var)

    # -- expressions

    def chain(self, expr: RelayExpr) -> Any:
        """A chain of lets; the register of its result."""
        while isinstance(expr, Let):
            register = yield self.value(expr.value)
            if register is not None:
                self.define(expr.var, register)
            expr = expr.body
        return (yield self.value(expr))

    def value(self, expr: RelayExpr) -> Any:
        """The register that holds a value (None: it has none)."""
        if isinstance(expr, If):
            return (yield self.if_(expr))
        if isinstance(expr, Match):
            return (yield self.match(expr))
        if isinstance(expr, Let):
            return (yield self.chain(expr))
        return self.atom(expr)
        yield  # a generator like the others

    def atom(self, expr: RelayExpr) -> int | None:
        """The register of a value without scopes inside."""
        if isinstance(expr, Var):
            found = self.register_of.get(id(expr))
            if found is None:
                raise BuildError(f"variable {expr.name_hint!r} is used but has no value: a scope was lost before code generation")
            return found
        if isinstance(expr, Constant):
            dst = self.new()
            self.emit(Opcode.LoadConst, dst, self.context.constant(expr.data, where_of(expr)))
            return dst
        if isinstance(expr, Tuple):
            return self.adt(0, expr.fields)
        if isinstance(expr, TupleGetItem):
            source, dst = self.atom(expr.tuple_value), self.new()
            self.emit(Opcode.GetField, dst, source, expr.index)
            return dst
        if isinstance(expr, GlobalVar):
            return self.closure(expr, ())
        if isinstance(expr, Constructor):
            raise BuildError(f"constructor {expr.name_hint!r} is used as a value: run EtaExpand first")
        if isinstance(expr, Call):
            return self.call(expr)
        if isinstance(expr, (RefCreate, RefRead, RefWrite)):
            return self.reference(expr)
        raise BuildError(f"a {type(expr).__name__} can't be compiled for the virtual machine")

    def reference(self, expr: RelayExpr) -> int:
        """A new reference, what one holds, or a change of it."""
        sources, dst = self.registers([c for c in expr.children() if isinstance(c, RelayExpr)]), self.new()
        self.emit({RefCreate: Opcode.AllocRef, RefRead: Opcode.ReadRef, RefWrite: Opcode.WriteRef}[type(expr)], dst, *sources)
        return dst

    def registers(self, exprs: Sequence[RelayExpr]) -> list[int]:
        """Registers of several atoms."""
        return [self.atom(e) for e in exprs]  # type: ignore[misc]

    def tensors(self, exprs: Sequence[RelayExpr]) -> list[int]:
        """Registers of the tensors in several atoms; tuples are taken apart."""
        found: list[int] = []
        stack = [(self.atom(e), e.checked_type) for e in reversed(exprs)]
        while stack:
            register, ty = stack.pop()
            if isinstance(ty, TupleType):
                parts = []
                for i, field in enumerate(ty.fields):
                    part = self.new()
                    self.emit(Opcode.GetField, part, register, i)
                    parts.append((part, field))
                stack.extend(reversed(parts))
            else:
                found.append(register)  # type: ignore[arg-type]
        return found

    def adt(self, tag: int, fields: Sequence[RelayExpr]) -> int:
        """A tuple or a value of a data type."""
        sources, dst = self.registers(fields), self.new()
        self.emit(Opcode.AllocADT, dst, tag, sources)
        return dst

    def closure(self, var: GlobalVar, captured: Sequence[RelayExpr]) -> int:
        """A function as a value."""
        sources, dst = self.registers(captured), self.new()
        self.emit(Opcode.AllocClosure, dst, self._index(var), sources)
        return dst

    def _index(self, var: GlobalVar) -> int:
        found = self.context.index.get(var.name_hint)
        if found is None:
            raise BuildError(f"function @{var.name_hint} is called but not in the module")
        return found

    def call(self, call: Call) -> int | None:
        """A call of anything."""
        op = call.op
        if isinstance(op, GlobalVar):
            if self.context.is_closure(op):
                return self.closure(op, call.args)
            sources, dst = self.registers(call.args), self.new()
            self.emit(Opcode.Invoke, dst, self._index(op), sources)
            return dst
        if isinstance(op, Constructor):
            return self.adt(op.tag, call.args)
        if isinstance(op, Op):
            handler = _OPERATORS.get(op.name)
            if handler is None:
                raise BuildError(f"operator {op.name!r} is called outside of a primitive function: run FuseOps first")
            return handler(self, call)
        if isinstance(op, Function):
            raise BuildError("a function literal is called: run LambdaLift first" if not is_primitive(op) else
                             f"a function for the external compiler {op.get_attr('Compiler')!r} reached code generation")
        sources = [self.atom(op), *self.registers(call.args)]
        dst = self.new()
        self.emit(Opcode.InvokeClosure, dst, sources[0], sources[1:])
        return dst

    # -- operators of the machine

    def alloc_storage(self, call: Call) -> int:
        """memory.alloc_storage"""
        size, dst = self.atom(call.args[0]), self.new()
        alignment = _constant_value(self, call.args[-1])
        self.emit(Opcode.AllocStorage, dst, size, alignment, call.attrs.dtype or "uint8", self.context.device(where(call.attrs.virtual_device)))
        return dst

    def alloc_tensor(self, call: Call) -> int:
        """memory.alloc_tensor"""
        storage, offset = self.registers(call.args[:2])
        if call.attrs.const_shape is not None:
            dims = [int(v) for v in call.attrs.const_shape.data.as_numpy_view().reshape(-1)]
            dst = self.new()
            self.emit(Opcode.AllocTensor, dst, storage, offset, call.attrs.dtype, dims)
        else:
            shape, dst = self.atom(call.args[2]), self.new()
            self.emit(Opcode.AllocTensorReg, dst, storage, offset, call.attrs.dtype, shape)
        return dst

    def invoke(self, call: Call) -> None:
        """vm.invoke_tvm_op"""
        func, ins, outs = call.args
        sources, results = self.tensors(_fields(ins)), self.registers(_fields(outs))
        if isinstance(func, GlobalVar):  # compiled elsewhere
            index = self.context.request(func, "external", (_tensor_types(ins), _tensor_types(outs)))  # type: ignore[arg-type]
        else:
            index = self.context.request(func, "kernel", None)  # type: ignore[arg-type]
        self.emit(Opcode.InvokePacked, index, len(results), [*sources, *results])

    def shape_func(self, call: Call) -> None:
        """vm.shape_func"""
        func, ins, outs = call.args
        program = call.attrs.program
        index = self.context.request(func, "shape", program)  # type: ignore[arg-type]
        sources, results = self.tensors(_fields(ins)), self.registers(_fields(outs))
        self.emit(Opcode.InvokePacked, index, len(results), [*sources, *results])

    def invoke_host(self, call: Call) -> int:
        """vm.invoke_host: the results' registers are written by the machine."""
        func, ins = call.args
        types = flatten_types(func.ret_type)  # type: ignore[attr-defined]
        index = self.context.request(func, "host", None)  # type: ignore[arg-type]
        sources = self.tensors(_fields(ins))
        results = [self.new() for _ in types]
        for r in results:
            self.emit(Opcode.LoadConsti, r, 0)
        self.emit(Opcode.InvokePacked, index, len(results), [*sources, *results])
        return self._nested(func.ret_type, iter(results))  # type: ignore[attr-defined]

    def _nested(self, ty: Any, results: Any) -> int:
        if isinstance(ty, TensorType):
            return next(results)
        fields, dst = [self._nested(f, results) for f in ty.fields], self.new()
        self.emit(Opcode.AllocADT, dst, 0, fields)
        return dst

    def shape_of(self, call: Call) -> int:
        """vm.shape_of"""
        source, dst = self.atom(call.args[0]), self.new()
        self.emit(Opcode.ShapeOf, dst, source)
        return dst

    def reshape_tensor(self, call: Call) -> int:
        """vm.reshape_tensor"""
        (data, shape), dst = self.registers(call.args), self.new()
        self.emit(Opcode.ReshapeTensor, dst, data, shape)
        return dst

    def get_row(self, call: Call) -> int:
        """vm.get_row"""
        (data, at), dst = self.registers(call.args), self.new()
        self.emit(Opcode.GetRow, dst, data, at, call.attrs.mode)
        return dst

    def put_row(self, call: Call) -> int:
        """vm.put_row"""
        sources, dst = self.registers(call.args), self.new()
        self.emit(Opcode.PutRow, dst, *sources)
        return dst

    def kill(self, call: Call) -> None:
        """memory.kill"""
        self.emit(Opcode.KillRegister, self.atom(call.args[0]))

    def device_copy(self, call: Call) -> int:
        """device_copy"""
        source, dst = self.atom(call.args[0]), self.new()
        places = (where(call.attrs.src_virtual_device), where(call.attrs.dst_virtual_device))
        self.emit(Opcode.DeviceCopy, dst, source, *map(self.context.device, places))
        return dst

    # -- branches

    def if_(self, node: If) -> Any:
        """Compares the condition with 1 and goes on in a branch; both end in one register."""
        cond, one = self.atom(node.cond), self.new()
        self.emit(Opcode.LoadConsti, one, 1)
        at = self.emit(Opcode.If, cond, one, 1, 0)
        yes = yield self.chain(node.true_branch)
        merged = self.new()
        self.emit(Opcode.Move, merged, yes)
        leave = self.emit(Opcode.Goto, 0)
        self.code[at] = self.code[at].with_operand("false_offset", len(self.code) - at)
        no = yield self.chain(node.false_branch)
        self.emit(Opcode.Move, merged, no)
        self.code[leave] = self.code[leave].with_operand("pc_offset", len(self.code) - leave)
        return merged

    def match(self, node: Match) -> Any:
        """Clauses tested in order; all end in one register."""
        data = self.atom(node.data)
        merged = self.new()
        leaves = []
        for clause in node.clauses:
            fails: list[int] = []
            self.pattern(clause.lhs, data, fails)  # type: ignore[arg-type]
            result = yield self.chain(clause.rhs)
            self.emit(Opcode.Move, merged, result)
            leaves.append(self.emit(Opcode.Goto, 0))
            for at in fails:
                self.code[at] = self.code[at].with_operand("false_offset", len(self.code) - at)
        self.emit(Opcode.Fatal)
        for at in leaves:
            self.code[at] = self.code[at].with_operand("pc_offset", len(self.code) - at)
        return merged

    def pattern(self, pattern: Any, register: int, fails: list[int]) -> None:
        """Tests a pattern: where it does not fit, jumps that ``fails`` collects; binds its variables."""
        stack = [(pattern, register)]
        while stack:
            p, r = stack.pop()
            if isinstance(p, PatternVar):
                self.define(p.var, r)
            elif isinstance(p, PatternConstructor):
                tag, want = self.new(), self.new()
                self.emit(Opcode.GetTag, tag, r)
                self.emit(Opcode.LoadConsti, want, p.constructor.tag)
                fails.append(self.emit(Opcode.If, tag, want, 1, 0))
                stack.extend(self._fields_of(p.patterns, r))
            elif isinstance(p, PatternTuple):
                stack.extend(self._fields_of(p.patterns, r))
            elif not isinstance(p, PatternWildcard):
                raise BuildError(f"unknown pattern {type(p).__name__}")

    def _fields_of(self, patterns: Sequence[Any], register: int) -> list[tuple[Any, int]]:
        found = []
        for i, sub in enumerate(patterns):
            if isinstance(sub, PatternWildcard):
                continue
            dst = self.new()
            self.emit(Opcode.GetField, dst, register, i)
            found.append((sub, dst))
        return found[::-1]


def _tensor_types(tup: RelayExpr) -> list[TensorType]:
    return [t for f in _fields(tup) for t in flatten_types(f.checked_type)]


def _fields(tup: RelayExpr) -> Sequence[RelayExpr]:
    if not isinstance(tup, Tuple):
        raise BuildError("the arguments of a call of compiled code must be a tuple literal")
    return tup.fields


def _constant_value(compiler: FunctionCompiler, expr: RelayExpr) -> int:
    return int(expr.data.item()) if isinstance(expr, Constant) else 64


_OPERATORS: dict[str, Callable[[FunctionCompiler, Call], Any]] = {
    "memory.alloc_storage": FunctionCompiler.alloc_storage, "memory.alloc_tensor": FunctionCompiler.alloc_tensor,
    "memory.kill": FunctionCompiler.kill, "vm.invoke_tvm_op": FunctionCompiler.invoke, "vm.shape_func": FunctionCompiler.shape_func,
    "vm.invoke_host": FunctionCompiler.invoke_host, "vm.shape_of": FunctionCompiler.shape_of,
    "vm.reshape_tensor": FunctionCompiler.reshape_tensor, "vm.put_row": FunctionCompiler.put_row, "vm.get_row": FunctionCompiler.get_row,
    "device_copy": FunctionCompiler.device_copy,
}


def compile_functions(context: Context) -> list[VMFunction]:
    """Every function of the module, in the order of their numbers."""
    return [FunctionCompiler(context).compile(v.name_hint, context.mod.functions[v]) for v in context.functions]  # type: ignore[arg-type]


__all__ = ["Context", "FunctionCompiler", "compile_functions"]
