"""``ccompiler``: sums, differences and products as C code, the example of an external compiler.

A function with ``Compiler="ccompiler"`` becomes one packed C function; constants in it are handed over by ``__init_<name>``.  The option
``header`` of the target kind is put before the code.
"""
from __future__ import annotations

import re
from typing import Any

from ....ir.module import IRModule
from ....ir.op import Op
from ....ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential
from ....ir.type import TensorType, TupleType
from ....ir.visit import post_order, trampoline
from ....runtime.source_module import CSourceModule
from ....support.errors import UnsupportedOpError
from ....target.codegen.c.types import storage_type
from ....target.kinds import find_kind
from ...analysis.variables import expr_children
from ...expr import Call, Constant, Tuple, TupleGetItem, Var
from ...function import Function
from ...transform.common import rewrite_exprs
from ...transform.compiler_functions import MarkCompilerFunctionsAsExtern, OutlineCompilerFunctionsWithExistingGlobalSymbols

COMPILER = "ccompiler"
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*"}
_DTYPES = ("float32", "float64", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))
_INCLUDES = "#include <stdint.h>\n#include <tvm/runtime/c_runtime_api.h>\n#include <tvm/runtime/c_backend_api.h>\n"
_DATA = """
static char* data_of(TVMValue value) {
    DLTensor* tensor = (DLTensor*)value.v_handle;
    return (char*)tensor->data + tensor->byte_offset;
}
"""
_PARAMETERS = "TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle"
_UNUSED = "(void)type_codes; (void)out_value; (void)out_type_code; (void)resource_handle;"


class _Writer:
    """Writes the C function of one Relay function: a loop over the elements of each result."""

    def __init__(self, symbol: str, func: Function) -> None:
        self.symbol = symbol
        self.params, self.results = _flat(func)
        self.constants = list({id(n): n for r in self.results for n in _nodes(r) if isinstance(n, Constant)}.values())
        self.leaves: dict[int, str] = {id(p): f"in{i}" for i, p in enumerate(self.params)}
        self.leaves |= {id(c): f"{symbol}_const{i}" for i, c in enumerate(self.constants)}
        self._check()

    @property
    def const_names(self) -> list[str]:
        """The names of the constants, in the order in which they are handed over."""
        return [f"{COMPILER}_{self.symbol}_const_{i}" for i in range(len(self.constants))]

    def _check(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.symbol, re.A):
            raise UnsupportedOpError(f"{COMPILER}: the function's name {self.symbol!r} is no C identifier")
        for node in [*self.params, *(n for r in self.results for n in _nodes(r))]:
            self._check_type(node)
            if isinstance(node, Call) and _operator(node) is None:
                name = node.op.name if isinstance(node.op, Op) else f"a {type(node.op).__name__}"
                raise UnsupportedOpError(f"{COMPILER}, function {self.symbol!r}: {name} is not among the operators it can do: {', '.join(_OPERATORS)}")
            if not isinstance(node, (Call, Constant, Var)):
                raise UnsupportedOpError(f"{COMPILER}, function {self.symbol!r}: a {type(node).__name__} inside is more than it can do")

    def _check_type(self, node: Any) -> None:
        ty = node.checked_type
        if not isinstance(ty, TensorType) or not ty.is_static or ty.dtype not in _DTYPES:
            raise UnsupportedOpError(f"{COMPILER}, function {self.symbol!r}: it takes tensors of known shape of the types {', '.join(_DTYPES)}, got {ty}")

    # -- text

    def text(self) -> str:
        """The functions and what they keep."""
        count = len(self.params) + len(self.results)
        lines = [*self._pointers(), *(line for i, r in enumerate(self.results) for line in self._loop(r, len(self.params) + i, f"out{i}"))]
        body = "".join(f"    {line}\n" for line in lines)
        return (f"{self._constant_code()}\nTVM_DLL int32_t {self.symbol}({_PARAMETERS}) {{\n    {_UNUSED}\n"
                f"    if (num_args != {count}) return -1;\n{body}    return 0;\n}}\n")

    def _constant_code(self) -> str:
        if not self.constants:
            return ""
        kept = "".join(f"static const {_ctype(c)}* {self.leaves[id(c)]};\n" for c in self.constants)
        stored = "".join(f"    {self.leaves[id(c)]} = (const {_ctype(c)}*)data_of(args[{i}]);\n" for i, c in enumerate(self.constants))
        return (f"{kept}\nTVM_DLL int32_t __init_{self.symbol}({_PARAMETERS}) {{\n    {_UNUSED}\n"
                f"    if (num_args != {len(self.constants)}) return -1;\n{stored}    return 0;\n}}\n")

    def _pointers(self) -> list[str]:
        used = {id(n) for r in self.results for n in _nodes(r)}
        return [f"const {_ctype(p)}* in{i} = (const {_ctype(p)}*)data_of(args[{i}]);" for i, p in enumerate(self.params) if id(p) in used]

    def _loop(self, result: Any, argument: int, name: str) -> list[str]:
        shape = result.checked_type.concrete_shape
        lines = [f"{_ctype(result)}* {name} = ({_ctype(result)}*)data_of(args[{argument}]);"]
        lines += [f"for (int64_t i{d} = 0; i{d} < {extent}; ++i{d})" for d, extent in enumerate(shape)]
        values: dict[int, str] = {}
        inner = [self._value(n, values, len(shape)) for n in _nodes(result)]
        return [*lines, "{", *(f"    {line}" for line in inner), f"    {name}[{_index(shape, len(shape))}] = {values[id(result)]};", "}"]

    def _value(self, node: Any, values: dict[int, str], rank: int) -> str:
        name = values[id(node)] = f"v{len(values)}"
        if isinstance(node, Call):
            return f"const {_ctype(node)} {name} = {_arithmetic(node, *(values[id(a)] for a in node.args))};"
        return f"const {_ctype(node)} {name} = {self.leaves[id(node)]}[{_index(node.checked_type.concrete_shape, rank)}];"


