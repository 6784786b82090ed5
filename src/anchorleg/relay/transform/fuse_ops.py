"""FuseOps: gathers operators into primitive functions, each of which becomes one kernel.

The rule goes by dominators: an operator may join its post-dominator (the first place where all its uses meet again)
when every operator on the way is simple enough, so that nothing is computed twice and one loop nest can hold the group.

before::

    nn.relu(nn.bias_add(nn.conv2d(%x, %w), %b))

after::

    %1 = fn (%p0, %p1, %p2, Primitive=1) { nn.relu(nn.bias_add(nn.conv2d(%p0, %p1), %p2)) }; %1(%x, %w, %b)
"""
from __future__ import annotations

from typing import Any

from ...ir.attrs import DictAttrs
from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op, OpPattern
from ...ir.structural import structural_equal
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType, TensorType, TupleType, flatten_types
from ...ir.visit import Walker, post_order
from ..adt import Match
from ..expr import Call, Constant, If, Tuple, TupleGetItem, Var
from ..function import Function
from .bind import substitute
from .common import is_primitive
from .fuse_groups import ForwardGraph, Groups, partition


DEFAULT_MAX_DEPTH = 256
_SIMPLE_CONSTANTS = {"int32", "int64", "float32", "float64", "bool"}


def body_children(node: Node) -> list[Node]:
    """The expressions below ``node`` that fusion looks at: none inside primitive functions, no types."""
    if is_primitive(node):
        return []
    return [c for c in node.children() if isinstance(c, RelayExpr) and not isinstance(c, (Op, GlobalVar)) or not isinstance(c, RelayExpr)
            and type(c).__name__ == "Clause"]


class _GraphBuilder:
    """Numbers the expressions under a function and records who uses whom, and how."""

    def __init__(self) -> None:
        self.graph = ForwardGraph()

    def build(self, func: RelayExpr) -> ForwardGraph:
        nodes = list(post_order(func, body_children))
        for node in nodes:
            if isinstance(node, RelayExpr):
                self.graph.add(node, self._pattern(node))
        for node in nodes:
            self._edges(node)
        self.graph.mark_external(func)
        return self.graph

    def _pattern(self, node: RelayExpr) -> int:
        if isinstance(node, Call):
            return _call_pattern(node)
        if isinstance(node, Tuple):
            return OpPattern.TUPLE
        if isinstance(node, TupleGetItem) and _all_tensors(node.tuple_value):
            return OpPattern.INJECTIVE
        if isinstance(node, Constant) and not node.data.shape and str(node.data.dtype) in _SIMPLE_CONSTANTS:
            return OpPattern.ELEMWISE
        return OpPattern.OPAQUE

    def _edges(self, node: Node) -> None:
        if isinstance(node, Call):
            self._call_edges(node)
        elif isinstance(node, Tuple):
            for field in node.fields:
                if isinstance(field._checked_type, TensorType):
                    self.graph.connect(field, node, OpPattern.INJECTIVE)
                else:
                    self.graph.mark_external(field)
        elif isinstance(node, TupleGetItem) and _all_tensors(node.tuple_value):
            self.graph.connect(node.tuple_value, node, OpPattern.INJECTIVE)
        else:
            for child in body_children(node):
                if isinstance(child, RelayExpr):
                    self.graph.mark_external(child)

    def _call_edges(self, call: Call) -> None:
        if not isinstance(call.op, Op):
            if not isinstance(call.op, GlobalVar):
                self.graph.mark_external(call.op)
        pattern = _call_pattern(call)
        for arg in call.args:
            if isinstance(arg, (Op, GlobalVar)):  # a function as a value
                continue
            same = pattern == OpPattern.BROADCAST and structural_equal(arg.checked_type, call.checked_type)
            self.graph.connect(arg, call, OpPattern.ELEMWISE if same else pattern)


def _call_pattern(call: Call) -> int:
    if not isinstance(call.op, Op):
        return OpPattern.OPAQUE
    if call.op.get_attr("TNonComputational") and not call.op.has_attr("TOpPattern"):
        return OpPattern.OPAQUE
    if call.op.get_attr("TShapeDataDependent") and not is_static(call.checked_type):
        return OpPattern.OPAQUE
    return int(call.op.get_attr("TOpPattern", OpPattern.OPAQUE))


def is_static(ty: Any) -> bool:
    """Whether a tensor type, or every tensor in a tuple type, has a known shape."""
    return all(t.is_static for t in flatten_types(ty) if isinstance(t, TensorType))


def _all_tensors(tuple_value: RelayExpr) -> bool:
    ty = tuple_value._checked_type
    return isinstance(ty, TupleType) and all(isinstance(f, TensorType) for f in ty.fields)


class _GroupParams:
    """The parameters of one group's function, in the order of first use, with what is passed for each."""

    def __init__(self) -> None:
        self.index: dict[int, int] = {}
        self.params: list[Var] = []
        self.arguments: list[RelayExpr] = []

    def param_for(self, arg: RelayExpr, ty: Any) -> Var:
        """The parameter that stands for ``arg``."""
        at = self.index.get(id(arg))
        if at is None:
            at = self.index[id(arg)] = len(self.params)
            param = Var(f"p{at}", ty)
            param._checked_type = ty
            self.params.append(param)
            self.arguments.append(arg)
        return self.params[at]


