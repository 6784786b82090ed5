"""``AOTLowerMain``: the main function as a loop program of kernel calls, in upstream's form.

Before → after (calls with the packed C signature)::

    def @main(%a: Tensor[(5, 7), float32]) { let %x = call_lowered(@k, (%a,)); call_lowered(@k, (%x,)) }

    def __tvm_main__(a: T.handle, output: T.handle):
        sid_1 = T.allocate([140], "int8", "global.workspace")
        T.tvm_call_cpacked("k", a_buffer.data, sid_1, T.reinterpret("handle", T.uint64(0)))
        T.tvm_call_cpacked("k", sid_1, output_buffer.data, T.reinterpret("handle", T.uint64(0)))

Every intermediate result has memory of its own, allocated around the whole program; a later pass may let them share.
"""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.attrs import DictAttrs
from ....ir.expr import GlobalVar, IntImm, RelayExpr
from ....ir.module import IRModule
from ....ir.transform import ModulePass, Pass, PassContext, PassInfo
from ....ir.type import PointerType, PrimType, TensorType, TupleType, Type, flatten_types
from ....ir.visit import Walker
from ....support.errors import UnsupportedOpError
from ....support.names import sanitize
from ....tir import expr as tir
from ....tir import op
from ....tir import stmt as ts
from ....tir.buffer import Buffer, BufferLoad
from ....tir.function import PrimFunc
from ...expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from ...function import Function
from ...op.call import is_call_lowered
from ..graph_nodes import TensorInfo
from ..name_transforms import prefix_name, to_c_function_style
from ..utils import CallType
from .program import tensor_bytes

MAIN = "__tvm_main__"
_ALIGNMENT = 16