def _flat(func: Function) -> tuple[list[Var], list[Any]]:
    """The function's tensors: parameters and results, with tuples taken apart."""
    params: list[Var] = []
    binds = {p: trampoline(_apart(p.name_hint, p.checked_type, params)) for p in func.params}
    body = rewrite_exprs(func.body, lambda old, new: binds[old] if old in binds else _field(new))
    results, stack = [], [body]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Tuple):
            stack.extend(reversed(expr.fields))
        else:
            results.append(expr)
    return params, results


def _apart(name: str, ty: Any, made: list[Var]) -> Any:
    """A variable of that type, or a tuple of variables."""
    if isinstance(ty, TupleType):
        fields = []
        for field in ty.fields:
            fields.append((yield _apart(name, field, made)))
        whole: Any = Tuple(fields)
    else:
        whole = Var(name, ty)
        made.append(whole)
    whole._checked_type = ty
    return whole


def _field(expr: Any) -> Any:
    return expr.tuple_value.fields[expr.index] if isinstance(expr, TupleGetItem) and isinstance(expr.tuple_value, Tuple) else expr


def _nodes(result: Any) -> list[Any]:
    """The values a result is computed from and itself, inputs before what reads them."""
    return [n for n in post_order(result, expr_children) if not isinstance(n, Op)]


def _operator(call: Call) -> str | None:
    return _OPERATORS.get(call.op.name) if isinstance(call.op, Op) else None


def _ctype(node: Any) -> str:
    return storage_type(node.checked_type.dtype)


def _index(shape: tuple[int, ...], rank: int) -> str:
    """Where an operand's element lies for an element of a result of that rank; its axes of one element stay at 0."""
    text = "0"
    for axis, extent in enumerate(shape):
        place = "0" if extent == 1 else f"i{rank - len(shape) + axis}"
        text = place if text == "0" else f"{f'({text})' if ' ' in text else text} * {extent} + {place}"
    return text


def _arithmetic(call: Call, a: str, b: str) -> str:
    """The operation; that of signed integers wraps around, which C leaves open."""
    dtype, sign = call.checked_type.dtype, _operator(call)
    if "int" not in dtype:
        return f"{a} {sign} {b}"
    wide = "uint64_t" if dtype.endswith("64") else "uint32_t"
    return f"({_ctype(call)})(({wide}){a} {sign} ({wide}){b})"


# -- the pass


def _target() -> Any:
    from ....target.target import Target

    current = Target.current(allow_none=True)
    return current if current is not None and current.kind.name == COMPILER else Target(COMPILER)


def _source(header: str, writers: list[_Writer]) -> CSourceModule:
    text = (header + "\n" if header else "") + _INCLUDES + _DATA + "".join(w.text() for w in writers)
    return CSourceModule(text, "c", [w.symbol for w in writers], [n for w in writers for n in w.const_names])


def _generate(mod: IRModule, ctx: PassContext) -> IRModule:
    writers = [_Writer(v.name_hint, f) for v, f in mod.functions.items() if isinstance(f, Function) and f.get_attr("Compiler") == COMPILER]
    header = str(_target().attrs.get("header", ""))
    plain, needy = [w for w in writers if not w.constants], [w for w in writers if w.constants]
    modules = ([_source(header, plain)] if plain else []) + [_source(header, [w]) for w in needy]  # constants belong to the one function of a module
    constants = {n: c.data for w in needy for n, c in zip(w.const_names, w.constants)}
    return mod.with_attrs({"external_mods": [*(mod.get_attr("external_mods") or ()), *modules],
                           "const_name_to_constant": {**dict(mod.get_attr("const_name_to_constant") or {}), **constants}})


def CCompiler() -> Pass:
    """The functions for ``ccompiler`` as C code in the module's ``external_mods``; they themselves are marked ``Extern``."""
    return Sequential([OutlineCompilerFunctionsWithExistingGlobalSymbols(COMPILER), ModulePass(_generate, PassInfo(0, "CCompiler", ["InferType"])),
                       MarkCompilerFunctionsAsExtern(COMPILER)], name="CCompilerPass")


find_kind(COMPILER).set_attr("RelayToTIR", CCompiler())
__all__ = ["CCompiler", "COMPILER"]
