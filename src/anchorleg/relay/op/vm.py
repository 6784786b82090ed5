"""Operators of the virtual machine: calls of compiled code and of shape functions, with memory given."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ...ir.attrs import INT, INTS, RAW, STR, Attrs, Field
from ...ir.expr import Any as AnyDim, RelayExpr
from ...ir.op import Op, OpPattern
from ...ir.type import FuncType, TensorType, TupleType, Type
from ...support.errors import TypeMismatchError
from ..expr import Call
from .attrs_common import OPT_DTYPE
from .registry import declare


class ShapeFuncAttrs(Attrs, name="relay.attrs.ShapeFuncAttrs"):
    """Attributes of vm.shape_func."""

    is_input = Field(INTS, (), "For each argument, whether its shape (0), its elements (1) or both are read.")
    program = Field(RAW, None, "The formulas of the sizes.")


class VMShapeOfAttrs(Attrs, name="relay.attrs.VMShapeOfAttrs"):
    """Attributes of vm.shape_of."""

    dtype = Field(OPT_DTYPE, "int64", "The result's data type.")


class ReshapeTensorAttrs(Attrs, name="relay.attrs.ReshapeTensorAttrs"):
    """Attributes of vm.reshape_tensor."""

    newshape = Field(INTS, (), "What is known of the new shape; sizes not known are -1.")


class OutputShapesAttrs(Attrs, name="relay.attrs.OutputShapesAttrs"):
    """Attributes of vm.output_shapes."""

    op = Field(STR, "", "The operator whose results are meant.")
    attrs = Field(RAW, None, "The attributes of its call.")
    ranks = Field(INTS, (), "The ranks of its results.")


def _output_shapes_rel(args: tuple[Type, ...], attrs: OutputShapesAttrs, ctx: Any) -> Type:
    types = [TensorType([int(r)], "int64") for r in attrs.ranks]
    return types[0] if len(types) == 1 else TupleType(types)


def _unit(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type:
    return TupleType([])


def _result_of(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    return args[0].ret_type if isinstance(args[0], FuncType) else None


def _shape_of_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    return TensorType([len(args[0].dims)], "int64") if isinstance(args[0], TensorType) else None


def _reshape_rel(args: tuple[Type, ...], attrs: ReshapeTensorAttrs, ctx: Any) -> Type | None:
    if not isinstance(args[0], TensorType):
        return None
    return TensorType([d if d >= 0 else AnyDim() for d in (int(v) for v in attrs.newshape)], args[0].dtype)


class GetRowAttrs(Attrs, name="relay.attrs.GetRowAttrs"):
    """Attributes of vm.get_row."""

    mode = Field(INT, 0, "Indices out of range: 0 an error, 1 clipped, 2 wrapped around.")


def _get_row_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    return TensorType(args[0].dims[1:], args[0].dtype) if isinstance(args[0], TensorType) else None


def _put_row_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data, index, row = args
    if not all(isinstance(t, TensorType) for t in args):
        return None
    if index.dims or "int" not in index.dtype:  # type: ignore[attr-defined]
        raise TypeMismatchError(f"vm.put_row: the index must be an integer scalar, got {index}")
    if len(row.dims) != len(data.dims) - 1 or row.dtype != data.dtype:  # type: ignore[attr-defined]
        raise TypeMismatchError(f"vm.put_row: the row {row} is no slice of the data {data}")
    return data


def _put_row_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    data = args[0].copy()
    data[int(args[1])] = args[2]
    return data


declare("vm.shape_of", inputs=("tensor",), attrs=VMShapeOfAttrs, relation=_shape_of_rel, level=10, TNonComputational=True,
        numpy=lambda attrs, args, out_type: np.array(args[0].shape, np.int64), doc="The shape of a tensor.")
declare("vm.shape_func", inputs=("func", "ins", "outs"), attrs=ShapeFuncAttrs, relation=_unit, level=10, stateful=True, TNonComputational=True,
        doc="Writes the shapes of a function's results.")
declare("vm.output_shapes", num_inputs=-1, attrs=OutputShapesAttrs, relation=_output_shapes_rel, pattern=OpPattern.OPAQUE, level=10,
        doc="The shapes of an operator's results, by the shape function that was declared for it, from arguments or their sizes.")
declare("vm.invoke_tvm_op", inputs=("op", "ins", "outs"), relation=_unit, level=10, stateful=True, TNonComputational=True,
        doc="Calls compiled code that writes its results to given tensors.")
declare("vm.invoke_host", inputs=("op", "ins"), relation=_result_of, level=10, stateful=True, TNonComputational=True,
        doc="A function whose results' sizes only its evaluation tells, evaluated by the operators' rules.")
declare("vm.reshape_tensor", inputs=("data", "shape"), attrs=ReshapeTensorAttrs, relation=_reshape_rel, level=10, TNonComputational=True,
        numpy=lambda attrs, args, out_type: args[0].reshape([int(v) for v in args[1]]), doc="The same memory under another shape.")
declare("vm.get_row", inputs=("data", "index"), attrs=GetRowAttrs, relation=_get_row_rel, level=10, TNonComputational=True,
        numpy=lambda attrs, args, out_type: args[0][int(args[1])], doc="One slice of the data along its first axis, as a view.")
declare("vm.put_row", inputs=("data", "index", "row"), relation=_put_row_rel, pattern=OpPattern.OPAQUE, level=10, numpy=_put_row_numpy,
        doc="The data with one slice along its first axis replaced; done in place where nobody else uses the data.")


def shape_of(expr: RelayExpr) -> Call:
    """The shape of a tensor as a vector of int64."""
    return Call(Op.get("vm.shape_of"), [expr], VMShapeOfAttrs())


def invoke_tvm_op(func: RelayExpr, inputs: RelayExpr, outputs: RelayExpr) -> Call:
    """A call of a primitive function with tuples of input and output tensors."""
    return Call(Op.get("vm.invoke_tvm_op"), [func, inputs, outputs])


def shape_func(func: RelayExpr, inputs: RelayExpr, outputs: RelayExpr, is_input: Any, program: Any = None) -> Call:
    """The shapes of a primitive function's results, written to the vectors ``outputs``."""
    return Call(Op.get("vm.shape_func"), [func, inputs, outputs], ShapeFuncAttrs(is_input=tuple(is_input), program=program))