def AOTLowerMain(mod_name: str, config: Any, call_type: CallType) -> Pass:
    """The pass; ``config`` is a ``target.CompilationConfig`` and ``call_type`` how kernels are called.

    ``main`` may call lowered functions only; UnsupportedOpError for anything else.  The module attribute ``device_contexts`` (lowered
    function → device's name) asks for that device's hooks around the function's calls.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if "main" not in mod:
            return mod
        main = _MainLowering(mod, config, CallType(call_type)).run(mod["main"], mod_name)
        new = mod.copy()
        del new["main"]
        new[MAIN] = main
        return new

    return ModulePass(run, PassInfo(0, "AOTLowerMain", ["InferType"]))


class _Slot:
    """Memory of one tensor: bytes, and the pointer to it (set when it is known what it is)."""

    def __init__(self, number: int, info: TensorInfo) -> None:
        self.number, self.info, self.nbytes = number, info, tensor_bytes(info)
        self.pointer: tir.Var | None = None


class _MainLowering(Walker):
    """Gives every expression its slots, in the order in which upstream numbers them, and gathers the calls."""

    def __init__(self, mod: IRModule, config: Any, call_type: CallType) -> None:
        super().__init__()
        self.mod, self.config, self.call_type = mod, config, call_type
        self.slots: list[_Slot] = []
        self.calls: list[tuple[Call, list[_Slot], list[_Slot]]] = []
        self.constants: list[tuple[_Slot, Constant]] = []
        self.border: list[tuple[tir.Var, Buffer]] = []
        self.contexts: dict[str, tir.Var] = {}

    # ------------------------------------------------------------ expressions → slots

    def _fresh(self, t: Type) -> list[_Slot]:
        made = [_Slot(len(self.slots) + i, info) for i, info in enumerate(_tensors(t))]
        self.slots.extend(made)
        return made

    def visit_default(self, node: Any) -> Any:
        raise UnsupportedOpError(f"AOTLowerMain: main is expected to hold calls of lowered functions, constants, tuples and lets only, got "
                                 f"{type(node).__name__} {_callee(node)}: run LowerTE first")

    def visit_Var(self, v: Var) -> Any:
        raise UnsupportedOpError(f"AOTLowerMain: the variable {v.name_hint!r} is neither a parameter of main nor bound by a let")

    def visit_Constant(self, c: Constant) -> list[_Slot]:
        slots = self._fresh(c.checked_type)
        self.constants.append((slots[0], c))
        return slots

    def visit_Tuple(self, t: Tuple) -> Any:
        found = yield list(t.fields)
        return [s for slots in found for s in slots]

    def visit_TupleGetItem(self, g: TupleGetItem) -> Any:
        slots = yield g.tuple_value
        return [slots[g.index]]

    def visit_Let(self, let: Let) -> Any:
        slots = yield let.value
        self.memo[id(let.var)] = (let.var, slots)
        return (yield let.body)

    def visit_Call(self, call: Call) -> Any:
        if getattr(call.op, "name", "") == "on_device":
            return (yield call.args[0])
        if not is_call_lowered(call):
            return self.visit_default(call)
        results = self._fresh(call.checked_type)
        arguments = yield call.args[1]
        self.calls.append((call, arguments, results))
        return results

    # ------------------------------------------------------------ the function

    def run(self, func: Function, mod_name: str) -> PrimFunc:
        """The loop program for ``main``."""
        for p in func.params:
            self.memo[id(p)] = (p, self._fresh(p.checked_type))
            self._bordered(sanitize(p.name_hint), p.checked_type, self.memo[id(p)][1])
        count = len(self.border)
        results = self.visit(func.body)
        copies = self._results(func, results)
        self._contexts()
        for n, (slot, constant) in enumerate(self.constants):
            if slot.pointer is None:
                slot.pointer = tir.Var(f"constant_{n}", "handle", PointerType(PrimType(constant.checked_type.dtype), "global"))
        body = self._allocated([*(self._call(*c) for c in self.calls), *copies])
        return self._function(body, count, mod_name)

    def _bordered(self, name: str, t: Type, slots: Sequence[_Slot]) -> None:
        """A parameter of the loop program for each tensor of a type."""
        for slot, info in zip(slots, _tensors(t)):
            data = tir.Var(f"{name}_buffer_var", "handle", PointerType(PrimType(info.dtype), "global"))
            self.border.append((tir.Var(name, "handle"), Buffer(data, info.dtype, info.shape, (), 0, f"{name}_buffer", _ALIGNMENT)))
            slot.pointer = slot.pointer if slot.pointer is not None else data

    def _results(self, func: Function, slots: Sequence[_Slot]) -> list[ts.Stmt]:
        """Parameters for the results; a result that is memory already (an input, a constant, another result) is copied."""
        given = [str(n) for n in func.get_attr("output_tensor_names", ())]
        many = isinstance(func.body.checked_type, TupleType)
        constants = {id(s) for s, _ in self.constants}
        copies: list[tuple[tir.Var, _Slot]] = []
        for i, slot in enumerate(slots):
            name = given[i] if given else f"output{i}" if many else "output"
            taken = slot.pointer is not None or id(slot) in constants
            target = _Slot(-1, slot.info) if taken else slot
            self._bordered(name, TensorType(slot.info.shape, slot.info.dtype), [target])
            if taken:
                copies.append((self.border[-1][1].data, slot))
        return [_Copy(out, slot) for out, slot in copies]  # type: ignore[misc]

    def _contexts(self) -> None:
        for var, device in dict(self.mod.get_attr("device_contexts", {})).items():
            name = sanitize(str(device))
            if name not in self.contexts:
                self.contexts[name] = tir.Var(f"device_context_{name}", "handle")

    def _context_of(self, var: GlobalVar) -> str | None:
        for key, device in dict(self.mod.get_attr("device_contexts", {})).items():
            if key.name_hint == var.name_hint:
                return sanitize(str(device))
        return None

    def _hook(self, device: str, what: str) -> ts.Stmt:
        symbol = to_c_function_style(prefix_name(["Device", device, what]))
        return ts.Evaluate(_checked(op.call_extern("int32", symbol, self.contexts[device])))

    def _call(self, call: Call, arguments: Sequence[_Slot], results: Sequence[_Slot]) -> ts.Stmt:
        callee: Any = call.args[0]
        device = self._context_of(callee)
        pointers = [self._pointer(s) for s in (*arguments, *results)]
        made = ts.Evaluate(_kernel_call(self.call_type, callee.name_hint, pointers, self.contexts[device] if device is not None else None), call.span)
        return made if device is None else ts.seq(self._hook(device, "Open"), made, self._hook(device, "Close"))

    def _pointer(self, slot: _Slot) -> tir.Var:
        if slot.pointer is None:
            slot.pointer = tir.Var(f"sid_{slot.number}", "handle", PointerType(PrimType("int8"), "global.workspace"))
        return slot.pointer

    def _allocated(self, steps: Sequence[Any]) -> ts.Stmt:
        """The steps inside the allocations of all memory they use: the constants' outermost, then the last slot's."""
        body = ts.seq(*(_copy(s.out, self._pointer(s.slot), s.slot.nbytes) if isinstance(s, _Copy) else s for s in steps))
        held = {id(s) for s, _ in self.constants} | {id(b.data) for _, b in self.border}
        for slot in self.slots:
            if id(slot) not in held and slot.pointer is not None and id(slot.pointer) not in held:
                body = ts.Allocate(slot.pointer, "int8", [slot.nbytes], IntImm("bool", 1), body)
        for slot, constant in reversed(self.constants):
            body = ts.AllocateConst(self._pointer(slot), slot.info.dtype, slot.info.shape, constant.data, body)
        return body

    def _function(self, body: ts.Stmt, inputs: int, mod_name: str) -> PrimFunc:
        attrs = {"global_symbol": f"{mod_name}_{MAIN}", "runner_function": True, "target": self.config.host_target,
                 "input_vars": [v for v, _ in self.border[:inputs]], "output_vars": [v for v, _ in self.border[inputs:]],
                 "devices": list(self.contexts)}
        whole = ts.seq(*(self._hook(d, "Activate") for d in self.contexts), body, *(self._hook(d, "Deactivate") for d in self.contexts))
        params = [*(v for v, _ in self.border), *self.contexts.values()]
        return PrimFunc(params, whole, None, dict(self.border), DictAttrs(attrs))


class _Copy:
    """A result that is copied at the end."""

    def __init__(self, out: tir.Var, slot: _Slot) -> None:
        self.out, self.slot = out, slot


def _tensors(t: Type) -> list[TensorInfo]:
    """The tensors of a type, nested tuples laid out flat."""
    for each in flatten_types(t):
        if not isinstance(each, TensorType) or not each.is_static:
            raise UnsupportedOpError(f"AOTLowerMain: tensors of known shape are expected, got {each}")
    return [TensorInfo(each.concrete_shape, each.dtype) for each in flatten_types(t)]


def _callee(node: RelayExpr) -> str:
    return f"of {node.op}" if isinstance(node, Call) else ""


def _checked(call: Any) -> Any:
    return op.tvm_check_return(0, -1, call)


def _kernel_call(call_type: CallType, symbol: str, pointers: Sequence[tir.Var], context: tir.Var | None) -> Any:
    """A call of a kernel; with the packed C signature a context always comes last, a null one where there is none."""
    if call_type is CallType.CPacked:
        return op.call_cpacked(symbol, *pointers, context if context is not None else op.reinterpret("handle", IntImm("uint64", 0)))
    if call_type is CallType.Unpacked:
        return _checked(op.call_extern("int32", symbol, *pointers, *([context] if context is not None else [])))
    if context is not None:
        raise UnsupportedOpError(f"AOTLowerMain: {symbol!r} runs with a device context, which packed calls do not hand over: use CallType.CPacked "
                                 "or CallType.Unpacked")
    return _checked(op.call_packed(symbol, *pointers))


def _copy(out: tir.Var, source: tir.Var, nbytes: int) -> ts.Stmt:
    """``nbytes`` bytes from one pointer to another, byte by byte."""
    kinds = PointerType(PrimType("uint8"), "global")
    read, write = (Buffer(tir.Var(name, "handle", kinds), "uint8", [IntImm("uint64", nbytes)], (), 0, name) for name in ("tmp_read", "tmp_write"))
    i = tir.Var("i", "int32")
    value = tir.Let(read.data, source, BufferLoad(read, [i]))
    loop = ts.For(i, IntImm("int32", 0), IntImm("int32", nbytes), ts.ForKind.SERIAL, ts.BufferStore(write, value, [i]))
    return ts.LetStmt(write.data, out, loop)
