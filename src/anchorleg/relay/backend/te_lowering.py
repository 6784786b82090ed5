"""From one primitive function to TE tensors and a schedule.

Each operator call of the function is given to its chosen implementation; the implementation of the most demanding
operator (the *anchor*) then schedules the whole.
"""
from __future__ import annotations

import hashlib
from typing import Any, Callable, NamedTuple

from ...ir.expr import Any as AnyDim
from ...ir.op import Op, OpPattern
from ...ir.type import TensorType, TupleType, flatten_types
from ...ir.visit import Walker
from ...support.errors import BuildError, UnsupportedOpError
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function

MAX_NAME_LENGTH = 80
Select = Callable[[Call, list, Any, Any], Any]


class TEFunction(NamedTuple):
    """A primitive function as tensors: inputs and outputs in order, who schedules it, a readable name."""

    inputs: list[Any]
    outputs: list[Any]
    anchor_implementation: Any
    anchor_attrs: Any
    name: str
    constants: dict[Any, Any]


def flatten_tensor_types(ty: Any) -> list[TensorType]:
    """The tensor types inside a (nested) tuple type, left to right."""
    found = flatten_types(ty)
    for t in found:
        if not isinstance(t, TensorType):
            raise BuildError(f"a kernel takes and gives tensors and tuples of tensors only, got a value of type {t}")
    return found


def dim_for_te(dim: Any) -> Any:
    """A dimension as TE takes it: unknown ones become fresh size variables."""
    from ... import te

    return te.size_var("any_dim", "int64") if isinstance(dim, AnyDim) else dim


class _Builder(Walker):
    def __init__(self, select: Select, target: Any, dims: dict[int, Any]) -> None:
        super().__init__()
        self.select, self.target, self.dims = select, target, dims
        self.anchor: Any = None
        self.anchor_pattern = -1
        self.anchor_attrs: Any = None
        self.parts: list[str] = ["fused"]
        self.constants: dict[Any, Any] = {}

    def te_shape(self, ty: TensorType) -> list[Any]:
        """The type's shape for TE; one size variable per distinct ``Any`` object."""
        return [self._te_dim(d) for d in ty.dims]

    def _te_dim(self, dim: Any) -> Any:
        if isinstance(dim, AnyDim):
            return self.dims.setdefault(id(dim), dim_for_te(dim))
        if isinstance(dim, int) or not dim.children():
            return dim
        return dim.map_children(self._te_dim)  # a formula of a few sizes

    def te_type(self, ty: Any) -> Any:
        """A result's type for TE: unknown dimensions as size variables."""
        if isinstance(ty, TupleType):
            return TupleType([self.te_type(f) for f in ty.fields])
        return ty if ty.is_static else TensorType(self.te_shape(ty), ty.dtype)

    def placeholders(self, ty: Any, name: str) -> list[Any]:
        """One placeholder per tensor of a type."""
        from ... import te

        types = flatten_tensor_types(ty)
        names = [name] if len(types) == 1 else [f"{name}_{i}" for i in range(len(types))]
        return [te.placeholder(self.te_shape(t), t.dtype, n) for t, n in zip(types, names)]

    def visit_Var(self, var: Var) -> list[Any]:
        raise BuildError(f"variable {var.name_hint!r} is free in a primitive function")

    def visit_Constant(self, constant: Constant) -> list[Any]:
        from ... import te, tir

        data = constant.data
        if not data.shape:
            value = data.numpy()[()].item()
            dtype = str(data.dtype)
            return [te.compute((), lambda: tir.const(value, dtype), name="compile_engine_const", tag="broadcast")]
        tensor = te.placeholder(data.shape, str(data.dtype), f"const_{len(self.constants)}")
        self.constants[tensor] = data
        return [tensor]

    def visit_Tuple(self, tup: Tuple) -> Any:
        fields = yield list(tup.fields)
        return [t for field in fields for t in field]

    def visit_TupleGetItem(self, get: TupleGetItem) -> Any:
        tensors = yield get.tuple_value
        fields = get.tuple_value.checked_type.fields
        widths = [len(flatten_tensor_types(f)) for f in fields]
        start = sum(widths[: get.index])
        return tensors[start: start + widths[get.index]]

    def visit_Call(self, call: Call) -> Any:
        if not isinstance(call.op, Op):
            raise BuildError("a primitive function may call operators only; found a call of another function")
        args = yield list(call.args)
        inputs = [t for arg in args for t in arg]
        self.parts.append(call.op.name.replace(".", "_"))
        implementation, outputs = self.select(call, inputs, self.target, self.te_type(call.checked_type))
        pattern = int(call.op.get_attr("TOpPattern", OpPattern.OPAQUE))
        if pattern >= self.anchor_pattern:
            self.anchor, self.anchor_pattern, self.anchor_attrs = implementation, pattern, call.attrs
        return list(outputs)


def shorten(parts: list[str]) -> str:
    """A kernel's readable name: operators joined; cut and made unique by a digest when long."""
    name = "_".join(parts)
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return f"{name[:MAX_NAME_LENGTH]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}_"


def to_tensors(func: Function, target: Any, select: Select) -> TEFunction:
    """Runs every operator's chosen compute over placeholders for the parameters."""
    builder = _Builder(select, target, {})
    inputs: list[Any] = []
    for param in func.params:
        tensors = builder.placeholders(param.checked_type, param.name_hint)
        builder.memo[id(param)] = (param, tensors)
        inputs.extend(tensors)
    outputs = _distinct(builder.visit(func.body), inputs)
    return TEFunction(inputs, outputs, builder.anchor, builder.anchor_attrs, shorten(builder.parts), builder.constants)


def _distinct(outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """Outputs that are inputs, or appear twice, become copies: every output is written by the kernel."""
    from ... import te

    seen: set[int] = {id(t) for t in inputs}
    result: list[Any] = []
    for tensor in outputs:
        if id(tensor) in seen or _is_placeholder(tensor):
            tensor = te.compute(tensor.shape, tensor.__call__, name="identity", tag="elemwise")
        seen.add(id(tensor))
        result.append(tensor)
    return result


def _is_placeholder(tensor: Any) -> bool:
    return not tensor.op.input_tensors and type(tensor.op).__name__ == "PlaceholderOp"


def make_schedule(te_func: TEFunction, target: Any) -> Any:
    """The schedule of the whole function, by the anchor's implementation."""
    from ...topi.injective import schedule_injective

    anchor = te_func.anchor_implementation
    if anchor is None:
        with target:
            return schedule_injective(te_func.outputs)
    with target:
        schedule = anchor.schedule(te_func.anchor_attrs, te_func.outputs, target)
    if schedule is None:
        raise UnsupportedOpError(f"implementation {anchor.name!r} gave no schedule for {te_func.name} on {target}")
    return schedule
