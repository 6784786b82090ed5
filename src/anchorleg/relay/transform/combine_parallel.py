"""CombineParallelConv2D / Dense / BatchMatmul: operators that read one input side by side become one wider operator.

before::

    (nn.dense(%x, %w1), nn.dense(%x, %w2), nn.dense(%x, %w3))

after, with ``to_batch=False``::

    %0 = nn.dense(%x, concatenate((%w1, %w2, %w3))); (slice of %0, slice of %0, slice of %0)

The element-wise operators that follow every branch alike (a bias, an activation) move behind the wide operator, so that
the slices are taken last.

All groups are rewritten in one walk.  That no group comes to wait for itself is ensured by levels: an expression's level is
the largest number of such operators on a way to it, and a branch joins only if its weight and the operands of its
followers have no higher level than the shared input.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op, OpPattern
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType
from ...ir.visit import Walker, post_order
from ..analysis.variables import exprs
from ..expr import Call, If, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from ..function import Function
from ..op.registry import make_attrs
from .common import call, carry_type, descends, is_op, map_functions

Branch = list[Call]  # the operator, then the element-wise operators that follow it


class Kind(NamedTuple):
    """One way to combine an operator.

    ``key`` groups calls that fit together (None: never), ``combine`` makes the wide call from the calls (their arguments
    rewritten), ``fits`` says whether the second operand of a follower can be combined, ``operand`` combines such operands,
    ``parts`` takes the results of the branches out of the wide one.
    """

    op_name: str
    key: Callable[[Call], Any]
    combine: Callable[[Sequence[Call], RelayExpr, Sequence[RelayExpr]], Call]
    fits: Callable[[Call, Call], bool]
    operand: Callable[[Sequence[Call], Sequence[Call], Sequence[RelayExpr]], RelayExpr]
    parts: Callable[[RelayExpr, Sequence[Call]], list[RelayExpr]]


def _static(node: RelayExpr) -> bool:
    args = node.args if isinstance(node, Call) else ()
    return all(isinstance(t, TensorType) and t.is_static for t in [node._checked_type, *(a._checked_type for a in args)])


def _dims(node: RelayExpr) -> tuple[Any, ...]:
    return node.checked_type.dims  # type: ignore[attr-defined]


def _concat(parts: Sequence[RelayExpr], axis: int) -> RelayExpr:
    return call("concatenate", Tuple(list(parts)), attrs=make_attrs("concatenate", axis=axis))


def _stack(parts: Sequence[RelayExpr]) -> RelayExpr:
    return call("stack", Tuple(list(parts)), attrs=make_attrs("stack", axis=0))


def _attrs_text(attrs: Any, *left_out: str) -> str:
    return repr([(k, v) for k, v in attrs.items() if k not in left_out])


# -------------------------------------------------------------------------------------- side by side along one output axis


def _plain_layout(layout: str) -> bool:
    return layout.isalpha() and layout.isupper()


def _conv_key(c: Call) -> Any:
    layout = c.attrs.kernel_layout
    if c.attrs.groups != 1 or layout not in ("OIHW", "HWIO") or not _plain_layout(c.attrs.data_layout + c.attrs.out_layout):
        return None
    kernel = tuple(d for d, axis in zip(_dims(c.args[1]), layout) if axis != "O")
    return kernel, _attrs_text(c.attrs, "channels")


def _conv_combine(calls: Sequence[Call], data: RelayExpr, weights: Sequence[RelayExpr]) -> Call:
    first = calls[0]
    axis = first.attrs.kernel_layout.index("O")
    channels = sum(_dims(c.args[1])[axis] for c in calls)
    return call("nn.conv2d", data, _concat(weights, axis), attrs=first.attrs.replace(channels=channels), span=first.span)


def _conv_axis(c: Call) -> int:
    return (c.attrs.out_layout or c.attrs.data_layout).index("C")


def _dense_key(c: Call) -> Any:
    return _dims(c.args[1])[1:], _attrs_text(c.attrs, "units")


def _dense_combine(calls: Sequence[Call], data: RelayExpr, weights: Sequence[RelayExpr]) -> Call:
    first = calls[0]
    units = sum(_dims(c)[-1] for c in calls)
    return call("nn.dense", data, _concat(weights, 0), attrs=first.attrs.replace(units=units), span=first.span)


def _last_axis(c: Call) -> int:
    return len(_dims(c)) - 1


def _batch_key(c: Call) -> Any:
    dims = _dims(c.args[1])
    return dims[0], dims[2] if c.attrs.transpose_b else dims[1], _attrs_text(c.attrs)


def _batch_combine(calls: Sequence[Call], data: RelayExpr, weights: Sequence[RelayExpr]) -> Call:
    first = calls[0]
    axis = 1 if first.attrs.transpose_b else 2
    return call("nn.batch_matmul", data, _concat(weights, axis), attrs=first.attrs, span=first.span)


def _side_by_side(op_name: str, key: Any, combine: Any, axis: Callable[[Call], int], repeats: bool = False) -> Kind:
    """Results lie along one axis of the output; ``repeats``: an operand of extent 1 there is repeated."""

    def position(root: Call, operand: RelayExpr) -> int:
        return axis(root) - (len(_dims(root)) - len(_dims(operand)))

    def fits(root: Call, follower: Call) -> bool:
        operand = follower.args[1]
        if is_op(follower, "nn.bias_add"):
            return follower.attrs.axis % len(_dims(root)) == axis(root)
        at = position(root, operand)
        if repeats and (at < 0 or _dims(operand)[at] == 1):
            return at >= 0 or not _dims(operand)
        return at >= 0 and _dims(operand)[at] == _dims(root)[axis(root)]

    def along(root: Call, operand: RelayExpr, new: RelayExpr) -> RelayExpr:
        """The operand with the branch's extent along the axis."""
        dims, width = _dims(operand), _dims(root)[axis(root)]
        if not dims:
            new = call("expand_dims", new, attrs=make_attrs("expand_dims", axis=-1, num_newaxis=1))
        at = max(0, position(root, operand))
        if repeats and (dims[at] if dims else 1) == 1 and width != 1:
            return call("repeat", new, attrs=make_attrs("repeat", repeats=width, axis=at))
        return new

    def operand(roots: Sequence[Call], followers: Sequence[Call], new: Sequence[RelayExpr]) -> RelayExpr:
        if is_op(followers[0], "nn.bias_add"):
            return _concat(new, 0)
        at = max(0, position(roots[0], followers[0].args[1]))
        return _concat([along(r, f.args[1], n) for r, f, n in zip(roots, followers, new)], at)

    def parts(wide: RelayExpr, roots: Sequence[Call]) -> list[RelayExpr]:
        at, start, found = axis(roots[0]), 0, []
        for root in roots:
            width = _dims(root)[at]
            attrs = make_attrs("strided_slice", begin=[0] * at + [start], end=[-1] * at + [width], strides=[1] * (at + 1), slice_mode="size")
            found.append(call("strided_slice", wide, attrs=attrs))
            start += width
        return found

    return Kind(op_name, key, combine, fits, operand, parts)


