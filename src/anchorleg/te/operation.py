"""Operations: what a tensor is computed by, and the functions that make them.

An operation is a node of the tensor graph: a placeholder (an argument), a compute (one scalar expression per element,
possibly a reduction) or an extern (a hand-written loop nest).  Operations never change; a schedule says how they run.
"""
from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Sequence

from ..ir.expr import INDEX_DTYPE, PrimExpr, Range, as_dim_expr
from ..ir.visit import post_order
from ..support.errors import ArgumentError, TypeMismatchError
from ..tir import op as tir_op
from ..tir.buffer import Buffer, ProducerLoad, decl_buffer
from ..tir.expr import IntImm, IterVar, Reduce, SizeVar, Var
from ..tir.stmt import Evaluate, Stmt
from .tag import resolve_tag
from .tensor import Tensor, TensorSlice


class Operation:
    """Base of operations: ``name``, ``tag``, ``attrs``, output axes and reduction axes."""

    __slots__ = ("name", "tag", "attrs", "_outputs", "__weakref__")

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None, outputs: Sequence[tuple[Sequence[PrimExpr], str]]) -> None:
        self.name, self.tag, self.attrs = name, tag, dict(attrs or {})
        self._outputs = tuple(Tensor(self, i, shape, dtype) for i, (shape, dtype) in enumerate(outputs))

    def output(self, index: int) -> Tensor:
        """The tensor of that output."""
        return self._outputs[index]

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation computes."""
        return len(self._outputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors read, each once, in the order of first use."""
        return ()

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the output."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes summed (or otherwise reduced) over."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PlaceholderOp(Operation):
    """An input of the computation."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The shape of the input."""
        return self._outputs[0].shape

    @property
    def dtype(self) -> str:
        """The element type."""
        return self._outputs[0].dtype


class ComputeOp(Operation):
    """``output[axis] = body`` for every point of ``axis``; all outputs share the axes, and the reduction if any."""

    __slots__ = ("_axis", "_reduce_axis", "body", "_inputs")

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None, axis: Sequence[IterVar], body: Sequence[PrimExpr]) -> None:
        self._axis, self.body = tuple(axis), tuple(body)
        shape = [iv.dom.extent for iv in self._axis]
        super().__init__(name, tag, attrs, [(shape, b.dtype) for b in self.body])
        self._reduce_axis = _check_body(name, self.body)
        self._inputs: tuple[Tensor, ...] | None = None

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return self._axis

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        return self._reduce_axis

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        if self._inputs is None:
            found = {n.producer: None for n in post_order(self.body) if isinstance(n, ProducerLoad)}
            self._inputs = tuple(found)
        return self._inputs


def _check_body(name: str, body: Sequence[PrimExpr]) -> tuple[IterVar, ...]:
    """The reduction axes of a compute body, after checking that reductions stand only at its top."""
    reduces = [b for b in body if isinstance(b, Reduce)]
    if reduces and (len(reduces) != len(body) or any(len(r.axis) != len(reduces[0].axis) or any(a is not b for a, b in zip(
            r.axis, reduces[0].axis)) for r in reduces)):
        raise TypeMismatchError(f"compute {name}: all outputs of one compute are expected to be the same reduction")
    roots = [s for r in reduces[:1] for s in (*r.source, r.condition)] if reduces else list(body)
    if any(isinstance(n, Reduce) for n in post_order(roots)):
        raise TypeMismatchError(f"compute {name}: a reduction is only allowed at the top of the body; compute it as a tensor of its own")
    return reduces[0].axis if reduces else ()


class ExternOp(Operation):
    """Outputs computed by the statement ``body`` over ``input_placeholders`` and ``output_placeholders`` (buffers)."""

    __slots__ = ("inputs", "input_placeholders", "output_placeholders", "body")

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None, inputs: Sequence[Tensor],
                 input_placeholders: Sequence[Buffer], output_placeholders: Sequence[Buffer], body: Stmt) -> None:
        super().__init__(name, tag, attrs, [(b.shape, b.dtype) for b in output_placeholders])
        self.inputs, self.input_placeholders = tuple(inputs), tuple(input_placeholders)
        self.output_placeholders, self.body = tuple(output_placeholders), body

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))


def as_shape(shape: Any) -> tuple[PrimExpr, ...]:
    """A shape (a sequence, or one dimension) as index expressions; ArgumentError for a negative or fractional extent."""
    dims = (shape,) if isinstance(shape, (int, PrimExpr)) else tuple(shape)
    return tuple(_dim(d) for d in dims)


def _dim(d: Any) -> PrimExpr:
    if isinstance(d, PrimExpr):
        if isinstance(d, IntImm):
            d = d.value
        else:
            return d if d.dtype == INDEX_DTYPE else tir_op.cast(d, INDEX_DTYPE)
    if isinstance(d, float) and not d.is_integer() or int(d) < 0:
        raise ArgumentError(f"a dimension is expected to be an integer of at least 0, got {d}")
    return as_dim_expr(int(d))


