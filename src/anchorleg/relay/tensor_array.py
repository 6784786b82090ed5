"""Tensor arrays: lists of tensors held in a data type, written as texts of the graph language.

The dynamic kind has one type per dtype, with a constructor per rank from 0 to 6.  The static kind has one type per dtype and
shape, where a dimension may be ``Any``.  Both offer create, read, write, take, concatenate, unstack, scatter, split, stack, gather.
"""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import Any as AnyDim
from ..support.errors import ArgumentError
from .library import add_text

MAX_RANK = 6
DTYPES = ("float32", "float16", "float64", "int32", "uint8", "int8", "int16", "uint16", "int64")
Shape = Sequence[Any]


def tensor_text(shape: Shape, dtype: str) -> str:
    """A tensor type as text."""
    dims = ", ".join("?" if isinstance(d, AnyDim) else str(int(d)) for d in shape)
    return f"Tensor[({dims}), {dtype}]" if len(shape) else dtype


def static_name(canonical: str, dtype: str, shape: Shape, batch_dim: int | None = None, extra_shapes: dict[str, Shape] | None = None) -> str:
    """The name of a type, constructor or function of the static kind."""
    shown = _dims(shape) + "".join(f"_{n}_{_dims(s)}" for n, s in (extra_shapes or {}).items())
    shown = shown or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{shown}_t"
    if batch_dim != 1 or canonical in ("tensor_constructor", "tensor_nil"):
        return f"{canonical}_{dtype}_{shown}"
    return f"{canonical}_{dtype}_batch{batch_dim}_{shown}"


def _dims(shape: Shape) -> str:
    return "_".join("any" if isinstance(d, AnyDim) else str(int(d)) for d in shape)


