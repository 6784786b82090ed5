"""ManifestAlloc: every tensor that compiled code writes gets its memory explicitly, and sizes are worked out explicitly.

A call of a primitive function becomes an allocation of its results and a call that writes to them.  Where sizes are not
known, a shape function (the operators' shape rules composed over the whole primitive function) computes them first.  Sizes
are followed through the whole function, so that those that are equal are known to be: results of one shape share one shape
computation, and compiled code sees one variable for one size.

before::

    let %y = fn (%p: Tensor[(?, 4), float32], Primitive=1) { tanh(%p) }(%x); %y

after::

    let %shape = memory.alloc_tensor(memory.alloc_storage(16, 64), 0, [2]);
    let %_ = vm.shape_func(fn …, (%x,), (%shape,));
    let %storage = memory.alloc_storage(%shape, 64);
    let %out = memory.alloc_tensor(%storage, 0, %shape);
    let %_ = vm.invoke_tvm_op(fn …, (%x,), (%out,)); %out
"""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ...ir.expr import Any as AnyDim, GlobalVar, IntImm, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import FuncType, IncompleteType, TensorType, TupleType, Type
from ...ir.visit import post_order, trampoline
from ...runtime import ndarray
from ...runtime.dtype import DataType
from ...tir import max as max_, op as tir_op
from ..adt import Clause, Constructor, Match
from ..expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from ..function import Function
from ..op import memory, vm
from ..op.shape_func.dims import Dim, DimTable, Size
from ..op.shape_func.evaluate import Evaluator, children, params_of
from ..op.shape_func.program import assemble, is_computable
from ..op.shape_func.registry import Known, flatten_types
from ...support.errors import UnsupportedOpError
from .common import is_primitive, map_functions
from .split_primitive import has_open_sizes, one_by_one
from . import declared_types
from .declared_shapes import declared_shapes
from .compiler_functions import without_composites
from .fuse_ops import is_static
from .infer_type import infer_type

ALIGNMENT = 64
_ATOMS = (Var, GlobalVar, Constructor)
_KEPT = ("device_copy", "vm.shape_of", "vm.reshape_tensor")


class _Scope:
    """Bindings being written, and shapes at hand (those of scopes around included)."""

    def __init__(self, parent: _Scope | None = None) -> None:
        self.bindings: list[tuple[Var, RelayExpr]] = []
        self.shapes: dict[tuple[Dim, ...], Var] = dict(parent.shapes) if parent is not None else {}
        self.consts: dict[Any, Var] = dict(parent.consts) if parent is not None else {}

    def wrap(self, result: RelayExpr) -> RelayExpr:
        """The bindings around ``result``."""
        for var, value in reversed(self.bindings):
            ty = result._checked_type
            result = Let(var, value, result)
            result._checked_type = ty
        return result