def placeholder(shape: Any, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """An input tensor (``dtype`` default float32)."""
    return PlaceholderOp(name, "", None, [(as_shape(shape), dtype or "float32")]).output(0)


def compute(shape: Any, fcompute: Callable[..., Any], name: str = "compute", tag: str = "", attrs: Mapping[str, Any] | None = None,
            varargs_names: Sequence[str] | None = None) -> Any:
    """The tensor with ``result[i, j, …] = fcompute(i, j, …)``; a tuple of tensors when ``fcompute`` gives several values.

    A value is a PrimExpr (or a Python number), or one reduction such as ``te.sum(expr, axis=k)``.
    """
    tag, dims = resolve_tag(tag), as_shape(shape)
    names = _axis_names(fcompute, len(dims), varargs_names)
    if len(names) != len(dims):
        raise ArgumentError(f"compute {name}: the function takes {len(names)} indices, the shape has {len(dims)} dimensions")
    axis = [IterVar(Range.from_min_extent(0, d), Var(n), IterVar.DataPar) for d, n in zip(dims, names)]
    result = fcompute(*[iv.var for iv in axis])
    body = [_value(v, name) for v in (result if isinstance(result, (list, tuple)) else [result])]
    op = ComputeOp(name, tag, attrs, axis, body)
    return op.output(0) if len(body) == 1 else tuple(op.output(i) for i in range(len(body)))


def _value(v: Any, name: str) -> PrimExpr:
    if isinstance(v, TensorSlice):
        v = v.asobject()
    if isinstance(v, Tensor):
        v = v() if v.ndim == 0 else v
    if isinstance(v, (Tensor, str)) or v is None:
        raise TypeMismatchError(f"compute {name}: the function is expected to return an expression, got {type(v).__name__}")
    return tir_op.convert(v)


def _axis_names(fn: Callable[..., Any], ndim: int, varargs_names: Sequence[str] | None) -> list[str]:
    spec = inspect.getfullargspec(fn)
    args = [a for a in spec.args if a != "self"] if inspect.ismethod(fn) else list(spec.args)
    if spec.varkw or spec.kwonlyargs:
        raise ArgumentError("the function given to te.compute is expected to take only positional indices")
    if spec.defaults:
        args = args[:len(args) - len(spec.defaults)]
    if spec.varargs is None:
        return args or [f"i{i}" for i in range(ndim)]
    rest = ndim - len(args)
    if varargs_names is not None and len(varargs_names) != rest:
        raise ArgumentError(f"expected {rest} names in varargs_names, got {len(varargs_names)}")
    return args + (list(varargs_names) if varargs_names is not None else [f"i{i}" for i in range(rest)])


def extern(shape: Any, inputs: Sequence[Tensor], fcompute: Callable[..., Any], name: str = "extern", dtype: Any = None,
           in_buffers: Any = None, out_buffers: Any = None, tag: str = "", attrs: Mapping[str, Any] | None = None) -> Any:
    """Tensors computed by a hand-written statement.

    ``fcompute(ins, outs)`` gets one buffer per input and per output and returns a Stmt (or an expression to evaluate).
    ``shape`` is one shape, or a list of shapes for several outputs; ``dtype`` likewise (default: that of the only input).
    """
    tag = resolve_tag(tag)
    many = isinstance(shape, (list, tuple)) and bool(shape) and isinstance(shape[0], (list, tuple))
    shapes = [as_shape(s) for s in (shape if many else [shape])]
    dtypes = _extern_dtypes(dtype, inputs, len(shapes), name)
    ins = _given(in_buffers) or [decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs]
    outs = _given(out_buffers) or [decl_buffer(s, d, name) for s, d in zip(shapes, dtypes)]
    if len(ins) != len(inputs) or len(outs) != len(shapes):
        raise ArgumentError(f"extern {name}: expected {len(inputs)} input and {len(shapes)} output buffers, got {len(ins)} and {len(outs)}")
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise TypeMismatchError(f"extern {name}: the function is expected to return a Stmt or PrimExpr, got {type(body).__name__}")
    op = ExternOp(name, tag, attrs, inputs, ins, outs, body)
    return op.output(0) if op.num_outputs == 1 else [op.output(i) for i in range(op.num_outputs)]


def _given(buffers: Any) -> list[Buffer] | None:
    if buffers is None:
        return None
    return [buffers] if isinstance(buffers, Buffer) else list(buffers)


def _extern_dtypes(dtype: Any, inputs: Sequence[Tensor], count: int, name: str) -> list[str]:
    if dtype is None:
        kinds = {t.dtype for t in inputs}
        if len(kinds) != 1:
            raise ArgumentError(f"extern {name}: cannot tell the output's dtype from inputs of {sorted(kinds) or 'no'} dtypes; give dtype=")
        dtype = kinds.pop()
    return [dtype] * count if isinstance(dtype, str) else list(dtype)


def var(name: str = "tindex", dtype: str = INDEX_DTYPE) -> Var:
    """A free scalar variable."""
    return Var(name, dtype)


def size_var(name: str = "size", dtype: str = INDEX_DTYPE) -> SizeVar:
    """A variable known to be at least 0: a symbolic dimension."""
    return SizeVar(name, dtype)


def const(value: Any, dtype: str = "int32") -> PrimExpr:
    """A constant."""
    return tir_op.const(value, dtype)


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """An axis of a device's threads: ``tag`` such as ``"threadIdx.x"``; ``dom`` an extent, a pair or None (inferred)."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ArgumentError("thread_axis needs a tag such as 'threadIdx.x'")
    return IterVar(_as_range(dom), Var(name or tag), IterVar.ThreadIndex, tag)


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "") -> IterVar:
    """An axis to reduce over: ``dom`` is ``(begin, end)``, a Range or an extent."""
    return IterVar(_as_range(dom), Var(name), IterVar.CommReduce, thread_tag)


def _as_range(dom: Any) -> Range | None:
    if dom is None or isinstance(dom, Range):
        return dom
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise ArgumentError(f"a range is expected to be (begin, end), got {len(dom)} values")
        return Range(*(_dim_or_begin(d) for d in dom))
    return Range(_dim(dom))


def _dim_or_begin(d: Any) -> Any:
    return d if isinstance(d, PrimExpr) and not isinstance(d, IntImm) else int(d)