# ------------------------------------------------------------------------------------------------------- stacked in a batch


def _stacked_key(c: Call) -> Any:
    return (_dims(c.args[1]), _attrs_text(c.attrs, "units")) if len(_dims(c.args[0])) == 2 else None


def _stacked_combine(calls: Sequence[Call], data: RelayExpr, weights: Sequence[RelayExpr]) -> Call:
    attrs = make_attrs("nn.batch_matmul", out_dtype=calls[0].attrs.out_dtype, transpose_a=False, transpose_b=True)
    return call("nn.batch_matmul", _stack([data] * len(calls)), _stack(weights), attrs=attrs, span=calls[0].span)


def _stacked_fits(root: Call, follower: Call) -> bool:
    return not is_op(follower, "nn.bias_add") and len(_dims(follower.args[1])) <= 2


def _stacked_operand(roots: Sequence[Call], followers: Sequence[Call], new: Sequence[RelayExpr]) -> RelayExpr:
    missing = 2 - len(_dims(followers[0].args[1]))
    if missing:
        new = [call("expand_dims", n, attrs=make_attrs("expand_dims", axis=0, num_newaxis=missing)) for n in new]
    return _stack(new)


def _stacked_parts(wide: RelayExpr, roots: Sequence[Call]) -> list[RelayExpr]:
    split = call("split", wide, attrs=make_attrs("split", indices_or_sections=len(roots), axis=0))
    return [call("squeeze", TupleGetItem(split, i), attrs=make_attrs("squeeze", axis=[0])) for i in range(len(roots))]