class _Manifest:
    """Rewrites one function of ``mod``."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.table = DimTable()
        self.facts = Evaluator(self.table)
        self.sizes: dict[Dim, AnyDim] = {}
        self.count = 0
        self.renamed: dict[int, tuple[Any, RelayExpr]] = {}

    # -- small parts

    def let(self, scope: _Scope, name: str, value: RelayExpr, ty: Type) -> Var:
        """Binds a new variable."""
        var = Var(f"{name}_{self.count}")
        self.count += 1
        var._checked_type = value._checked_type = ty
        scope.bindings.append((var, value))
        return var

    def constant(self, scope: _Scope, value: Any) -> Var:
        """A variable bound to an int64 constant, once in a scope."""
        key = tuple(value) if isinstance(value, (list, tuple)) else value
        if key not in scope.consts:
            node = Constant(ndarray.array(np.asarray(value, np.int64)))
            scope.consts[key] = self.let(scope, "const", node, node.checked_type)
        return scope.consts[key]

    def type_of(self, known: Known) -> TensorType:
        """The tensor type with one ``Any`` per size."""
        return TensorType([d if isinstance(d, int) else self.sizes.setdefault(d, AnyDim()) for d in known.dims], known.dtype)

    def typed(self, facts: Sequence[Known], ty: Type, formulas: Formulas | None = None) -> Type:
        """A type refilled with what is known of its tensors; with ``formulas``, sizes are written in terms of those at hand."""
        rest = iter(facts)
        if formulas is not None:
            return _refilled(ty, rest, lambda k: TensorType([d if isinstance(d, int) else formulas.of(d) for d in k.dims], k.dtype))

        return _refilled(ty, rest, self.type_of)

    # -- the walk

    def function(self, func: Function) -> Function:
        """The function with explicit memory."""
        if func.get_attr("Closure") and isinstance(func.body, Function):
            inner = self._plain(func.body, func.params)
            new = func.replace(body=inner)
            new._checked_type = func._checked_type
            return new
        return self._plain(func, ())

    def _plain(self, func: Function, captured: Sequence[Var]) -> Function:
        for n, p in enumerate((*captured, *func.params)):
            ty = p.checked_type
            tensors = flatten_types(ty)
            self.facts.bind(p, [Known(tuple(d if isinstance(d, int) else self.table.atom("param", n, i, k) for k, d in enumerate(t.dims)), t.dtype)
                                if isinstance(t, TensorType) else Known((), "handle") for i, t in enumerate(tensors)])
        body = trampoline(self.chain(func.body, _Scope(), func.ret_type))
        new = func.replace(body=body)
        new._checked_type = func._checked_type
        return new

    def chain(self, expr: RelayExpr, scope: _Scope, declared: Type | None = None) -> Any:
        """A chain of lets and its result (of the ``declared`` type), with all of it in the new form."""
        while isinstance(expr, Let):
            yield self.bind(expr.var, expr.value, scope)
            expr = expr.body
        var = expr
        if not isinstance(expr, Var):
            var = Var("result")
            var._checked_type = expr._checked_type
            yield self.bind(var, expr, scope)
        declared_types.demand(self, self.current(var), declared, "the result of a function", scope)
        return scope.wrap(self.current(var))

    def current(self, expr: RelayExpr) -> RelayExpr:
        """What an atom is now."""
        found = self.renamed.get(id(expr))
        return found[1] if found is not None else expr

    def atoms(self, exprs: Sequence[RelayExpr], scope: _Scope) -> list[RelayExpr]:
        """Atoms in their present form; constants get variables."""
        found = []
        for e in exprs:
            if isinstance(e, Constant):
                var = self.let(scope, "const", e, e.checked_type)
                self.facts.bind(var, self.facts.evaluate(e))
                e = var
            elif not isinstance(e, _ATOMS):  # a closure made where it is used
                e = self.let(scope, "value", self.inner(e, scope), e._checked_type or IncompleteType())
            found.append(self.current(e))
        return found

    def inner(self, expr: RelayExpr, scope: _Scope) -> RelayExpr:
        """A closure, or a field of a tuple, that stands where an atom is expected, with its parts in their present form."""
        if isinstance(expr, Call):
            return expr.replace(args=tuple(self.atoms(expr.args, scope)))
        if isinstance(expr, TupleGetItem):
            return expr.replace(tuple_value=self.atoms([expr.tuple_value], scope)[0])
        return expr

    def bind(self, var: Var, value: RelayExpr, scope: _Scope) -> Any:
        """One binding."""
        if isinstance(value, Call) and is_primitive(value.op) and not value.op.get_attr("Compiler"):
            self.primitive(var, value, scope)
        elif isinstance(value, Call) and self.external(value.op) is not None:
            self.call_external(var, value, scope)
        elif isinstance(value, If):
            yield self.branches(var, value, scope)
        elif isinstance(value, Match):
            yield self.clauses(var, value, scope)
        elif isinstance(value, Var):
            self.alias(var, value)
        else:
            self.other(var, value, scope)

    def alias(self, var: Var, value: Var) -> None:
        """Another name for a variable."""
        target = self.current(value)
        self.renamed[id(var)] = (var, target)
        self.facts.bind(var, self._facts_of(target))

    def other(self, var: Var, value: RelayExpr, scope: _Scope) -> None:
        """Calls of functions, constructors and operators of the machine, tuples, fields, constants …"""
        if isinstance(value, Call) and not isinstance(value.op, (Op, GlobalVar, Constructor)):
            new: RelayExpr = value.replace(op=self.current(value.op), args=tuple(self.atoms(value.args, scope)))
        elif isinstance(value, Call):
            new = value.replace(args=tuple(self.atoms(value.args, scope)))
        elif isinstance(value, Tuple):
            new = value.replace(fields=tuple(self.atoms(value.fields, scope)))
        elif isinstance(value, (GlobalVar, Constructor, Constant)):
            new = value
        else:
            new = value.map_children(lambda c: self.current(c) if isinstance(c, RelayExpr) else c)
        declared_types.before(self, value, new, scope)
        facts = self.known_of(value, new)
        self.facts.bind(var, facts)
        ty = self.typed(facts, _type_of(value))
        if new is not value or isinstance(value, GlobalVar):
            new._checked_type = ty if not isinstance(value, GlobalVar) else value._checked_type
        var._checked_type = ty
        scope.bindings.append((var, new))
        declared_types.after(self, var, value, scope)

    def known_of(self, old: RelayExpr, new: RelayExpr) -> list[Known]:
        """What is known of a value."""
        if isinstance(new, Tuple):
            return [k for f in new.fields for k in self._facts_of(f)]
        if isinstance(new, TupleGetItem):
            self._facts_of(new.tuple_value)
            return self.facts.evaluate(new) if _has_tensors(new.tuple_value.checked_type) else self.facts.unknown(_type_of(old))
        if isinstance(new, Constant):
            return self.facts.evaluate(new)
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name in _KEPT:
            for a in new.args:
                self._facts_of(a)
            new._checked_type = old.checked_type
            return self.facts.evaluate(new)
        return self.facts.unknown(_type_of(old))

    def _facts_of(self, atom: RelayExpr) -> list[Known]:
        if id(atom) not in self.facts.known:
            self.facts.bind(atom, self.facts.unknown(_type_of(atom)))
        return self.facts.known[id(atom)]

    def branches(self, var: Var, value: If, scope: _Scope) -> Any:
        """Both branches, in scopes of their own."""
        cond = self.atoms([value.cond], scope)[0]
        yes = yield self.chain(value.true_branch, _Scope(scope))
        no = yield self.chain(value.false_branch, _Scope(scope))
        new = value.replace(cond=cond, true_branch=yes, false_branch=no)
        self._joined(var, new, value.checked_type, [yes, no], scope)

    def clauses(self, var: Var, value: Match, scope: _Scope) -> Any:
        """The clauses of a match, in scopes of their own."""
        from ..analysis.variables import pattern_vars

        done = []
        for clause in value.clauses:
            inner = _Scope(scope)
            for v in pattern_vars(clause.lhs):
                self.facts.bind(v, self.facts.unknown(v.checked_type) if v._checked_type is not None else [])
                declared_types.distrust(self, v, f"field {v.name_hint} of a value", inner)
            done.append((yield self.chain(clause.rhs, inner)))
        new = Match(self.current(value.data), [Clause(c.lhs, r) for c, r in zip(value.clauses, done)], value.complete)
        self._joined(var, new, value.checked_type, done, scope)

    def _joined(self, var: Var, new: Any, ty: Type, ends: list[RelayExpr], scope: _Scope) -> None:
        found = [self._facts_of(_result(e)) for e in ends]
        plain = self.facts.unknown(ty)
        joined = [p._replace(dims=tuple(ds[0] if all(d == ds[0] for d in ds) else q
                                        for q, *ds in zip(p.dims, *(f.dims for f in each))))
                  for p, *each in zip(plain, *found)] if all(len(f) == len(plain) for f in found) else plain
        self.facts.bind(var, joined)
        var._checked_type = new._checked_type = self.typed(joined, ty)
        scope.bindings.append((var, new))

    # -- primitive functions

    def primitive(self, var: Var, call: Call, scope: _Scope) -> None:
        """A call of a primitive function."""
        args = self.atoms(call.args, scope)
        func, results, missing, checks = self.specialise(call.op, args)
        if has_open_sizes(func) and self.apart(var, call, scope):
            return
        single = func.body if isinstance(func.body, Call) and isinstance(func.body.op, Op) else None
        if single is not None and self.special(var, func, single, args, results, checks, scope):
            return
        types = flatten_types(func.ret_type)
        if not missing and not checks and all(isinstance(d, int) for k in results for d in k.dims):
            outs = [self.fixed(t, scope, func.virtual_device_) for t in types]
        else:
            shapes = self.shapes(func, args, results, checks, missing, scope)
            if shapes is None:
                if self.apart(var, call, scope):
                    return
                self.host(var, func, args, results, scope)
                return
            place = func.virtual_device_
            outs = [self.fixed(t, scope, place) if t.is_static else self.dynamic(t, s, scope, place) for t, s in zip(types, shapes)]
        ins = _tuple(args)
        unit = self.let(scope, "call", vm.invoke_tvm_op(func, ins, _tuple(outs)), TupleType([]))
        unit.name_hint = "_" + unit.name_hint
        self.finish(var, func.ret_type, outs, results, scope)

    def external(self, callee: Any) -> Any:
        """The function of the module that a call reaches when it is compiled elsewhere; None for any other."""
        func = self.mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
        return func if func is not None and (is_primitive(func) or not isinstance(func, Function)) else None

    def call_external(self, var: Var, call: Call, scope: _Scope) -> None:
        """A call of a function that is compiled elsewhere: its body says how large the results are."""
        func, args = self.external(call.op), self.atoms(call.args, scope)
        ty, shapes, results = call.checked_type, None, self.facts.unknown(call.checked_type)
        if not is_static(ty) and isinstance(func, Function):
            inlined = infer_type(func.replace(body=without_composites(func.body)))
            special, results, missing, checks = self.specialise(inlined, args)  # type: ignore[arg-type]
            ty, shapes = special.ret_type, self.shapes(special, args, results, checks, missing, scope)
        if shapes is None and not is_static(ty):
            raise UnsupportedOpError(f"the external function @{call.op.name_hint} has results of the type {ty}, whose sizes only its evaluation tells: the "  # type: ignore[attr-defined]
                                     "virtual machine has to give it the memory for them")
        types = flatten_types(ty)
        outs = [self.fixed(t, scope) if t.is_static else self.dynamic(t, s, scope) for t, s in zip(types, shapes or [None] * len(types))]  # type: ignore[arg-type]
        unit = self.let(scope, "call", vm.invoke_tvm_op(call.op, _tuple(args), _tuple(outs)), TupleType([]))
        unit.name_hint = "_" + unit.name_hint
        self.finish(var, ty, outs, results, scope)

    def apart(self, var: Var, call: Call, scope: _Scope) -> bool:
        """A call of a primitive function as calls of its operators one by one; False when there is but one."""
        parts = one_by_one(call)
        for each, step in (*parts[:-1], (var, parts[-1][1])) if parts else ():
            self.primitive(each, step, scope)
        return bool(parts)

    def finish(self, var: Var, ty: Type, outs: list[Var], results: list[Known], scope: _Scope) -> None:
        """Makes the result known under the variable of the call."""
        for o, k in zip(outs, results):
            self.facts.bind(o, [k])
        self.facts.bind(var, results)
        if isinstance(ty, TensorType):
            self.renamed[id(var)] = (var, outs[0])
        else:
            value = memory.to_tuple_type(ty, list(outs))
            for node in post_order(value, children):
                if node._checked_type is None:
                    node._checked_type = TupleType([f._checked_type for f in node.fields])
            flat = self._flat_tuple(value, scope)
            var._checked_type = flat._checked_type
            scope.bindings.append((var, flat))

    def _flat_tuple(self, value: Any, scope: _Scope) -> Any:
        fields = [self.let(scope, "tuple", self._flat_tuple(f, scope), f._checked_type) if isinstance(f, Tuple) else f for f in value.fields]
        new = Tuple(fields)
        new._checked_type = value._checked_type
        return new

    def specialise(self, func: Function, args: Sequence[RelayExpr]) -> tuple[Function, list[Known], list[str], list[Any]]:
        """The function with the sizes that are known here in all its types; what is known of its results."""
        facts = Evaluator(self.table)
        new_params = []
        for p, a in zip(func.params, args):
            known = self._facts_of(a)
            q = Var(p.name_hint)
            q._checked_type = q.type_annotation = self.typed([k._replace(source=None) for k in known], p.checked_type)  # type: ignore[misc]
            facts.bind(p, known)
            new_params.append(q)
        facts.run(func.body)
        memo: dict[int, RelayExpr] = {id(p): q for p, q in zip(func.params, new_params)}
        at_hand = [d for n in (*func.params, func.body) for k in facts.known[id(n)] for d in k.dims if isinstance(d, Size)]
        formulas = Formulas({d: self.sizes.setdefault(d, AnyDim()) for d in at_hand}, self.sizes)
        for node in post_order(func.body, children):
            if id(node) not in memo:
                memo[id(node)] = self._retyped(node, memo, facts, formulas)
        body = memo[id(func.body)]
        new = Function(new_params, body, body._checked_type, (), func.attrs)
        new._checked_type = FuncType([q._checked_type for q in new_params], body._checked_type)
        new.virtual_device_ = func.virtual_device_
        return new, facts.known[id(func.body)], facts.missing, facts.checks

    def _retyped(self, node: Any, memo: dict[int, RelayExpr], facts: Evaluator, formulas: Formulas) -> RelayExpr:
        if isinstance(node, Constant):
            return node
        kids = {id(c): memo[id(c)] for c in children(node)}
        new = node.map_children(lambda c: kids.get(id(c), c))
        new = node.replace() if new is node else new
        new._checked_type = self.typed(facts.known[id(node)], node.checked_type, formulas)
        return new

    def local_program(self, func: Function, args: Sequence[RelayExpr]) -> Any:
        """The shape program of a function over its own arguments, or None when a rule is missing."""
        table = DimTable()
        local = Evaluator(table)
        first = 0
        for p, a in zip(func.params, args):
            found = params_of(p.checked_type, table, first)
            first += len(found)
            constants = self._facts_of(a)
            local.bind(p, [k._replace(values=c.values) if c.values is not None and all(isinstance(v, int) for v in c.values) else k
                           for k, c in zip(found, constants)])
        results = local.run(func.body)
        dims = [d for k in results for d in k.dims] + [c for c, _ in local.checks]
        if not is_computable(table, dims):
            return None
        return assemble(table, [k.dims for k in results], local.checks)

    def shapes(self, func: Function, args: list[RelayExpr], results: list[Known], checks: list[Any], missing: list[str],
               scope: _Scope) -> list[Var] | None:
        """Variables that hold the results' shapes; None when only evaluation tells them."""
        at_hand = [scope.shapes.get(k.dims) for k in results]
        if not checks and not missing and all(v is not None for v in at_hand):
            return at_hand  # type: ignore[return-value]
        found = declared_shapes(self, func, args, results, scope)
        if found is not None:
            scope.shapes.update({k.dims: o for k, o in zip(results, found) if k.dims not in scope.shapes})
            return found
        program = self.local_program(func, args)
        if program is None:
            return None
        outs = [self.fixed(TensorType([len(k.dims)], "int64"), scope) for k in results]
        is_input = [1] * len(args)
        self.let(scope, "_shape", vm.shape_func(func, _tuple(args), _tuple(outs), is_input, program), TupleType([]))
        for k, o in zip(results, outs):
            self.facts.bind(o, [Known((len(k.dims),), "int64", k.dims)])
            scope.shapes.setdefault(k.dims, o)
        return outs

    def fixed(self, ty: TensorType, scope: _Scope, device: Any = None) -> Var:
        """Memory for a tensor of known shape on a device (None: the host)."""
        size = max(1, int(np.prod(ty.concrete_shape, dtype=np.int64)) * DataType(ty.dtype).itemsize) if ty.dims else DataType(ty.dtype).itemsize
        storage = self.let(scope, "storage", memory.alloc_storage(self.constant(scope, size), self.constant(scope, ALIGNMENT), device, ty.dtype),
                           memory.STORAGE_TYPE)
        shape = Constant(ndarray.array(np.asarray(ty.concrete_shape, np.int64)))
        call = memory.alloc_tensor(storage, self.constant(scope, 0), shape, ty.dtype)
        return self.let(scope, "tensor", call, ty)

    def dynamic(self, ty: TensorType, shape: Var, scope: _Scope, device: Any = None) -> Var:
        """Memory for a tensor whose shape a variable holds."""
        storage = self.let(scope, "storage", memory.alloc_storage(shape, self.constant(scope, ALIGNMENT), device, ty.dtype), memory.STORAGE_TYPE)
        call = memory.alloc_tensor(storage, self.constant(scope, 0), shape, ty.dtype, ty.dims)
        return self.let(scope, "out", call, ty)

    def host(self, var: Var, func: Function, args: list[RelayExpr], results: list[Known], scope: _Scope) -> None:
        """A function whose results' sizes only its evaluation tells."""
        self.facts.bind(var, results)
        call = Call(Op.get("vm.invoke_host"), [func, _tuple(args)])
        call._checked_type = var._checked_type = func.ret_type
        scope.bindings.append((var, call))

    # -- functions of one operator that the machine does itself

    def special(self, var: Var, func: Function, call: Call, args: list[RelayExpr], results: list[Known], checks: list[Any], scope: _Scope) -> bool:
        """Handles reshapes, shape_of, copies between devices and rows put in place; whether it did."""
        name = call.op.name
        if call.op.get_attr("TReshapeOp") and isinstance(func.ret_type, TensorType):
            return self.reshape(var, func, args, results, checks, scope)
        if name == "shape_of" and call.attrs.dtype == "int64" or name == "vm.shape_of":
            new: Call = vm.shape_of(args[0])
        elif name == "vm.put_row" and len(args) == 3 and all(a is p for a, p in zip(call.args, func.params)):
            new = vm.put_row(*args)
        elif name == "take" and _is_row(call, func):
            new = vm.get_row(*args, mode={"clip": 1, "wrap": 2}.get(call.attrs.mode, 0))
        elif name == "device_copy":
            new = call.replace(args=(args[0],))
        else:
            return False
        new._checked_type = var._checked_type = func.ret_type
        self.facts.bind(var, results)
        scope.bindings.append((var, new))
        return True

    def reshape(self, var: Var, func: Function, args: list[RelayExpr], results: list[Known], checks: list[Any], scope: _Scope) -> bool:
        """A reshape is another view of the same memory."""
        known = results[0]
        source = func.body
        while isinstance(source, Call) and isinstance(source.op, Op) and source.op.get_attr("TReshapeOp"):
            source = source.args[0]
        data = next((a for p, a in zip(func.params, args) if p is source), None)
        if data is None:
            return False
        if known.dims == self._facts_of(data)[0].dims and not checks:
            self.renamed[id(var)] = (var, data)
            self.facts.bind(var, self._facts_of(data))
            return True
        if all(isinstance(d, int) for d in known.dims):
            shape: Var | None = self.constant(scope, list(known.dims))
        else:
            made = self.shapes(func, args, results, checks, [], scope)
            shape = made[0] if made is not None else None
        if shape is None:
            return False
        call = vm.reshape_tensor(data, shape, func.ret_type.dims)
        call._checked_type = var._checked_type = func.ret_type
        self.facts.bind(var, results)
        scope.bindings.append((var, call))
        return True



