"""InferType: gives every expression its type.

Each function is walked once, in evaluation order, on an explicit stack.  An operator's type relation answers as soon as
its arguments are known; what is not known yet is a hole that unification fills (see ``type_solver``).  Functions may call
one another in any order, and need no annotations: a function is inferred when it is first met.

What already has a type is taken as it is and not walked again, so running the pass on a module that has been inferred
costs a look at each function.  Before → after::

    def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }
    def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { nn.relu(%x) }
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall
from ...support.errors import AnchorlegError, ArgumentError, InternalError, TypeMismatchError, UnsupportedOpError
from ..adt import Constructor, Match, PatternConstructor, PatternTuple, PatternVar, TypeData
from ..expr import (Call, Constant, If, Let, RefCreate, RefRead, RefWrite, TempExpr, Tuple, TupleGetItem, Var)
from ..function import Function
from ..op.registry import attrs_of
from ..op.type_relations import show
from .type_errors import TypeProblem, to_exception
from .type_solver import Pending, TypeSolver, same_type, substitute

_BOOL = TensorType((), "bool")
_UNIT = TupleType(())


class _Inference:
    """One run over a module (or one expression): types by node, equations, and problems met.

    ``fresh`` distrusts the types that nodes carry already.
    """

    def __init__(self, mod: IRModule | None, fresh: bool = False) -> None:
        self.mod, self.fresh = mod, fresh
        self.types: dict[int, Type] = {}
        self.solver = TypeSolver(self.fail)
        self.done: list[Node] = []  # nodes met without a type, parts first
        self.problems: list[TypeProblem] = []
        self.stack: list[tuple[Callable[[Any], None], Any]] = []
        self.skeletons: dict[int, FuncType] = {}
        self.type_args: dict[int, tuple[Type, ...]] = {}
        self.current = [""]

    # -- the engine -------------------------------------------------------------------------------

    def run(self, roots: Sequence[Node]) -> None:
        """Infers the roots and all they need; raises TypeMismatchError with every problem found."""
        for root in roots:
            self.stack.append((self.visit, root))
            self._loop()
        self.solver.drain()
        self._report()

    def _loop(self) -> None:
        stack, queue = self.stack, self.solver.queue
        while stack:
            step, node = stack.pop()
            try:
                step(node)
                if queue:
                    self.solver.drain()
            except AnchorlegError as exc:
                if isinstance(exc, (InternalError, UnsupportedOpError)):
                    raise
                self.fail(node, exc)

    def fail(self, site: Any, exc: Exception) -> None:
        """Notes a problem; the expression's type becomes a hole, so that the rest can still be checked."""
        site = site[0] if isinstance(site, tuple) else site
        if isinstance(site, Node):
            self.types.setdefault(id(site), IncompleteType())
        self.problems.append(TypeProblem(self.current[-1], site, str(exc)))

    def _report(self) -> None:
        if not self.problems:
            self.problems = [self._unsolved(p) for p in self.solver.unsolved()]
        if self.problems:
            raise to_exception(self.problems, self.known)

    def _report_unknown(self) -> None:
        variables = [p for p in self.problems if isinstance(p.site, Var)]
        self.problems = variables or self.problems[:1]  # the rest follows from these
        self._report()

    def _unsolved(self, pending: Pending) -> TypeProblem:
        unknown = [i for i, a in enumerate(pending.args) if self.solver.holes(self.solver.resolve(a))]
        which = f"argument {', '.join(map(str, unknown))} is" if unknown else "its arguments are"
        return TypeProblem("", pending.site, f"the type cannot be inferred: the type of {which} not known; annotate a variable")

    def known(self, node: Node) -> Type | None:
        """The type of a node as far as it is known, or None."""
        found = self.types.get(id(node))
        return None if found is None else self.solver.resolve(found)

    def visit(self, node: Any) -> None:
        """Gives ``node`` a type, now or through steps put on the stack."""
        if id(node) in self.types:
            return
        cls = type(node)
        if cls is Op:  # one object serves all places: its type differs from place to place, so it is never remembered
            return
        known = node._checked_type
        if known is not None and (not self.fresh or cls is Constant) and cls is not GlobalVar and cls is not Constructor:
            self.types[id(node)] = known
            return
        enter = _ENTER.get(cls) or next((_ENTER[c] for c in cls.__mro__ if c in _ENTER), None)
        if enter is None:
            raise TypeMismatchError(f"{cls.__name__} is not an expression that has a type")
        enter(self, node)

    def push(self, step: Callable[[Any], None], node: Any) -> None:
        """Puts a step on the stack; the last one pushed runs first."""
        self.stack.append((step, node))

    def finish(self, node: Node, t: Type) -> None:
        """Sets the type of a node."""
        self.types[id(node)] = t
        self.done.append(node)

    def type_of(self, node: Any) -> Type:
        """The type of a visited node (an operator used as a value gets an instance of its own)."""
        return self._op_as_value(node) if type(node) is Op else self.types[id(node)]

    # -- leaves -----------------------------------------------------------------------------------

    def enter_constant(self, node: Constant) -> None:
        self.finish(node, node.checked_type)

    def enter_var(self, var: Var) -> None:
        self.finish(var, var.type_annotation if var.type_annotation is not None else IncompleteType())

    def enter_temp(self, node: TempExpr) -> None:
        real = node.realize()
        self.push(lambda n: self.finish(n, self.types[id(real)]), node)
        self.push(self.visit, real)

    def _op_as_value(self, op: Op) -> Type:
        if op.num_inputs < 0 or op.relation is None:
            raise TypeMismatchError(f"operator {op.name!r} cannot be used as a value; wrap it in a function")
        holes = [IncompleteType() for _ in range(op.num_inputs)]
        attrs = attrs_of(op, None)
        return FuncType(holes, self.solver.add(op, lambda args: op.relation(args, attrs, self.solver), holes))  # type: ignore[misc]

    def enter_constructor(self, con: Constructor) -> None:
        type_vars = self._definition(con.belong_to).type_vars
        self.types[id(con)] = FuncType(con.inputs, TypeCall(con.belong_to, type_vars), type_vars)

    def _definition(self, name: GlobalTypeVar) -> TypeData:
        definitions = self.mod.type_definitions if self.mod is not None else {}
        if name in definitions:
            return definitions[name]
        found = [d for g, d in definitions.items() if g.name_hint == name.name_hint]
        if not found:
            raise TypeMismatchError(f"the module does not define the data type {name.name_hint!r}")
        return found[0]

    # -- functions --------------------------------------------------------------------------------

    def enter_global(self, var: GlobalVar) -> None:
        func = self.mod.functions.get(var) if self.mod is not None else None
        if not isinstance(func, Function):
            if var._checked_type is None:
                names = ", ".join(g.name_hint for g in self.mod.functions) if self.mod is not None else ""
                raise TypeMismatchError(f"the type of @{var.name_hint} is not known; the module's functions are: {names or 'none'}")
            self.types[id(var)] = var._checked_type
            return
        if func._checked_type is not None and not self.fresh:
            self.types[id(var)] = func._checked_type
            return
        self.types[id(var)] = self._callable_before_body(func)
        self.current.append(var.name_hint)
        self.push(self.finish_global, (var, func))
        self.push(self.visit, func)

    def finish_global(self, pair: tuple[GlobalVar, Function]) -> None:
        self.current.pop()
        self.types[id(pair[0])] = self.types[id(pair[1])]

    def _skeleton(self, func: Function) -> FuncType:
        found = self.skeletons.get(id(func))
        if found is None:
            for p in func.params:
                if id(p) not in self.types:
                    self.enter_var(p)
            ret = func.ret_type if func.ret_type is not None else IncompleteType()
            found = FuncType([self.types[id(p)] for p in func.params], ret, func.type_params)
            self.skeletons[id(func)] = found
        return found

    def _callable_before_body(self, func: Function) -> FuncType:
        """The type under which a function may call itself: generic only when it is fully annotated."""
        skeleton = self.solver.resolve(self._skeleton(func))
        if not self.solver.is_ground(skeleton):
            return FuncType(skeleton.arg_types, skeleton.ret_type)  # type: ignore[attr-defined]
        return skeleton  # type: ignore[return-value]

    def enter_function(self, func: Function) -> None:
        self._skeleton(func)
        self.push(self.finish_function, func)
        self.push(self.visit, func.body)

    def finish_function(self, func: Function) -> None:
        skeleton = self._skeleton(func)
        self.finish(func, self.solver.resolve(skeleton))
        merged = self._expect(skeleton.ret_type, func.body, "the function's result")
        if func.ret_type is None:
            skeleton = FuncType(skeleton.arg_types, merged, skeleton.type_params)
        self.types[id(func)] = self.solver.resolve(skeleton)

    def _expect(self, wanted: Type, node: RelayExpr, what: str) -> Type:
        try:
            return self.solver.unify(wanted, self.type_of(node))
        except TypeMismatchError as exc:
            self.solver.drain()
            resolve = self.solver.resolve
            raise TypeMismatchError(f"{what} is expected to have the type {show(resolve(wanted))}, "
                                    f"got {show(resolve(self.type_of(node)))}" + _detail(exc)) from None

    # -- calls ------------------------------------------------------------------------------------

    def enter_call(self, call: Call) -> None:
        op = call.op
        if type(op) is Op:
            self.push(self.finish_op_call, call)
        else:
            self.push(self.finish_call, call)
            self.push(self.visit, op)
        visit, types, stack = self.visit, self.types, self.stack
        for arg in reversed(call.args):
            if id(arg) not in types:
                stack.append((visit, arg))

    def finish_op_call(self, call: Call) -> None:
        op, args = call.op, call.args
        if op.num_inputs >= 0 and len(args) != op.num_inputs:
            raise TypeMismatchError(f"{op.num_inputs} arguments are expected ({', '.join(a.name for a in op.arguments)}), got {len(args)}")
        if op.relation is None:
            raise UnsupportedOpError(f"operator {op.name!r} has no type relation")
        attrs, relation, solver = attrs_of(op, call.attrs), op.relation, self.solver
        self.finish(call, solver.add(call, lambda types: relation(types, attrs, solver), [self.type_of(a) for a in args]))

    def finish_call(self, call: Call) -> None:
        self.finish(call, IncompleteType())
        callee = self.solver.resolve(self.type_of(call.op))
        if isinstance(callee, IncompleteType):
            wanted = FuncType([self.type_of(a) for a in call.args], self.types[id(call)])
            self.solver.unify(callee, wanted)
            return
        if not isinstance(callee, FuncType):
            raise TypeMismatchError(f"what is called is expected to be a function, got {show(callee)}")
        if callee.type_params:
            callee, self.type_args[id(call)] = self.solver.instantiate(callee, call.type_args)
        self.types[id(call)] = callee.ret_type
        if len(callee.arg_types) != len(call.args):
            raise TypeMismatchError(f"{len(callee.arg_types)} arguments are expected, got {len(call.args)}")
        for i, (wanted, arg) in enumerate(zip(callee.arg_types, call.args)):
            self._expect(wanted, arg, f"argument {i}")

    # -- bindings ---------------------------------------------------------------------------------

    def enter_let(self, let: Let) -> None:
        self.push(self.finish_let, let)
        self.push(self.visit, let.body)
        self.push(self.bind_let, let)
        self.push(self.visit, let.value)
        var = let.var
        if isinstance(let.value, Function) and id(var) not in self.types:
            self.enter_var(var)
            if var.type_annotation is None:
                self.types[id(var)] = let.value._checked_type if self._trusted(let.value) else self._callable_before_body(let.value)

    def _trusted(self, node: RelayExpr) -> bool:
        return node._checked_type is not None and not self.fresh

    def bind_let(self, let: Let) -> None:
        var, value = let.var, self.type_of(let.value)
        if id(var) not in self.types:
            if self._trusted(var):
                self.types[id(var)] = var._checked_type
            else:
                self.enter_var(var)
        if var.type_annotation is not None:
            self._expect(var.type_annotation, let.value, f"the value of %{var.name_hint}")
        elif isinstance(let.value, Function) or isinstance(self.types[id(var)], IncompleteType):
            self.types[id(var)] = self.solver.unify(self.types[id(var)], value) if not _generic(value) else value

    def finish_let(self, let: Let) -> None:
        self.finish(let, self.type_of(let.body))

    def enter_if(self, node: If) -> None:
        self.push(self.finish_if, node)
        for part in (node.false_branch, node.true_branch, node.cond):
            self.push(self.visit, part)

    def finish_if(self, node: If) -> None:
        self.finish(node, self.type_of(node.true_branch))
        self._expect(_BOOL, node.cond, "the condition")
        self.types[id(node)] = self._expect(self.type_of(node.true_branch), node.false_branch, "the false branch")

    # -- tuples and references --------------------------------------------------------------------

    def enter_tuple(self, node: Tuple) -> None:
        self.push(self.finish_tuple, node)
        for part in reversed(node.fields):
            self.push(self.visit, part)

    def finish_tuple(self, node: Tuple) -> None:
        self.finish(node, TupleType([self.type_of(f) for f in node.fields]))

    def enter_item(self, node: TupleGetItem) -> None:
        self.push(self.finish_item, node)
        self.push(self.visit, node.tuple_value)

    def finish_item(self, node: TupleGetItem) -> None:
        def field(args: tuple[Type, ...]) -> Type | None:
            if isinstance(args[0], IncompleteType):
                return None
            if not isinstance(args[0], TupleType):
                raise TypeMismatchError(f"a tuple is expected to take field {node.index} of, got {show(args[0])}")
            if not 0 <= node.index < len(args[0].fields):
                raise TypeMismatchError(f"field {node.index} does not exist: the tuple has {len(args[0].fields)} fields")
            return args[0].fields[node.index]

        self.finish(node, self.solver.add(node, field, [self.type_of(node.tuple_value)]))

    def enter_ref_create(self, node: RefCreate) -> None:
        self.push(lambda n: self.finish(n, RefType(self.type_of(n.value))), node)
        self.push(self.visit, node.value)

    def enter_ref_read(self, node: RefRead) -> None:
        self.push(self.finish_ref_read, node)
        self.push(self.visit, node.ref)

    def finish_ref_read(self, node: RefRead) -> None:
        hole = IncompleteType()
        self.finish(node, hole)
        self._expect(RefType(hole), node.ref, "what is read")

    def enter_ref_write(self, node: RefWrite) -> None:
        self.push(self.finish_ref_write, node)
        self.push(self.visit, node.value)
        self.push(self.visit, node.ref)

    def finish_ref_write(self, node: RefWrite) -> None:
        self.finish(node, _UNIT)
        hole = IncompleteType()
        self._expect(RefType(hole), node.ref, "what is written to")
        self._expect(hole, node.value, "the value written")

    # -- matches ----------------------------------------------------------------------------------

    def enter_match(self, node: Match) -> None:
        self.push(self.finish_match, node)
        for clause in reversed(node.clauses):
            self.push(self.visit, clause.rhs)
            self.push(self.bind_clause, (node, clause))
        self.push(self.visit, node.data)

    def bind_clause(self, pair: tuple[Match, Any]) -> None:
        node, clause = pair
        stack = [(clause.lhs, self.type_of(node.data))]
        met: list[Node] = []
        while stack:
            pattern, wanted = stack.pop()
            met.append(pattern)
            stack.extend(self._bind_pattern(pattern, wanted))
        self.done.extend(reversed(met))

    def _bind_pattern(self, pattern: Any, wanted: Type) -> list[tuple[Any, Type]]:
        if isinstance(pattern, PatternVar):
            if id(pattern.var) not in self.types:
                self.enter_var(pattern.var)
            self.solver.unify(self.types[id(pattern.var)], wanted)
            return []
        if isinstance(pattern, PatternTuple):
            fields = [IncompleteType() for _ in pattern.patterns]
            self.solver.unify(wanted, TupleType(fields))
            return list(zip(pattern.patterns, fields))
        return self._bind_constructor(pattern, wanted) if isinstance(pattern, PatternConstructor) else []

    def _bind_constructor(self, pattern: PatternConstructor, wanted: Type) -> list[tuple[Any, Type]]:
        con = pattern.constructor
        if len(pattern.patterns) != len(con.inputs):
            raise TypeMismatchError(f"the pattern {con.name_hint} is expected to have {len(con.inputs)} fields, got {len(pattern.patterns)}")
        type_vars = self._definition(con.belong_to).type_vars
        mapping = {v: IncompleteType() for v in type_vars}
        self.solver.unify(wanted, TypeCall(con.belong_to, list(mapping.values())))
        return [(p, substitute(t, mapping)) for p, t in zip(pattern.patterns, con.inputs)]  # type: ignore[arg-type]

    def finish_match(self, node: Match) -> None:
        result: Type = IncompleteType()
        self.finish(node, result)
        for clause in node.clauses:
            result = self._expect(result, clause.rhs, "the result of a match clause")
        self.types[id(node)] = result
        self.done.pop()
        self.done.extend([*node.clauses, node])
        if node.complete:
            self._check_complete(node)

    def _check_complete(self, node: Match) -> None:
        from ..analysis.matching import unmatched_cases

        missing = unmatched_cases(node, self.mod)
        if missing:
            raise TypeMismatchError("the match does not handle " + ", ".join(_pattern_text(m) for m in missing[:4])
                                    + "; add a clause, or use match? for a match that may fail")

    # -- writing the types down -------------------------------------------------------------------

    def write_down(self, in_place: bool = False) -> dict[int, Node]:
        """Sets the types of the nodes met; the nodes that had to be rebuilt, by the id of the old one.

        ``in_place`` gives the old ones their types too.
        """
        rebuilt: dict[int, Node] = {}
        final: list[tuple[Any, Type]] = []
        for node in self.done:
            t = self._final(node)
            new = self._rewritten(node, t, rebuilt)
            if new is not node:
                rebuilt[id(node)] = new
            if t is not None:
                final.append((new, t))
                if in_place and new is not node:
                    final.append((node, t))
        self._report_unknown()
        for node, t in final:
            node._checked_type = t
        return rebuilt

    def _final(self, node: Node) -> Type | None:
        found = self.types.get(id(node))
        if found is None or not isinstance(node, RelayExpr):
            return None
        t = self.solver.resolve(found)
        if not self.solver.is_ground(t) and _is_open(t):
            what = f"%{node.name_hint}" if isinstance(node, Var) else "this expression"
            self.problems.append(TypeProblem("", node, f"the type of {what} cannot be inferred from its use; annotate it"))
        return t

    def _rewritten(self, node: Node, t: Type | None, rebuilt: dict[int, Node]) -> Node:
        new = node
        if rebuilt and any(id(c) in rebuilt for c in node.children()):
            new = node.map_children(lambda c: rebuilt.get(id(c), c))
        if isinstance(node, Var) and (node.type_annotation is None or node.type_annotation is not self.solver.resolve(node.type_annotation)):
            new = new.replace(type_annotation=t)
        elif isinstance(node, Function):
            ret = t.ret_type if node.ret_type is None else self.solver.resolve(node.ret_type)  # type: ignore[union-attr]
            new = new.replace(ret_type=ret)
        elif id(node) in self.type_args:
            args = tuple(self.solver.resolve(a) for a in self.type_args[id(node)])
            if len(args) != len(node.type_args) or any(a is not b for a, b in zip(args, node.type_args)):  # type: ignore[attr-defined]
                new = new.replace(type_args=args)
        if new is node and isinstance(node, RelayExpr) and node._checked_type is not None and not same_type(node._checked_type, t):  # type: ignore[arg-type]
            new = _copy(node)
        return new


