"""CombineParallelConv2D / Dense / BatchMatmul: operators that read one input side by side become one wider operator.

before::

    (nn.dense(%x, %w1), nn.dense(%x, %w2), nn.dense(%x, %w3))

after::

    %0 = nn.dense(%x, concatenate((%w1, %w2, %w3))); (slice of %0, slice of %0, slice of %0)

The element-wise operators that follow every branch alike (a bias, an activation) move behind the wide operator, so that
the slices are taken last.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType
from ..analysis.variables import exprs
from ..expr import Call, Tuple
from ..function import Function
from ..op.registry import make_attrs
from .common import call, is_op, map_functions, rewrite_exprs

Branch = list[Call]  # the operator, then the element-wise operators that follow it


class Kind(NamedTuple):
    """One operator that can be combined.

    ``key`` groups calls that fit together (None: never), ``combine`` makes the wide call from a group, ``axis`` is the
    output axis along which results lie side by side, ``width`` a call's extent there.
    """

    op_name: str
    key: Callable[[Call], Any]
    combine: Callable[[Sequence[Call]], Call]
    axis: Callable[[Call], int]
    width: Callable[[Call], int]


def _static(call_: Call) -> bool:
    return all(isinstance(t, TensorType) and t.is_static for t in [call_.checked_type, *(a.checked_type for a in call_.args)])


def _concat(parts: Sequence[RelayExpr], axis: int) -> RelayExpr:
    return call("concatenate", Tuple(list(parts)), attrs=make_attrs("concatenate", axis=axis))


def _attrs_text(attrs: Any, *left_out: str) -> str:
    return repr([(k, v) for k, v in attrs.items() if k not in left_out])


def _conv_key(c: Call) -> Any:
    if c.attrs.groups != 1 or not _static(c) or c.attrs.kernel_layout not in ("OIHW", "HWIO"):
        return None
    layout = c.attrs.kernel_layout
    dims = c.args[1].checked_type.dims
    kernel = tuple(d for d, axis in zip(dims, layout) if axis != "O")
    return id(c.args[0]), kernel, c.args[1].checked_type.dtype, _attrs_text(c.attrs, "channels")


def _conv_combine(calls: Sequence[Call]) -> Call:
    first = calls[0]
    axis = first.attrs.kernel_layout.index("O")
    weight = _concat([c.args[1] for c in calls], axis)
    channels = sum(_conv_width(c) for c in calls)
    return call("nn.conv2d", first.args[0], weight, attrs=first.attrs.replace(channels=channels), span=first.span)


def _conv_axis(c: Call) -> int:
    return (c.attrs.out_layout or c.attrs.data_layout).index("C")


def _conv_width(c: Call) -> int:
    return int(c.args[1].checked_type.dims[c.attrs.kernel_layout.index("O")])


def _dense_key(c: Call) -> Any:
    if not _static(c):
        return None
    return id(c.args[0]), c.args[1].checked_type.dims[1:], c.args[1].checked_type.dtype, _attrs_text(c.attrs, "units")


def _dense_combine(calls: Sequence[Call]) -> Call:
    first = calls[0]
    units = sum(_last(c) for c in calls)
    attrs = first.attrs.replace(units=units)
    return call("nn.dense", first.args[0], _concat([c.args[1] for c in calls], 0), attrs=attrs, span=first.span)


def _last(c: Call) -> int:
    return int(c.checked_type.dims[-1])


def _last_axis(c: Call) -> int:
    return len(c.checked_type.dims) - 1


def _batch_key(c: Call) -> Any:
    if not _static(c):
        return None
    dims = c.args[1].checked_type.dims
    inner = dims[2] if c.attrs.transpose_b else dims[1]
    return id(c.args[0]), dims[0], inner, c.args[1].checked_type.dtype, _attrs_text(c.attrs)


def _batch_combine(calls: Sequence[Call]) -> Call:
    first = calls[0]
    axis = 1 if first.attrs.transpose_b else 2
    return call("nn.batch_matmul", first.args[0], _concat([c.args[1] for c in calls], axis), attrs=first.attrs, span=first.span)


CONV2D = Kind("nn.conv2d", _conv_key, _conv_combine, _conv_axis, _conv_width)
DENSE = Kind("nn.dense", _dense_key, _dense_combine, _last_axis, _last)
BATCH_MATMUL = Kind("nn.batch_matmul", _batch_key, _batch_combine, _last_axis, _last)
_FOLLOWERS = ("add", "multiply", "subtract", "nn.bias_add", "nn.relu", "clip", "sigmoid", "tanh", "nn.leaky_relu")


class _Users:
    """Who reads each expression of a function."""

    def __init__(self, func: Function) -> None:
        self.table: dict[int, list[RelayExpr]] = {}
        for node in exprs(func):
            for child in node.children():
                self.table.setdefault(id(child), []).append(node)  # type: ignore[arg-type]

    def only(self, node: RelayExpr) -> RelayExpr | None:
        """The single reader, or None."""
        found = self.table.get(id(node), [])
        return found[0] if len(found) == 1 else None


def find_groups(func: Function, kind: Kind, least: int) -> list[list[Call]]:
    """The groups of at least ``least`` calls that can be combined, in program order."""
    groups: dict[Any, list[Call]] = {}
    for node in exprs(func):
        if is_op(node, kind.op_name):
            key = kind.key(node)  # type: ignore[arg-type]
            if key is not None:
                groups.setdefault(key, []).append(node)  # type: ignore[arg-type]
    return [g for g in groups.values() if len(g) >= max(2, least) and _independent(g)]


def _independent(group: list[Call]) -> bool:
    """No call's weight is made from another call of the group."""
    members = {id(c) for c in group}
    return not any(id(n) in members for c in group for n in exprs(c.args[1]))