class Formulas:
    """Sizes inside a primitive function in terms of the sizes of its arguments and results, which compiled code is given."""

    def __init__(self, at_hand: dict[Dim, AnyDim], others: dict[Dim, AnyDim]) -> None:
        self.at_hand, self.others = at_hand, others
        self.plain: dict[tuple[int, ...], Any] = {}  # by product of atoms
        for d, a in sorted(at_hand.items(), key=lambda item: len(item[0].terms)):  # type: ignore[union-attr]
            self._learn(d, a)
        self.made: dict[Dim, Any] = dict(at_hand)

    def _learn(self, size: Dim, at_hand: AnyDim) -> None:
        """A size that is a product of atoms, and a constant perhaps, tells the product."""
        constant = sum(c for m, c in size.terms if not m)  # type: ignore[union-attr]
        products = [(m, c) for m, c in size.terms if m]  # type: ignore[union-attr]
        if len(products) == 1 and products[0][1] == 1:
            self.plain.setdefault(products[0][0], tir_op.subtract(at_hand, IntImm("int64", constant)) if constant else at_hand)

    def of(self, size: Dim) -> Any:
        """The size as an expression of those at hand; one of its own where there is none."""
        if size not in self.made:
            terms = [self._term(m, c) for m, c in size.terms]  # type: ignore[union-attr]
            if any(t is None for t in terms):
                self.made[size] = self.others.setdefault(size, AnyDim())
            else:
                total = terms[0]
                for t in terms[1:]:
                    total = tir_op.add(total, t)
                self.made[size] = total
        return self.made[size]

    def _term(self, atoms: tuple[int, ...], factor: int) -> Any:
        if not atoms:
            return IntImm("int64", factor)
        found = self._product(atoms)
        return found if found is None or factor == 1 else tir_op.multiply(found, IntImm("int64", factor))

    def _product(self, atoms: tuple[int, ...]) -> Any:
        """A product of atoms as a product, or a quotient, of sizes at hand."""
        left, result = list(atoms), None
        for known, size in sorted(self.plain.items(), key=lambda item: -len(item[0])):
            while known and all(left.count(a) >= known.count(a) for a in known):
                for a in known:
                    left.remove(a)
                result = size if result is None else tir_op.multiply(result, size)
        if not left:
            return result
        for whole, size in self.plain.items():
            rest = list(whole)
            if all(whole.count(a) >= atoms.count(a) for a in atoms):
                for a in atoms:
                    rest.remove(a)
                by = self.plain.get(tuple(rest))
                if by is not None:
                    return tir_op.floordiv(size, max_(by, IntImm("int64", 1)))
        return None