def output_shapes(call: Call, inputs: Sequence[RelayExpr], ranks: Sequence[int]) -> Call:
    """The shapes of the results of ``call`` by its operator's declared shape function."""
    return Call(Op.get("vm.output_shapes"), inputs, OutputShapesAttrs(op=call.op.name, attrs=call.attrs, ranks=tuple(ranks)))  # type: ignore[attr-defined]


def reshape_tensor(data: RelayExpr, shape: RelayExpr, newshape: Any) -> Call:
    """``data`` under the shape held by a vector; ``newshape`` says what is known of it."""
    sizes = tuple(int(d) if isinstance(d, int) or hasattr(d, "value") else -1 for d in newshape)
    return Call(Op.get("vm.reshape_tensor"), [data, shape], ReshapeTensorAttrs(newshape=sizes))


def get_row(data: RelayExpr, index: RelayExpr, mode: int = 0) -> Call:
    """``data[index]`` as a view of the same memory."""
    return Call(Op.get("vm.get_row"), [data, index], GetRowAttrs(mode=mode))


def put_row(data: RelayExpr, index: RelayExpr, row: RelayExpr) -> Call:
    """``data`` with ``data[index]`` replaced by ``row``."""
    return Call(Op.get("vm.put_row"), [data, index, row])


__all__ = ["GetRowAttrs", "OutputShapesAttrs", "ReshapeTensorAttrs", "ShapeFuncAttrs", "VMShapeOfAttrs", "get_row", "invoke_tvm_op", "output_shapes", "put_row", "reshape_tensor", "shape_func", "shape_of"]