class _Fuser(Walker):
    """Rewrites the expressions of one function into calls of its groups' functions."""

    def __init__(self, groups: Groups, link_params: bool) -> None:
        super().__init__()
        self.groups, self.link_params = groups, link_params
        self.params: dict[int, _GroupParams] = {}

    def visit_Op(self, op: Op) -> Op:
        return op

    def visit_Type(self, ty: Any) -> Any:
        return ty

    def visit_Var(self, var: Var) -> Var:
        return var

    def visit_Function(self, func: Function) -> Any:
        if is_primitive(func):
            return func
        body = yield func.body
        return _keep_type(func, func.replace(body=body))

    def visit_Call(self, call: Call) -> Any:
        if not isinstance(call.op, Op):
            op, *args = yield [call.op, *call.args]
            return _keep_type(call, call.replace(op=op, args=tuple(args)))
        new_args = yield list(call.args)
        if call.op.name == "annotation.stop_fusion":  # it has kept its neighbours apart: no more is asked of it
            return new_args[0]
        group = self.groups.root(call)
        if call.op.get_attr("TNonComputational") and self.groups.is_alone(group):
            return _keep_type(call, call.replace(args=tuple(new_args)))
        fused = _keep_type(call, call.replace(args=self._arguments(group, call.args, new_args)))
        return self._function(group, call, fused) if self.groups.is_root(call) else fused

    def visit_Tuple(self, tup: Tuple) -> Any:
        new_fields = yield list(tup.fields)
        if self.groups.is_root(tup):
            return _keep_type(tup, tup.replace(fields=tuple(new_fields)))
        group = self.groups.root(tup)
        return _keep_type(tup, tup.replace(fields=self._arguments(group, tup.fields, new_fields)))

    def visit_TupleGetItem(self, get: TupleGetItem) -> Any:
        new_tuple = yield get.tuple_value
        group = self.groups.root(get)
        if self.groups.is_root(get) and self.groups.root(get.tuple_value) != group:
            return _keep_type(get, get.replace(tuple_value=new_tuple))
        (arg,) = self._arguments(group, (get.tuple_value,), [new_tuple])
        fused = _keep_type(get, get.replace(tuple_value=arg))
        return self._function(group, get, fused) if self.groups.is_root(get) else fused

    def visit_default(self, node: Any) -> Any:
        new = yield from super().visit_default(node)
        return _keep_type(node, new) if isinstance(node, RelayExpr) else new

    def visit_If(self, node: If) -> Any:
        cond, yes, no = yield [node.cond, node.true_branch, node.false_branch]
        return _keep_type(node, node.replace(cond=cond, true_branch=yes, false_branch=no))

    def visit_Match(self, node: Match) -> Any:
        data, *results = yield [node.data, *(c.rhs for c in node.clauses)]
        clauses = tuple([c if r is c.rhs else c.replace(rhs=r) for c, r in zip(node.clauses, results)])
        return _keep_type(node, node.replace(data=data, clauses=clauses))

    def _arguments(self, group: int, old: tuple[RelayExpr, ...], new: list[RelayExpr]) -> tuple[RelayExpr, ...]:
        info = self.params.setdefault(group, _GroupParams())
        result: list[RelayExpr] = []
        for before, after in zip(old, new):
            inside = self.groups.root(before) == group or self.link_params and isinstance(after, Constant)
            result.append(after if inside else info.param_for(after, before.checked_type))
        return tuple(result)

    def _function(self, group: int, original: RelayExpr, body: RelayExpr) -> RelayExpr:
        info = self.params.setdefault(group, _GroupParams())
        attrs: dict[str, Any] = {"Primitive": 1}
        inner = [n for n in post_order(body, body_children) if isinstance(n, Call)]
        if not inner:  # fields of tuples and nothing else: no kernel's work
            return _keep_type(original, substitute(body, dict(zip(info.params, info.arguments))))
        if all(isinstance(c.op, Op) and c.op.get_attr("TReshapeOp") for c in inner):
            attrs["relay.reshape_only"] = 1
        func = Function(info.params, body, original.checked_type, (), DictAttrs(attrs), original.span)
        func._checked_type = FuncType([p.checked_type for p in info.params], original.checked_type)
        result = Call(func, info.arguments, None, (), original.span)
        result._checked_type = original.checked_type
        return result


def _keep_type(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    """Argument types do not change in fusion, so the rebuilt node has the old one's type."""
    if new is not old:
        new._checked_type = old._checked_type
    return new


def fuse_function(func: RelayExpr, opt_level: int, max_depth: int, link_params: bool) -> RelayExpr:
    """One function (or expression) with its operators gathered into primitive functions."""
    graph = _GraphBuilder().build(func)
    groups = partition(graph, opt_level, max_depth)
    return _Fuser(groups, link_params).visit(func)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Fuses operators; level 0 gives every operator a function of its own, -1 takes the context's level."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        depth = ctx.get("relay.FuseOps.max_depth", DEFAULT_MAX_DEPTH)
        link = bool(ctx.get("relay.FuseOps.link_params", False))
        return mod.with_functions({
            var: fuse_function(f, level, depth, link) if isinstance(f, Function) and not is_primitive(f) else f
            for var, f in mod.functions.items()})

    return ModulePass(run, PassInfo(0, "FuseOps", ["InferType"]))


register_pass("FuseOps", FuseOps)