def _refilled(ty: Type, facts: Any, make: Any) -> Type:
    """A type with its tensors made anew from what is known of them, in order."""
    if isinstance(ty, TupleType):
        return TupleType([_refilled(f, facts, make) for f in ty.fields])
    known = next(facts)
    return make(known) if isinstance(ty, TensorType) else ty


def _is_row(call: Call, func: Function) -> bool:
    """Whether a take picks one slice along the first axis, which is a view (of data that is large enough to be worth it)."""
    data, index = (a.checked_type for a in call.args)
    return (call.attrs.axis == 0 and not index.dims and "int" in index.dtype and len(data.dims) > 1 and not call.attrs.batch_dims
            and all(a is p for a, p in zip(call.args, func.params)) and len(func.params) == 2 and data.dims[0] != 0)


def _type_of(expr: RelayExpr) -> Type:
    """The type of an expression; of one without (a closure of a polymorphic function, say) one that says nothing."""
    return expr._checked_type if expr._checked_type is not None else IncompleteType()


def _has_tensors(ty: Type) -> bool:
    return isinstance(ty, TupleType) and all(isinstance(t, TensorType) for t in flatten_types(ty))


def _result(expr: RelayExpr) -> RelayExpr:
    while isinstance(expr, Let):
        expr = expr.body
    return expr


def _tuple(fields: Sequence[RelayExpr]) -> Tuple:
    new = Tuple(fields)
    new._checked_type = TupleType([f.checked_type for f in fields])
    return new


def manifest_alloc(mod: IRModule) -> IRModule:
    """The module with explicit memory; functions must be in A-normal form, with no local functions."""
    return map_functions(mod, lambda f: _Manifest(mod).function(f))


def ManifestAlloc(host_virtual_device: Any = None) -> Pass:
    """Makes allocations and shape computations explicit."""
    return ModulePass(lambda mod, ctx: manifest_alloc(mod), PassInfo(0, "ManifestAlloc", ["ToANormalForm", "InferType"]))


register_pass("ManifestAlloc", ManifestAlloc)
__all__ = ["ManifestAlloc", "manifest_alloc", "PassContext"]