CONV2D = _side_by_side("nn.conv2d", _conv_key, _conv_combine, _conv_axis)
DENSE = _side_by_side("nn.dense", _dense_key, _dense_combine, _last_axis, repeats=True)
BATCH_MATMUL = _side_by_side("nn.batch_matmul", _batch_key, _batch_combine, _last_axis)
STACKED_DENSE = Kind("nn.dense", _stacked_key, _stacked_combine, _stacked_fits, _stacked_operand, _stacked_parts)


# --------------------------------------------------------------------------------------------------------- finding branches


def _always_evaluated(node: Node) -> list[Node]:
    """The expressions that are evaluated whenever ``node`` is, in the scope it is in."""
    if isinstance(node, Call):
        return list(node.args)
    if isinstance(node, If):
        return [node.cond]
    if isinstance(node, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
        return node.children()
    return []


class _Finder:
    """The groups of one function: who reads each expression, and at what level each lies."""

    def __init__(self, func: Function, kind: Kind) -> None:
        self.kind = kind
        self.region = list(post_order(func.body, _always_evaluated))
        self.level: dict[int, int] = {}
        for node in self.region:
            below = max((self.level[id(c)] for c in _always_evaluated(node)), default=0)
            self.level[id(node)] = below + is_op(node, kind.op_name)
        self.readers: dict[int, list[RelayExpr]] = {}
        for reader in exprs(func):
            for child in reader.children():
                self.readers.setdefault(id(child), []).append(reader)  # type: ignore[arg-type]

    def groups(self, least: int) -> list[list[Branch]]:
        """The branches of each group, in program order."""
        found: dict[Any, list[Call]] = {}
        for node in self.region:
            if is_op(node, self.kind.op_name) and _static(node) and self._early(node.args[1], node):  # type: ignore[attr-defined,arg-type]
                key = self.kind.key(node)  # type: ignore[arg-type]
                if key is not None:
                    full = (id(node.args[0]), node.args[1].checked_type.dtype, key)  # type: ignore[attr-defined]
                    found.setdefault(full, []).append(node)  # type: ignore[arg-type]
        return [self._branches(calls) for calls in found.values() if len(calls) >= max(2, least)]

    def _early(self, operand: RelayExpr, root: Call) -> bool:
        return self.level[id(operand)] <= self.level[id(root.args[0])]

    def _branches(self, calls: list[Call]) -> list[Branch]:
        """Each call with the element-wise operators that follow all calls of the group alike."""
        branches = [[c] for c in calls]
        while True:
            following = [self._only_reader(b[-1]) for b in branches]
            if any(f is None for f in following) or not self._alike(following, branches):  # type: ignore[arg-type]
                return branches
            for branch, follower in zip(branches, following):
                branch.append(follower)  # type: ignore[arg-type]

    def _only_reader(self, node: RelayExpr) -> RelayExpr | None:
        found = self.readers.get(id(node), [])
        return found[0] if len(found) == 1 and id(found[0]) in self.level else None

    def _alike(self, following: Sequence[RelayExpr], branches: list[Branch]) -> bool:
        first = following[0]
        if len({id(f) for f in following}) != len(following) or not _elementwise(first):
            return False
        for node, branch in zip(following, branches):
            if not isinstance(node, Call) or node.op is not first.op or repr(node.attrs) != repr(first.attrs):  # type: ignore[attr-defined]
                return False
            if not self._follows(node, branch) or len(node.args) == 2 and _outline(node) != _outline(first):  # type: ignore[arg-type]
                return False
        return True

    def _follows(self, node: Call, branch: Branch) -> bool:
        """Whether a follower keeps the output's shape, and its second operand (if any) can be combined."""
        root = branch[0]
        if len(node.args) not in (1, 2) or node.args[0] is not branch[-1] or not _static(node) or _dims(node) != _dims(root):
            return False
        return len(node.args) == 1 or self._early(node.args[1], root) and self.kind.fits(root, node)


def _elementwise(node: RelayExpr) -> bool:
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.get_attr("TOpIsStateful"):
        return False
    return int(node.op.get_attr("TOpPattern", OpPattern.OPAQUE)) <= OpPattern.BROADCAST and not is_op(node, "expand_dims")


def _outline(node: Call) -> Any:
    return len(_dims(node.args[1])), node.args[1].checked_type.dtype  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------- rewriting


class _Combiner(Walker):
    """Rewrites the last operator of each branch as a part of its group's wide result."""

    def __init__(self, kind: Kind, groups: list[list[Branch]]) -> None:
        super().__init__()
        self.kind = kind
        self.group_of = {id(b[-1]): (g, i) for g in groups for i, b in enumerate(g)}
        self.made: dict[int, list[RelayExpr]] = {}

    def visit_Call(self, node: Call) -> Any:
        if id(node) not in self.group_of:
            op, *args = yield [node.op, *node.args]
            return carry_type(node, node.replace(op=op, args=tuple(args)))
        group, index = self.group_of[id(node)]
        if id(group) not in self.made:
            inputs = yield _inputs(group)
            self.made[id(group)] = self._combined(group, inputs)
        return self.made[id(group)][index]

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        return carry_type(node, node.map_children(lambda c: table[id(c)]))

    def _combined(self, group: list[Branch], inputs: list[RelayExpr]) -> list[RelayExpr]:
        roots, width = [b[0] for b in group], len(group)
        wide: RelayExpr = self.kind.combine(roots, inputs[0], inputs[1:1 + width])
        at = 1 + width
        for followers in zip(*(b[1:] for b in group)):
            others: list[RelayExpr] = []
            if len(followers[0].args) == 2:
                others.append(self.kind.operand(roots, followers, inputs[at:at + width]))
                at += width
            wide = call(followers[0].op.name, wide, *others, attrs=followers[0].attrs, span=followers[0].span)
        return self.kind.parts(wide, roots)


def _inputs(group: list[Branch]) -> list[RelayExpr]:
    """What a group reads: the shared input, the weights, and the operands of the followers, step by step."""
    found = [group[0][0].args[0], *(b[0].args[1] for b in group)]
    for followers in zip(*(b[1:] for b in group)):
        found.extend(f.args[1] for f in followers if len(f.args) == 2)
    return found


def combine(func: Function, kind: Kind, least: int) -> Function:
    """One function with its parallel operators of a kind combined, group by group."""
    if sum(is_op(n, kind.op_name) for n in exprs(func)) < max(2, least):
        return func
    groups = _Finder(func, kind).groups(least)
    return _Combiner(kind, groups).visit(func) if groups else func


def _pass(name: str, kind: Kind, least: int) -> Pass:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: combine(f, kind, least))

    return ModulePass(run, PassInfo(4, name, ["InferType"]))


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Combines convolutions that read one tensor with equal settings."""
    return _pass("CombineParallelConv2D", CONV2D, min_num_branches)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Combines dense layers that read one tensor: equal ones into a batched product, or with ``to_batch`` false into one wide layer."""
    return _pass("CombineParallelDense", STACKED_DENSE if to_batch else DENSE, min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Combines batched matrix products that share their left operand."""
    return _pass("CombineParallelBatchMatmul", BATCH_MATMUL, min_num_branches)


register_pass("CombineParallelConv2D", CombineParallelConv2D)
register_pass("CombineParallelDense", lambda: CombineParallelDense(to_batch=False))  # in the build: one wide product beats a batch of copies
register_pass("CombineParallelBatchMatmul", CombineParallelBatchMatmul)
__all__ = ["CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul"]