def _copy(node: Node) -> Node:
    clone = object.__new__(type(node))
    node._reset_caches(clone)
    for name in node._copied:
        setattr(clone, name, getattr(node, name))
    return clone


def _pattern_text(pattern: Any) -> str:
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        name = pattern.constructor.name_hint if isinstance(pattern, PatternConstructor) else ""
        inner = ", ".join("…" if isinstance(p, (PatternConstructor, PatternTuple)) and p.patterns else _pattern_text(p) for p in pattern.patterns)
        return f"{name}({inner})" if inner or not name else name
    return "_"


def _is_open(t: Type) -> bool:
    """Whether something of a value's form is not known.  Arguments of a data type may stay open: ``Nil()`` is a list of anything."""
    stack = [t]
    while stack:
        part = stack.pop()
        if isinstance(part, IncompleteType):
            return True
        if not isinstance(part, TypeCall):
            stack.extend(c for c in part.children() if isinstance(c, Type))
    return False


def _generic(t: Type) -> bool:
    return isinstance(t, FuncType) and bool(t.type_params)


def _detail(exc: Exception) -> str:
    text = str(exc)
    return f" ({text})" if text.startswith("this expression") else ""


_ENTER: dict[type, Callable[[_Inference, Any], None]] = {
    Constant: _Inference.enter_constant, Var: _Inference.enter_var, TempExpr: _Inference.enter_temp,
    Constructor: _Inference.enter_constructor, GlobalVar: _Inference.enter_global, Function: _Inference.enter_function,
    Call: _Inference.enter_call, Let: _Inference.enter_let, If: _Inference.enter_if, Tuple: _Inference.enter_tuple,
    TupleGetItem: _Inference.enter_item, RefCreate: _Inference.enter_ref_create, RefRead: _Inference.enter_ref_read,
    RefWrite: _Inference.enter_ref_write, Match: _Inference.enter_match,
}