class _Ops:
    """What both kinds share: names, and adding texts to the prelude's module."""

    def __init__(self, prelude: Any, dtype: str) -> None:
        self.prelude, self.dtype = prelude, dtype

    def get_name(self, canonical: str) -> str:
        """The full name of a type, constructor or function."""
        raise NotImplementedError

    @property
    def type_text(self) -> str:
        """The tensor type as text."""
        return self.get_name("tensor_t")

    def _has(self, name: str) -> bool:
        return name in self.prelude.mod

    def _add(self, text: str) -> None:
        add_text(self.prelude.mod, text, "tensor_array")

    def define_tensor_array(self) -> None:
        """``tensor_array(n)``: a list of n empty places."""
        make, t = self.get_name("tensor_array"), self.type_text
        self._add(f"""
        def @{make}(%n: int32) -> List[{t}] {{
          if (%n == 0) {{ Nil }} else {{ Cons({self.get_name("tensor_nil")}, @{make}(%n - 1)) }}
        }}""")

    def define_tensor_array_read(self) -> None:
        """``tensor_array_read(list, n)``: the element at n."""
        t = self.type_text
        self._add(f"def @{self.get_name('tensor_array_read')}(%ta: List[{t}], %n: int32) -> {t} {{ @nth(%ta, %n) }}")

    def define_tensor_array_write(self) -> None:
        """``tensor_array_write(list, n, v)``: the list with v at n."""
        t = self.type_text
        self._add(f"def @{self.get_name('tensor_array_write')}(%ta: List[{t}], %n: int32, %v: {t}) -> List[{t}] {{ @update(%ta, %n, %v) }}")

    def _scatter(self, name: str, helper: str, indices: Shape, limit: str) -> None:
        t, place = self.type_text, tensor_text(indices, "int32")
        write, read = self.get_name("tensor_array_write"), self.get_name("tensor_array_read")
        self._add(f"""
        def @{helper}(%ta: List[{t}], %at: int32, %end: int32, %indices: {place}, %values: List[{t}]) -> List[{t}] {{
          if (%at == %end) {{
            %ta
          }} else {{
            @{helper}(@{write}(%ta, take(%indices, %at), @{read}(%values, %at)), %at + 1, %end, %indices, %values)
          }}
        }}
        def @{name}(%ta: List[{t}], %indices: {place}, %values: List[{t}]) -> List[{t}] {{
          @{helper}(%ta, 0, {limit}, %indices, %values)
        }}""")

    def _split(self, value_type: str, take: str, out_type: str, write: str, lengths: Shape, limit: str) -> None:
        name, helper, sizes = self.get_name("tensor_array_split"), self.get_name("ta_split_helper"), tensor_text(lengths, "int32")
        self._add(f"""
        def @{helper}(%ta: List[{out_type}], %value: {value_type}, %offset: int32, %at: int32, %end: int32, %lengths: {sizes})
            -> List[{out_type}] {{
          if (%at == %end) {{
            %ta
          }} else {{
            let %next = %offset + take(%lengths, %at);
            @{write}(@{helper}(%ta, %value, %next, %at + 1, %end, %lengths), %at, @{take}(%value, %offset, %next))
          }}
        }}
        def @{name}(%ta: List[{out_type}], %value: {value_type}, %lengths: {sizes}) -> List[{out_type}] {{
          @{helper}(%ta, %value, 0, 0, {limit}, %lengths)
        }}""")

    def _concat(self, t: str, empty: str, join: str) -> None:
        name = self.get_name("tensor_array_concat")
        self._add(f"""
        def @{name}(%ta: List[{t}]) -> {t} {{
          match? (%ta) {{
            Nil => {empty},
            Cons(%first, %others) => {{
              match? (%others) {{ Nil => %first, _ => @{join}(%first, @{name}(%others)) }}
            }},
          }}
        }}""")

    def _gather(self, out_type: str) -> None:
        name, helper, t = self.get_name("tensor_array_gather"), self.get_name("tensor_array_gather_helper"), self.type_text
        stack, read = self.get_name("tensor_array_stack"), self.get_name("tensor_array_read")
        self._add(f"""
        def @{helper}(%ta: List[{t}], %got: List[{t}], %left: int32, %end: int32, %indices: Tensor[(?), int32]) -> {out_type} {{
          if (%left == 0) {{
            @{stack}(%got)
          }} else {{
            @{helper}(%ta, Cons(@{read}(%ta, take(%indices, %left - 1)), %got), %left - 1, %end, %indices)
          }}
        }}
        def @{name}(%ta: List[{t}], %indices: Tensor[(?), int32]) -> {out_type} {{
          let %n = {_LENGTH.format("%indices")};
          @{helper}(%ta, Nil, %n, %n, %indices)
        }}""")

    def _unstack(self, name: str, helper: str, whole: str, make: str, out_type: str) -> None:
        self._add(f"""
        def @{helper}(%at: int32, %end: int32, %tensor: {whole}) -> List[{out_type}] {{
          if (%at == %end) {{
            Nil
          }} else {{
            Cons({make}(take(%tensor, %at, axis=0)), @{helper}(%at + 1, %end, %tensor))
          }}
        }}
        def @{name}(%tensor: {whole}) -> List[{out_type}] {{ @{helper}(0, {_LENGTH.format("%tensor")}, %tensor) }}""")


_LENGTH = 'take(shape_of({}, dtype="int32"), 0)'
_RANGE = 'take({}, arange(%lower, %upper, 1, dtype="int32"), axis=0)'


