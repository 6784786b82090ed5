"""Which features of the language a program uses."""
from __future__ import annotations

from enum import IntEnum
from typing import Any

from ...ir.expr import BaseFunc, GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...support.errors import ArgumentError
from ..adt import Constructor, Match
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from .variables import expr_children


class Feature(IntEnum):
    """What a program may contain.  ``fGraph``: an expression is shared; ``fLetRec``: a let-bound value uses its own name."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_OF_CLASS: dict[type, Feature] = {
    Var: Feature.fVar, GlobalVar: Feature.fGlobalVar, Constant: Feature.fConstant, Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem, Function: Feature.fFunction, Op: Feature.fOp, Call: Feature.fCall, Let: Feature.fLet,
    If: Feature.fIf, RefCreate: Feature.fRefCreate, RefRead: Feature.fRefRead, RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor, Match: Feature.fMatch,
}
_ATOMS = (Var, GlobalVar, Op, Constant, Constructor)


def detect_feature(a: RelayExpr | IRModule, b: RelayExpr | IRModule | None = None) -> set[Feature]:
    """The features of an expression, of a module's functions, or of both together (one argument of each kind, at most)."""
    found: set[Feature] = set()
    for each in (a, b):
        if isinstance(each, IRModule):
            for func in each.functions.values():
                found |= _features(func)
        elif each is not None:
            found |= _features(each)
    return found


def _features(root: RelayExpr) -> set[Feature]:
    """Fused functions count as functions; what is inside is not looked at."""
    found: set[Feature] = set()
    if isinstance(root, BaseFunc) and not isinstance(root, Function):
        return found
    seen: set[int] = set()
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            if not isinstance(node, _ATOMS):
                found.add(Feature.fGraph)
            continue
        seen.add(id(node))
        if type(node) in _OF_CLASS:
            found.add(_OF_CLASS[type(node)])
        if not (isinstance(node, Function) and node.get_attr("Primitive")):
            stack.extend(reversed(expr_children(node)))
    if Feature.fLet in found and _has_recursive_let(root):
        found.add(Feature.fLetRec)
    return found


def _has_recursive_let(root: RelayExpr) -> bool:
    """Whether a let's value uses the let's own variable.  A variable counts while its let's value is being visited."""
    open_vars: set[Var] = set()
    seen: set[int] = set()
    stack: list[tuple[Any, str]] = [(root, "visit")]
    while stack:
        node, what = stack.pop()
        if what == "close":
            open_vars.discard(node)
        elif isinstance(node, Var):
            if node in open_vars:
                return True
        elif id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, Let):
                stack.append((node.body, "visit"))
                stack.append((node.var, "close"))
                stack.append((node.value, "visit"))
                open_vars.add(node.var)
            elif isinstance(node, Function):
                stack.append((node.body, "visit"))
            else:
                stack.extend((c, "visit") for c in reversed(expr_children(node)))
    return False


def check_feature(expr: RelayExpr | IRModule, allowed: set[Feature]) -> None:
    """ArgumentError naming the features that a program uses beyond those allowed."""
    extra = detect_feature(expr) - set(allowed)
    if extra:
        raise ArgumentError(f"the program uses features that are not supported here: {', '.join(f.name for f in sorted(extra))}")