def infer_module(mod: IRModule) -> IRModule:
    """The module with every expression typed; the same object when it already was.

    TypeMismatchError tells of every problem, each with the expression and its origin.
    """
    functions = [(g, f) for g, f in mod.functions.items() if isinstance(f, Function)]
    if all(_settled(g, f) for g, f in functions):
        return mod
    before = {g: g._checked_type for g, _ in functions}
    result = _infer_all(mod, functions, fresh=False)
    if any(t is not None and not same_type(t, result.functions[g]._checked_type) for g, t in before.items()):
        # some function has another type than its callers were inferred with
        result = _infer_all(mod, functions, fresh=True)
    for var, _ in functions:
        var._checked_type = result.functions[var]._checked_type
    return result


def _settled(var: GlobalVar, func: Function) -> bool:
    known = func._checked_type
    return known is not None and var._checked_type is not None and same_type(known, var._checked_type)


def _infer_all(mod: IRModule, functions: Sequence[tuple[GlobalVar, Function]], fresh: bool) -> IRModule:
    run = _Inference(mod, fresh)
    run.run([g for g, _ in functions])
    rebuilt = run.write_down()
    return mod.with_functions({g: rebuilt.get(id(f), f) for g, f in mod.functions.items()})  # type: ignore[misc]


def infer_functions(mod: IRModule, names: Sequence[str]) -> None:
    """Types some functions of a module (and those they call), in place."""
    chosen = [(mod.get_global_var(n), mod[n]) for n in names]
    typed = _infer_all(mod, [(g, f) for g, f in chosen if isinstance(f, Function)], fresh=False)
    for var, func in typed.functions.items():
        mod[var] = func
        if isinstance(func, Function):
            var._checked_type = func._checked_type if func._checked_type is not None else var._checked_type


def infer_type(expr: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """The expression with its type set (rebuilt only where annotations had to be filled in).

    Free variables need annotations.  ``mod`` gives the functions and data types that the expression refers to.
    What already has a type is not visited again, so calling this after each step of building a program is cheap.
    """
    if not isinstance(expr, RelayExpr):
        raise ArgumentError(f"infer_type expects a Relay expression, got {type(expr).__name__}")
    if expr._checked_type is not None:
        return expr
    run = _Inference(mod)
    run.run([expr])
    rebuilt = run.write_down()
    return rebuilt.get(id(expr), expr)  # type: ignore[return-value]


def InferTypeLocal(expr: RelayExpr, mod: IRModule | None = None) -> Type:
    """The type of an expression; sets it, and its parts' types, in place (annotations are not filled in)."""
    if expr._checked_type is None:
        run = _Inference(mod)
        run.run([expr])
        run.write_down(in_place=True)
    return expr.checked_type


def _transform(mod: IRModule, ctx: PassContext) -> IRModule:
    return infer_module(mod)


def InferType() -> Pass:
    """The pass that infers all types of a module."""
    return ModulePass(_transform, PassInfo(0, "InferType"))


register_pass("InferType", InferType)