class TensorArrayOps(_Ops):
    """Tensor arrays of tensors of any shape up to rank 6."""

    def get_name(self, canonical: str) -> str:
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> Any:
        """The function of that name."""
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> Any:
        """The type of that name."""
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> Any:
        """The constructor of that name."""
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    def _ctor(self, rank: int) -> str:
        return self.get_name(f"tensor{rank}")

    def define_tensor_adt(self) -> None:
        """The data type: empty, or a tensor of each rank."""
        ranks = ", ".join(f"{self._ctor(r)}({tensor_text([AnyDim()] * r, self.dtype)})" for r in range(MAX_RANK + 1))
        self._add(f"type {self.type_text} {{ {self.get_name('tensor_nil')}, {ranks} }}")

    def _by_rank(self, ranks: range, value: str, shift: int = 0) -> str:
        """The clauses that unpack a tensor of each rank and pack ``value``, in which ``%t`` is the tensor."""
        return ", ".join(f"{self._ctor(r)}(%t) => {self._ctor(r + shift)}({value})" for r in ranks)

    def define_tensor_take(self) -> None:
        """``tensor_take(t, lower, upper)``: that range of the first axis."""
        t = self.type_text
        self._add(f"def @{self.get_name('tensor_take')}(%tensor: {t}, %lower: int32, %upper: int32) -> {t} "
                  f"{{ match? (%tensor) {{ {self._by_rank(range(1, MAX_RANK + 1), _RANGE.format('%t'))} }} }}")

    def define_tensor_expand_dims(self) -> None:
        """``tensor_expand_dims(t)``: a new first axis of length 1."""
        t = self.type_text
        self._add(f"def @{self.get_name('tensor_expand_dims')}(%tensor: {t}) -> {t} "
                  f"{{ match? (%tensor) {{ {self._by_rank(range(MAX_RANK), 'expand_dims(%t, axis=0)', 1)} }} }}")

    def define_tensor_concat(self) -> None:
        """``tensor_concatenate(a, b)`` along the first axis, for ranks 1 to 4."""
        t = self.type_text
        both = ", ".join(f"{self._ctor(r)}(%a) => {{ match? (%right) {{ {self._ctor(r)}(%b) => {self._ctor(r)}(concatenate((%a, %b))) }} }}"
                         for r in range(1, 5))
        self._add(f"def @{self.get_name('tensor_concatenate')}(%left: {t}, %right: {t}) -> {t} {{ match? (%left) {{ {both} }} }}")

    def define_tensor_array_unstack(self, rank: int) -> None:
        """``tensor_array_unstack_tensor<rank>(t)``: the list of a tensor's slices along the first axis."""
        name = f"tensor_array_unstack_tensor{rank}"
        whole = tensor_text([AnyDim()] * rank, self.dtype)
        self._unstack(self.get_name(name), self.get_name(name + "_helper"), whole, self._ctor(rank - 1), self.type_text)

    def define_tensor_array_scatter(self) -> None:
        """``tensor_array_scatter(list, indices, values)``: the list with each value at its index."""
        self._scatter(self.get_name("tensor_array_scatter"), self.get_name("tensor_array_scatter_helper"), [AnyDim()],
                      _LENGTH.format("%indices"))

    def define_tensor_array_split(self) -> None:
        """``tensor_array_split(list, t, lengths)``: pieces of t of those lengths, written into the list."""
        self._split(self.type_text, self.get_name("tensor_take"), self.type_text, self.get_name("tensor_array_write"), [AnyDim()],
                    _LENGTH.format("%lengths"))

    def define_tensor_array_concat(self) -> None:
        """``tensor_array_concat(list)``: all elements joined along the first axis."""
        self._concat(self.type_text, self.get_name("tensor_nil"), self.get_name("tensor_concatenate"))

    def define_tensor_array_stack(self) -> None:
        """``tensor_array_stack(list)``: all elements joined along a new first axis."""
        t = self.type_text
        self._add(f"""
        def @{self.get_name("tensor_array_stack")}(%ta: List[{t}]) -> {t} {{
          let %rows = @map(@{self.get_name("tensor_expand_dims")}, %ta);
          @foldl(@{self.get_name("tensor_concatenate")}, @hd(%rows), @tl(%rows))
        }}""")

    def define_tensor_array_gather(self) -> None:
        """``tensor_array_gather(list, indices)``: the elements at those indices, stacked."""
        self._gather(self.type_text)

    def register(self) -> None:
        """Adds the type and all functions to the prelude's module."""
        if self.type_text in {g.name_hint for g in self.prelude.mod.type_definitions}:
            return
        for define in (self.define_tensor_adt, self.define_tensor_take, self.define_tensor_expand_dims, self.define_tensor_concat,
                       self.define_tensor_array, self.define_tensor_array_read, self.define_tensor_array_write,
                       self.define_tensor_array_scatter, self.define_tensor_array_split, self.define_tensor_array_concat,
                       self.define_tensor_array_stack, self.define_tensor_array_gather):
            define()
        for rank in range(1, MAX_RANK + 1):
            self.define_tensor_array_unstack(rank)