def _branches(group: list[Call], kind: Kind, users: _Users) -> list[Branch]:
    """Each call with the element-wise operators that follow all calls of the group alike."""
    branches = [[c] for c in group]
    while True:
        following = [users.only(b[-1]) for b in branches]
        if any(f is None for f in following) or not _alike(following, branches, kind):  # type: ignore[arg-type]
            return branches
        for branch, follower in zip(branches, following):
            branch.append(follower)  # type: ignore[arg-type]


def _alike(following: Sequence[RelayExpr], branches: list[Branch], kind: Kind) -> bool:
    first = following[0]
    if len({id(f) for f in following}) != len(following):
        return False
    for node, branch in zip(following, branches):
        if not is_op(node, *_FOLLOWERS) or node.op is not first.op or repr(node.attrs) != repr(first.attrs):  # type: ignore[attr-defined]
            return False
        if node.args[0] is not branch[-1] or not _sideways(node, branch[0], kind):  # type: ignore[attr-defined]
            return False
        if len(node.args) == 2 and _shape_kind(node, kind) != _shape_kind(first, kind):  # type: ignore[attr-defined,arg-type]
            return False
    return True


def _shape_kind(node: Call, kind: Kind) -> Any:
    dims = node.args[1].checked_type.dims
    at = _operand_axis(node, kind)
    return [d for i, d in enumerate(dims) if i != at], node.args[1].checked_type.dtype


def _operand_axis(node: Call, kind: Kind) -> int | None:
    """The axis of the second operand along which operands can be laid side by side."""
    if is_op(node, "nn.bias_add"):
        return 0
    out_rank = len(node.checked_type.dims)
    at = kind.axis(node if not is_op(node, *_FOLLOWERS) else _root(node)) - (out_rank - len(node.args[1].checked_type.dims))
    return at if at >= 0 else None


def _root(node: Call) -> Call:
    while is_op(node, *_FOLLOWERS):
        node = node.args[0]  # type: ignore[assignment]
    return node


def _sideways(node: RelayExpr, root: Call, kind: Kind) -> bool:
    """Whether a follower keeps the output's shape, and its second operand (if any) spans the combined axis."""
    if not isinstance(node, Call) or not _static(node) or node.checked_type.dims != root.checked_type.dims:
        return False
    if len(node.args) == 1:
        return True
    if is_op(node, "nn.bias_add"):
        return node.attrs.axis % len(node.checked_type.dims) == kind.axis(root)
    at = _operand_axis(node, kind)
    return at is not None and node.args[1].checked_type.dims[at] == kind.width(root)


def _combine_group(branches: list[Branch], kind: Kind) -> dict[int, RelayExpr]:
    """Replacement for the last operator of each branch."""
    roots = [b[0] for b in branches]
    wide: RelayExpr = kind.combine(roots)
    for step in range(1, len(branches[0])):
        node = branches[0][step]
        others: list[RelayExpr] = []
        if len(node.args) == 2:
            at = _operand_axis(node, kind)
            others = [_concat([b[step].args[1] for b in branches], at)]  # type: ignore[arg-type]
        wide = call(node.op.name, wide, *others, attrs=node.attrs)  # type: ignore[attr-defined]
    replacements: dict[int, RelayExpr] = {}
    start = 0
    for branch in branches:
        width = kind.width(branch[0])
        attrs = make_attrs("strided_slice", begin=[start], end=[start + width], strides=[1], axes=[kind.axis(branch[0])])
        replacements[id(branch[-1])] = call("strided_slice", wide, attrs=attrs)
        start += width
    return replacements


def combine(func: Function, kind: Kind, least: int) -> Function:
    """One function with its parallel operators of a kind combined, group by group."""
    done: set[int] = set()
    while True:
        groups = [g for g in find_groups(func, kind, least) if not {id(c) for c in g} & done]
        if not groups:
            return func
        group = groups[0]
        done.update(id(c) for c in group)
        replacements = _combine_group(_branches(group, kind, _Users(func)), kind)
        func = _replaced(func, replacements)


def _replaced(func: Function, replacements: dict[int, RelayExpr]) -> Function:
    from .infer_type import infer_type

    new = rewrite_exprs(func, lambda old, node: replacements.get(id(old), node))
    return infer_type(new)  # type: ignore[return-value]


def _pass(name: str, kind: Kind, least: int) -> Pass:
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: combine(f, kind, least))

    return ModulePass(run, PassInfo(4, name, ["InferType"]))


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Combines convolutions that read one tensor with equal settings."""
    return _pass("CombineParallelConv2D", CONV2D, min_num_branches)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Combines dense layers that read one tensor into one wide dense layer (for either value of ``to_batch``)."""
    return _pass("CombineParallelDense", DENSE, min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Combines batched matrix products that share their left operand."""
    return _pass("CombineParallelBatchMatmul", BATCH_MATMUL, min_num_branches)


register_pass("CombineParallelConv2D", CombineParallelConv2D)
register_pass("CombineParallelDense", CombineParallelDense)
register_pass("CombineParallelBatchMatmul", CombineParallelBatchMatmul)
__all__ = ["CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul"]