class StaticTensorArrayOps(_Ops):
    """Tensor arrays of tensors of one shape; ``batch_dim`` 1 says that stacking yields one element."""

    def __init__(self, prelude: Any, dtype: str, shape: Shape, batch_dim: int | None = None) -> None:
        super().__init__(prelude, dtype)
        self.shape, self.batch_dim = tuple(shape), batch_dim

    def get_name(self, canonical: str, extra_shapes: dict[str, Shape] | None = None) -> str:
        return static_name(canonical, self.dtype, self.shape, self.batch_dim, extra_shapes)

    def get_global_var(self, canonical: str) -> Any:
        """The function of that name."""
        return self.prelude.get_global_var_static(canonical, self.dtype, self.shape, self.batch_dim)

    def get_type(self, canonical: str) -> Any:
        """The type of that name."""
        return self.prelude.get_type_static(canonical, self.dtype, self.shape)

    def get_ctor(self, canonical: str) -> Any:
        """The constructor of that name."""
        return self.prelude.get_ctor_static("tensor_t", canonical, self.dtype, self.shape)

    def define_tensor_adt(self) -> None:
        """The data type: empty, or a tensor."""
        if self.type_text in {g.name_hint for g in self.prelude.mod.type_definitions}:
            return
        held = tensor_text(self.shape, self.dtype)
        self._add(f"type {self.type_text} {{ {self.get_name('tensor_nil')}, {self.get_name('tensor_constructor')}({held}) }}")

    def _of_shape(self, shape: Shape) -> StaticTensorArrayOps:
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape, self.batch_dim)
        other.define_tensor_adt()
        return other

    def _rows(self) -> StaticTensorArrayOps:
        """The same with any number of rows."""
        return self._of_shape((AnyDim(), *self.shape[1:]))

    def _stacked(self) -> StaticTensorArrayOps:
        """The same with a new first axis."""
        return self._of_shape((1 if self.batch_dim == 1 else AnyDim(), *self.shape))

    def define_tensor_take(self) -> None:
        """``tensor_take(t, lower, upper)``: that range of the first axis; none for scalars."""
        name = self.get_name("tensor_take")
        if not self.shape or self._has(name):
            return
        out = self._rows()
        self._add(f"def @{name}(%tensor: {self.type_text}, %lower: int32, %upper: int32) -> {out.type_text} {{ match? (%tensor) {{ "
                  f"{self.get_name('tensor_constructor')}(%t) => {out.get_name('tensor_constructor')}({_RANGE.format('%t')}) }} }}")

    def define_tensor_concatenate(self) -> None:
        """``tensor_concatenate(a, b)`` along the first axis; none for scalars."""
        name, make = self.get_name("tensor_concatenate"), self.get_name("tensor_constructor")
        if not self.shape or self._has(name):
            return
        out = self._rows()
        self._add(f"def @{name}(%left: {self.type_text}, %right: {self.type_text}) -> {out.type_text} {{ match? (%left) {{ {make}(%a) => {{ "
                  f"match? (%right) {{ {make}(%b) => {out.get_name('tensor_constructor')}(concatenate((%a, %b))) }} }} }} }}")

    def define_tensor_expand_dims(self) -> None:
        """``tensor_expand_dims(t)``: a new first axis of length 1."""
        out = self._stacked()
        self._add(f"def @{self.get_name('tensor_expand_dims')}(%tensor: {self.type_text}) -> {out.type_text} {{ match? (%tensor) {{ "
                  f"{self.get_name('tensor_constructor')}(%t) => {out.get_name('tensor_constructor')}(expand_dims(%t, axis=0)) }} }}")

    def define_tensor_array_unstack(self) -> None:
        """``tensor_array_unstack(t)``: the list of a tensor's slices along the first axis; none for scalars."""
        if self.shape:
            out = self._of_shape(self.shape[1:])
            self._unstack(self.get_name("tensor_array_unstack"), self.get_name("tensor_array_unstack_helper"),
                          tensor_text(self.shape, self.dtype), out.get_name("tensor_constructor"), out.type_text)

    def define_tensor_array_scatter(self, indices_shape: Shape | None = None, force_update: bool = False) -> None:
        """``tensor_array_scatter(list, indices, values)``; ``indices_shape`` fixes how many there are."""
        extra = {"indices": indices_shape} if indices_shape is not None else None
        name = self.get_name("tensor_array_scatter", extra)
        if self._has(name) and not force_update:
            return
        limit = _LENGTH.format("%indices") if indices_shape is None else str(int(indices_shape[0]))
        self._scatter(name, self.get_name("tensor_array_scatter_helper", extra), indices_shape or [AnyDim()], limit)

    def define_tensor_array_split(self, value_shape: Shape | None = None, lengths_shape: Shape | None = None,
                                  force_update: bool = False) -> None:
        """``tensor_array_split(list, t, lengths)``; the shapes of t and lengths may be fixed.  None for scalars."""
        if not self.shape or (self._has(self.get_name("tensor_array_split")) and not force_update):
            return
        out = self._rows()
        if not self._has(out.get_name("tensor_array_write")):
            out.define_tensor_array_write()
        source = self if value_shape is None else self._of_shape(value_shape)
        source.define_tensor_take()
        limit = _LENGTH.format("%lengths") if lengths_shape is None else str(int(lengths_shape[0]))
        self._split(source.type_text, source.get_name("tensor_take"), out.type_text, out.get_name("tensor_array_write"),
                    lengths_shape or [AnyDim()], limit)

    def define_tensor_array_concat(self) -> None:
        """``tensor_array_concat(list)``: all elements joined along the first axis; none for scalars."""
        if not self.shape or self._has(self.get_name("tensor_array_concat")):
            return
        out = self._rows()
        out.define_tensor_concatenate()
        self._concat(out.type_text, out.get_name("tensor_nil"), out.get_name("tensor_concatenate"))

    def define_tensor_array_stack(self) -> None:
        """``tensor_array_stack(list)``: all elements joined along a new first axis."""
        out = self._stacked()
        out.define_tensor_concatenate()
        joined = "@hd(%rows)" if self.batch_dim == 1 else f"@foldl(@{out.get_name('tensor_concatenate')}, @hd(%rows), @tl(%rows))"
        self._add(f"""
        def @{self.get_name("tensor_array_stack")}(%ta: List[{self.type_text}]) -> {out.type_text} {{
          let %rows = @map(@{self.get_name("tensor_expand_dims")}, %ta);
          {joined}
        }}""")

    def define_tensor_array_gather(self) -> None:
        """``tensor_array_gather(list, indices)``: the elements at those indices, stacked."""
        self._gather(self._stacked().type_text)

    def define_tensor_get_data(self) -> None:
        """``tensor_get_data(t)``: the tensor itself."""
        self._add(f"def @{self.get_name('tensor_get_data')}(%tensor: {self.type_text}) -> {tensor_text(self.shape, self.dtype)} "
                  f"{{ match? (%tensor) {{ {self.get_name('tensor_constructor')}(%t) => %t }} }}")

    def register(self) -> None:
        """Adds the type and all functions to the prelude's module."""
        self.define_tensor_adt()
        for define in (self.define_tensor_take, self.define_tensor_concatenate, self.define_tensor_expand_dims, self.define_tensor_array):
            define()
        for name in ("read", "write"):
            if not self._has(self.get_name(f"tensor_array_{name}")):
                getattr(self, f"define_tensor_array_{name}")()
        for define in (self.define_tensor_array_unstack, self.define_tensor_array_scatter, self.define_tensor_array_split,
                       self.define_tensor_array_concat, self.define_tensor_array_stack, self.define_tensor_array_gather,
                       self.define_tensor_get_data):
            define()


def shape_of_type_name(name: str, dtype: str) -> tuple[Any, ...] | None:
    """The shape in the name of a static tensor type; None for other types."""
    start = f"static_tensor_{dtype}_"
    if not name.startswith(start):
        return None
    shown = name[len(start):].removesuffix("_t")
    if shown == "scalar":
        return ()
    try:
        return tuple(AnyDim() if dim in ("any", "?") else int(dim) for dim in shown.split("_"))
    except ValueError:
        raise ArgumentError(f"{name!r} is not the name of a static tensor type") from None
