"""Functions of a script: statements in, a ``PrimFunc`` out.

Statements are dispatched by their syntax, the values that stand in them by their form: two tables, ``_DECLARE`` (what has a name) and
``_SCOPES`` (what holds other statements), and ``_ALONE`` (what stands on a line by itself).
"""
from __future__ import annotations

import ast
import math
from typing import Any, Callable, Mapping

import numpy as np

from ..ir.attrs import DictAttrs
from ..ir.expr import INDEX_DTYPE, PrimExpr, Range
from ..ir.span import Span
from ..ir.type import PointerType, PrimType, TupleType, Type
from ..ir.visit import Walker
from ..runtime.dtype import numpy_dtype
from ..runtime.ndarray import array
from ..support.errors import AnchorlegError, ArgumentError, TypeMismatchError
from ..tir import build, op
from ..tir import expr as tir
from ..tir import stmt as ts
from ..tir.block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from ..tir.buffer import Buffer, BufferLoad
from ..tir.dtypes import is_integer, lanes_of, scalar_of, with_lanes
from ..tir.function import PrimFunc
from ..tir.functor import substitute
from . import forms, statements
from .complete import with_regions, with_root_block
from .errors import ScriptError
from .expressions import Evaluator, as_operand, is_ir
from .frames import BlockBody, Body, BranchBody, FunctionBody, Wrapper
from .macro import MacroCall
from .names import Names
from .regions import as_region, extent_between, region_load, vector_indices
from .source import Source
from .types import declared


def parse_function(source: Source, node: ast.FunctionDef, outer: Mapping[str, Any], annotations: Mapping[str, Any] | None = None,
                   private: bool = False, results: dict[int, str] | None = None) -> PrimFunc:
    """The function that a ``def`` describes.

    ``outer`` are the names around it, ``annotations`` its parameters' annotations as Python saw them (for names that only Python
    knows), ``results`` the result dtypes of the module's functions.  ScriptError says where and what is wrong.
    """
    parser = FunctionParser(source, Names(outer), annotations or {}, results)
    try:
        return parser.function(node, private)
    except ScriptError:
        raise
    except RecursionError:
        raise
    except AnchorlegError as error:
        raise parser.source.error(parser.where(), str(error)) from error
    except Exception as error:
        raise parser.source.error(parser.where(), f"{type(error).__name__}: {error}") from error


class FunctionParser(Walker):
    """Reads one function."""

    def __init__(self, source: Source, names: Names, annotations: Mapping[str, Any], results: dict[int, str] | None) -> None:
        super().__init__()
        self.source, self.names, self.annotations = source, names, annotations
        self.evaluator = Evaluator(source, names, results)
        self.root = FunctionBody()
        self.frames: list[Body] = [self.root]
        self.ranges: dict[int, Range] = {}  # id of a loop variable → what it runs over
        self.statement: ast.AST | None = None
        self.private = False
        self.unstated: dict[int, tuple[Block, bool, bool]] = {}  # blocks whose reads, whose writes were found, not stated

    # ------------------------------------------------------------ plumbing

    @property
    def body(self) -> Body:
        """The scope that statements are added to."""
        return self.frames[-1]

    def where(self) -> ast.AST | None:
        """What was being read last."""
        return self.evaluator.at if self.evaluator.at is not None else self.statement

    def error(self, message: str, node: ast.AST | None = None) -> ScriptError:
        """An error at ``node``, or at the present statement."""
        return self.source.error(node if node is not None else self.statement, message)

    def value(self, node: ast.AST) -> Any:
        """The value of an expression."""
        return self.evaluator.evaluate(node)

    def span(self) -> Span:
        """Where the present statement is."""
        return self.source.span(self.statement)  # type: ignore[arg-type]

    def push(self, body: Body | None = None) -> Body:
        """Opens a scope."""
        new = body if body is not None else Body()
        self.frames.append(new)
        self.names.scopes.append({})
        return new

    def pop(self) -> ts.Stmt:
        """Closes the innermost scope: its statements as one."""
        self.names.scopes.pop()
        return self.frames.pop().close()

    def innermost(self, kind: type) -> Any:
        """The innermost scope of a kind, or None."""
        return next((f for f in reversed(self.frames) if isinstance(f, kind)), None)

    def remember(self, node: Any) -> bool:
        """Nothing: every statement is read once."""
        return False

    def visit_default(self, node: Any) -> Any:
        raise self.error(f"{type(node).__name__} is no statement of the script language", node)

    def method_for(self, cls: type) -> Callable[[Any], Any]:
        """The rule for a class of syntax, which notes where reading is."""
        found = self._methods.get(cls)
        if found is None:
            rule = getattr(self, f"visit_{cls.__name__}", self.visit_default)

            def run(node: Any) -> Any:
                self.statement, self.evaluator.at = node, None
                return rule(node)

            found = self._methods[cls] = run
        return found

    # ------------------------------------------------------------ functions

    def function(self, node: ast.FunctionDef, private: bool) -> PrimFunc:
        """The whole function."""
        self.statement, self.private = node, private
        if not private:
            self.root.attrs["global_symbol"] = node.name
        self._parameters(node.args)
        self._result(node.returns)
        self._run(node.body)
        body = with_root_block(self.root.close(), self.root.alloc_buffers, self.unstated)
        func = PrimFunc(self.root.params, body, self.root.ret_type, self.root.buffer_map, DictAttrs(self.root.attrs))
        func.span = self.source.span(node)
        return func

    def _parameters(self, args: ast.arguments) -> None:
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults or args.posonlyargs:
            raise self.error("a loop program has plain parameters only: no defaults, no * and **")
        for arg in args.args:
            self._parameter(arg)

    def _parameter(self, arg: ast.arg) -> None:
        if arg.annotation is None:
            raise self.error(f"parameter {arg.arg!r} has no type: annotate it, as in {arg.arg}: T.handle", arg)
        form = self._annotation(arg.arg, arg.annotation)
        if isinstance(form, forms.BufferForm):
            handle, made = tir.Var(arg.arg, "handle"), form.make(arg.arg)
            self.root.buffer_map[handle] = made
            self.names.define(arg.arg, made)
        else:
            variable = declared(form)
            if variable is None:
                raise self.error(f"parameter {arg.arg!r}: a type such as T.handle, T.int32 or T.Buffer(...) is expected, got {form!r}", arg)
            handle = variable.make(arg.arg)
            self.names.define(arg.arg, handle)
        self.root.params.append(handle)

    def _annotation(self, name: str, node: ast.AST) -> Any:
        """What an annotation says; Python's own reading of it where it uses names that only Python sees."""
        try:
            return self.value(ast.parse(node.value, mode="eval").body if isinstance(node, ast.Constant) and isinstance(node.value, str) else node)
        except ScriptError:
            if name not in self.annotations:
                raise
            return self.annotations[name]

    def _result(self, node: ast.AST | None) -> None:
        if node is None or isinstance(node, ast.Constant) and node.value is None:
            return
        self.root.ret_type = _result_type(self._annotation("return", node))

    # ------------------------------------------------------------ naming values

    def bind(self, name: str, value: Any) -> None:
        """``name = value``."""
        rule = _DECLARE.get(type(value))
        if rule is not None:
            found, wrapper = rule(self, value, name)
            if wrapper is not None:
                self.body.add(wrapper)
            self.names.define(name, found)
        elif isinstance(value, (Buffer, tir.IterVar)) or isinstance(value, tir.Var) and not self.names.holds(value):
            self.names.define(name, value)
        elif isinstance(value, BufferRegion):
            self._let(name, region_load(value))
        elif isinstance(value, (PrimExpr, bool, int, float, np.generic)):
            self._let(name, _constant(value))
        else:
            self.names.define(name, value)

    def _let(self, name: str, value: PrimExpr, variable: tir.Var | None = None) -> None:
        var = variable if variable is not None else tir.Var(name, value.dtype, _pointer_type(value))
        span = self.span()
        self.body.add(lambda rest: ts.LetStmt(var, value, rest, span))
        self.names.define(name, var)

    def _bind_target(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._store(self.value(target.value), self.value(target.slice), value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._bind_several(target.elts, value)
        else:
            raise self.error("a name, or an element of a buffer, is expected on the left of '='", target)

    def _bind_several(self, targets: list[ast.expr], value: Any) -> None:
        parts = _parts(value)
        if parts is None or len(parts) != len(targets):
            raise self.error(f"{len(targets)} values are expected for {len(targets)} names, got {'one' if parts is None else len(parts)}")
        for target, part in zip(targets, parts):
            self._bind_target(target, part)

    # ------------------------------------------------------------ statements, by syntax

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error("one target is expected on the left of '='", node)
        self._bind_target(node.targets[0], self.value(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None or not isinstance(node.target, ast.Name):
            raise self.error("an annotated assignment gives a name a value", node)
        variable = declared(self.value(node.annotation))
        if variable is None:
            raise self.error("the type of a variable is expected after ':', such as T.int32", node.annotation)
        value = as_operand(self.value(node.value))
        if not isinstance(value, (PrimExpr, int, float, np.generic)):
            raise self.error(f"an expression is expected as the value of {node.target.id!r}, got {type(value).__name__}", node.value)
        var = variable.make(node.target.id)
        if var.dtype == "handle" and isinstance(value, PrimExpr):
            self._let(node.target.id, value, var)
        else:
            self._let(node.target.id, op.const(value, var.dtype), var)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        current = ast.copy_location(type(node.target)(**{**dict(ast.iter_fields(node.target)), "ctx": ast.Load()}), node.target)
        combined = ast.copy_location(ast.BinOp(current, node.op, node.value), node)
        self._bind_target(node.target, self.value(combined))

    def _store(self, buffer: Any, index: Any, value: Any) -> None:
        if not isinstance(buffer, Buffer):
            raise self.error(f"a buffer is expected before '[', got {type(buffer).__name__}")
        parts = list(index) if isinstance(index, (tuple, list)) else [index]
        self.body.add(make_store(buffer, as_operand(value), vector_indices(buffer, parts), self.span()))

    def visit_Expr(self, node: ast.Expr) -> Any:
        value = self.value(node.value)
        return self._expand(value) if isinstance(value, MacroCall) else self._alone(value)

    def _expand(self, call: MacroCall) -> Any:
        """Reads the body of a macro, with its parameters bound."""
        saved = self.source, self.names
        arguments = call.macro.arguments(call.args, call.keywords)
        self._look(call.macro.source, Names(call.macro.outer) if call.macro.hygienic else self.names)
        with self.names.scope():
            for name, value in arguments.items():
                self.names.define(name, value)
            yield call.macro.node.body
        self._look(*saved)

    def _look(self, source: Source, names: Names) -> None:
        """Reads from a source, among names, from now on."""
        self.source, self.names = source, names
        self.evaluator.source, self.evaluator.names = source, names

    def _alone(self, value: Any) -> None:
        rule = next((r for cls, r in _ALONE.items() if isinstance(value, cls)), None)
        if rule is not None:
            rule(self, value)
        elif type(value) in _SCOPES and _SCOPES[type(value)].concise is not None:
            self.body.add(_SCOPES[type(value)].concise(self, value))  # type: ignore[misc]
        elif type(value) in _DECLARE:
            self.bind("", value)
        elif isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            for each in value:
                self._alone(each)
        elif value is not None and not isinstance(value, str):
            raise self.error(f"a statement is expected, got {type(value).__name__}")

    def visit_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.body.add(ts.Evaluate(op.ret(_constant(as_operand(self.value(node.value)))), self.span()))

    def visit_Assert(self, node: ast.Assert) -> None:
        message = self.value(node.msg) if node.msg is not None else ""
        self._alone(forms.Assertion(self.value(node.test), message))

    def visit_If(self, node: ast.If) -> Any:
        condition, span = as_operand(self.value(node.test)), self.span()
        if not is_ir(condition):  # known while parsing
            yield node.body if condition else node.orelse
            return
        self.push()
        yield node.body
        then_case, else_case = self.pop(), None
        if node.orelse:
            self.push()
            yield node.orelse
            else_case = self.pop()
        self.body.add(ts.IfThenElse(condition, then_case, else_case, span))

    def visit_While(self, node: ast.While) -> Any:
        condition, span = _condition(self.value(node.test)), self.span()
        if node.orelse:
            raise self.error("a while loop has no else here", node)
        self.push()
        yield node.body
        self.body_of(lambda body: ts.While(condition, body, span))

    def body_of(self, make: Wrapper) -> None:
        """Closes a scope and adds what ``make`` builds around it."""
        inner = self.pop()
        self.body.add(make(inner))

    def visit_For(self, node: ast.For) -> Any:
        loops = _as_loops(self.value(node.iter))
        if loops is None or node.orelse:
            raise self.error("a loop is expected after 'in', such as range(n), T.serial(n) or T.grid(n, m)", node.iter)
        span = self.span()
        names = _loop_names(node.target, len(loops.bounds))
        if names is None:
            raise self.error(f"{len(loops.bounds)} loop variables are expected", node.target)
        starred = next((t for t in getattr(node.target, "elts", ()) if isinstance(t, ast.Starred)), None)
        self.push()
        made = [self._loop(name, low, high, loops.by_extent) for name, (low, high) in zip(names, loops.bounds)]
        if len(names) > 1 and isinstance(node.target, ast.Name):
            self.names.define(node.target.id, [v for v, _ in made])
        if starred is not None:
            first = node.target.elts.index(starred)  # type: ignore[attr-defined]
            count = len(made) - len(node.target.elts) + 1  # type: ignore[attr-defined]
            self.names.define(starred.value.id, [v for v, _ in made[first:first + count]])  # type: ignore[attr-defined]
        yield node.body
        self.body_of(lambda body: _loop_nest(loops, made, body, span))

    def _loop(self, name: str, low: Any, high: Any, by_extent: bool) -> tuple[tir.Var, Range]:
        low, high = as_operand(low), as_operand(high)
        kinds = [e.dtype for e in (low, high) if isinstance(e, PrimExpr)]
        dtype = INDEX_DTYPE if not kinds else kinds[0] if len(set(kinds)) == 1 else op.common_dtype(*kinds)
        if not is_integer(dtype):
            raise self.error(f"a loop runs over integers, not {dtype}")
        start, stop = (build.cast(dtype, e) if isinstance(e, PrimExpr) else build.make_const(e, dtype) for e in (low, high))
        var = tir.Var(name, dtype)
        found = Range.from_min_extent(start, stop if by_extent else extent_between(start, stop))
        self.names.define(name, var)
        self.ranges[id(var)] = found
        return var, found

    def visit_With(self, node: ast.With) -> Any:
        closers = [self._enter(item) for item in node.items]
        yield node.body
        for close in reversed(closers):
            close()

    def _enter(self, item: ast.withitem) -> Callable[[], None]:
        """Opens the scope of one ``with`` item; gives what closes it."""
        form = self.value(item.context_expr)
        name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
        if type(form) in _SCOPES:
            return self._enter_scope(_SCOPES[type(form)], form, item)
        if type(form) in _DECLARE:
            found, wrapper = _DECLARE[type(form)](self, form, name)
            self.push()
            self._name_scope(item, found)
            return lambda: self.body_of(wrapper if wrapper is not None else lambda body: body)
        raise self.error(f"what opens a scope is expected after 'with', got {type(form).__name__}", item.context_expr)

    def _enter_scope(self, scope: Scope, form: Any, item: ast.withitem) -> Callable[[], None]:
        close = scope.enter(self, form)
        if item.optional_vars is not None:
            value = [as_operand(v) for v in self.body.iter_vars] if isinstance(self.body, BlockBody) else None
            self._name_scope(item, value)
        return close

    def _name_scope(self, item: ast.withitem, value: Any) -> None:
        target = item.optional_vars
        if isinstance(target, ast.Name):
            self.names.define(target.id, value)
        elif target is not None:
            raise self.error("one name is expected after 'as'", target)

    # ------------------------------------------------------------ blocks

    def block(self, what: str) -> BlockBody:
        """The enclosing block; an error when there is none."""
        found = self.innermost(BlockBody)
        if found is None:
            raise self.error(f"{what} stands in no block: write it inside 'with T.block(...)'")
        return found

    def axis(self, kind: int, dom: Any, value: Any, name: str) -> tir.IterVar:
        """An axis of the enclosing block."""
        value = as_operand(value)
        value = value if isinstance(value, PrimExpr) else build.make_const(value, INDEX_DTYPE)
        domain = self.ranges.get(id(value)) if dom is None else _domain(dom, value.dtype)
        if domain is None:
            raise self.error(f"the axis {name!r} takes the range of a loop variable, but its value is none: use T.axis.spatial(range, value)")
        if not is_integer(value.dtype):
            raise self.error(f"the axis {name!r} has a value of type {value.dtype}: positions are integers")
        made = tir.IterVar(domain, tir.Var(name, value.dtype), kind)
        frame = self.block("an axis")
        if any(a.var.name == name for a in frame.iter_vars):
            raise self.error(f"the block has two axes {name!r}")
        self.names.define(name, made.var)
        frame.iter_vars.append(made)
        frame.iter_values.append(value)
        return made


# ---------------------------------------------------------------- values


def _result_type(annotation: Any) -> Type:
    if annotation is None:
        return TupleType(())
    if isinstance(annotation, Type):
        return annotation
    found = declared(annotation)
    if found is None:
        raise ArgumentError(f"the type of a result is expected after '->', such as T.int32, got {annotation!r}")
    return found.type_annotation if found.type_annotation is not None else PrimType(found.dtype)


def _constant(value: Any) -> PrimExpr:
    """A value as an expression; Python integers are indices."""
    found = op.convert(value) if isinstance(value, (PrimExpr, int, str)) else op.const(value)
    if not isinstance(found, PrimExpr):
        raise TypeMismatchError(f"an expression is expected, got {type(value).__name__}")
    return found


def _condition(value: Any) -> PrimExpr:
    value = as_operand(value)
    return build.make_const(value, "bool") if isinstance(value, (bool, int)) else value


def _pointer_type(value: PrimExpr) -> Any:
    if isinstance(value, tir.Var):
        return value.type_annotation
    if isinstance(value, tir.Call) and getattr(value.op, "name", "") == "tir.address_of" and isinstance(value.args[0], BufferLoad):
        return PointerType(PrimType(value.args[0].buffer.dtype), value.args[0].buffer.scope_name)
    return None


def _parts(value: Any) -> list[Any] | None:
    """The values that stand for several names."""
    if isinstance(value, forms.Axis):
        return [forms.Axis((k,), (d,), (v,)) for k, d, v in zip(value.kinds, value.doms, value.values)]
    return list(value) if isinstance(value, (tuple, list)) else None


def _as_loops(value: Any) -> forms.Loops | None:
    if isinstance(value, range):
        return statements.serial(value.start, value.stop) if value.step == 1 else None
    return value if isinstance(value, forms.Loops) else None


def _loop_names(target: ast.AST, count: int) -> list[str] | None:
    """The names of loop variables; one name for several loops stands for the list of them."""
    if isinstance(target, ast.Name):
        return [target.id] if count == 1 else [f"{target.id}_{i}" for i in range(count)]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    found: list[str] = []
    rest = count - len(target.elts) + 1  # what a starred name stands for
    for t in target.elts:
        if isinstance(t, ast.Starred) and isinstance(t.value, ast.Name):
            found.extend(f"{t.value.id}_{i}" for i in range(rest))
        elif isinstance(t, ast.Name):
            found.append(t.id)
    return found if len(found) == count else None


def _loop_nest(loops: forms.Loops, made: list[tuple[tir.Var, Range]], body: ts.Stmt, span: Span) -> ts.Stmt:
    for var, dom in reversed(made):
        thread = None
        if loops.thread is not None:
            thread = tir.IterVar(None, tir.Var("", var.dtype), tir.IterVar.ThreadIndex, loops.thread)
        body = ts.For(var, dom.min, dom.extent, loops.kind, body, thread, loops.annotations, span)
    return body


def _domain(dom: Any, dtype: str) -> Range:
    if isinstance(dom, Range):
        return dom
    low, high = dom if isinstance(dom, (tuple, list)) else (0, dom)
    low, high = (op.const(as_operand(e), dtype) if isinstance(e, int) else as_operand(e) for e in (low, high))
    return Range.from_min_extent(low, build.sub(*op.match_types(high, low)))


def make_store(buffer: Buffer, value: Any, indices: list[PrimExpr], span: Any = None) -> ts.BufferStore:
    """A store; the value becomes one of the buffer's dtype, spread over the lanes of the index."""
    lanes = max([1, *(lanes_of(i.dtype) for i in indices)])
    dtype = with_lanes(scalar_of(buffer.dtype), lanes * lanes_of(buffer.dtype))
    found = _constant(value) if isinstance(value, PrimExpr) else op.const(value, scalar_of(buffer.dtype))
    if lanes_of(found.dtype) not in (1, lanes_of(dtype)):
        raise TypeMismatchError(f"buffer {buffer.name!r}: {lanes_of(dtype)} lanes are stored to, but the value has {lanes_of(found.dtype)}")
    return ts.BufferStore(buffer, build.cast(dtype, found), indices, span)


# ---------------------------------------------------------------- declarations: form → (value, what holds the rest)


def _named(parser: FunctionParser, form: Any, name: str) -> tuple[Any, Wrapper | None]:
    return form.make(name), None


def _match_buffer(parser: FunctionParser, form: forms.MatchBuffer, name: str) -> tuple[Any, Wrapper | None]:
    made = form.buffer.make(name)
    if isinstance(form.source, tir.Var):
        if not any(form.source is p for p in parser.root.params):
            raise parser.error(f"T.match_buffer: {form.source.name!r} is no parameter of the function")
        parser.root.buffer_map[form.source] = made
    else:
        parser.block("T.match_buffer of a region").match_buffers.append(MatchBufferRegion(made, as_region(form.source)))
    return made, None


def _allocate(parser: FunctionParser, form: forms.Allocation, name: str) -> tuple[Any, Wrapper | None]:
    var = form.var if form.var is not None else tir.Var(name, "handle", PointerType(PrimType(form.dtype), form.scope))
    condition = build.make_const(True, "bool") if form.condition is None else _condition(form.condition)
    span = parser.span()
    return var, lambda rest: ts.Allocate(var, form.dtype, form.extents, condition, rest, form.annotations, span)


def _constant_data(parser: FunctionParser, form: forms.Constant, name: str) -> tuple[Any, Wrapper | None]:
    var, span = form.var if form.var is not None else tir.Var(name, "handle", PointerType(PrimType(form.dtype), "global")), parser.span()
    shape = [int(e) for e in form.extents]
    raw = form.data.numpy() if hasattr(form.data, "numpy") else form.data
    values = np.asarray(raw).astype(numpy_dtype(form.dtype))
    data = array(values.reshape(shape) if values.size == math.prod(shape) else values)  # the code generators refuse too few
    return var, lambda rest: ts.AllocateConst(var, form.dtype, form.extents, data, rest, form.annotations, span)


def _declare_buffer(parser: FunctionParser, form: forms.Declaration, name: str) -> tuple[Any, Wrapper | None]:
    made, span = form.buffer.make(name), parser.span()
    if form.buffer.data is not None:
        return made, lambda rest: ts.DeclBuffer(made, rest, span)
    always = build.make_const(True, "bool")
    return made, lambda rest: ts.Allocate(made.data, made.dtype, made.shape, always, ts.DeclBuffer(made, rest, span), None, span)


def _alloc_buffer(parser: FunctionParser, form: forms.BlockAllocation, name: str) -> tuple[Any, Wrapper | None]:
    made = form.buffer.make(name)
    frame = parser.innermost(BlockBody)
    (frame if frame is not None else parser.root).alloc_buffers.append(made)
    return made, None


def _binding(parser: FunctionParser, form: forms.Binding, name: str) -> tuple[Any, Wrapper | None]:
    value, span = as_operand(form.value), parser.span()
    given = form.var if isinstance(form.var, tir.Var) else None
    value = op.const(value, given.dtype) if given is not None and not isinstance(value, PrimExpr) else _constant(value)
    var = given if given is not None else tir.Var(name, value.dtype, _pointer_type(value))
    return var, lambda rest: ts.LetStmt(var, value, rest, span)


def _axis(parser: FunctionParser, form: forms.Axis, name: str) -> tuple[Any, Wrapper | None]:
    made = [parser.axis(k, d, v, name).var for k, d, v in zip(form.kinds, form.doms, form.values)]
    return made[0] if len(made) == 1 else made, None


def _thread(parser: FunctionParser, form: forms.Thread, name: str) -> tuple[Any, Wrapper | None]:
    span, extent = parser.span(), op.convert(as_operand(form.extent))
    if isinstance(form.thread, str):
        axis = tir.IterVar(Range.from_min_extent(0, extent), tir.Var(name or form.thread, "int32"), tir.IterVar.ThreadIndex, form.thread)
    else:
        axis = form.thread.replace(dom=Range.from_min_extent(0, extent))
    return axis.var, lambda rest: ts.AttrStmt(axis, "virtual_thread" if axis.thread_tag == "vthread" else "thread_extent", extent, rest, span)


_DECLARE: dict[type, Callable[[FunctionParser, Any, str], tuple[Any, "Wrapper | None"]]] = {
    forms.VarForm: _named, forms.ThreadForm: _named, forms.BufferForm: _named, forms.MatchBuffer: _match_buffer, forms.Allocation: _allocate,
    forms.Constant: _constant_data, forms.Declaration: _declare_buffer, forms.BlockAllocation: _alloc_buffer, forms.Binding: _binding,
    forms.Axis: _axis, forms.Thread: _thread, forms.MetaVar: lambda parser, form, name: (form.value, None),
}


# ---------------------------------------------------------------- scopes


class Scope:
    """How a form opens a scope: ``enter`` pushes it and gives what closes it; ``concise`` gives what holds the rest of the present one
    (None: the form has to stand in a ``with``)."""

    def __init__(self, enter: Callable[[FunctionParser, Any], Callable[[], None]],
                 concise: Callable[[FunctionParser, Any], Wrapper] | None = None) -> None:
        self.enter, self.concise = enter, concise


def _around(wrap: Callable[[FunctionParser, Any], Wrapper]) -> Scope:
    """A scope that becomes one statement around its body."""
    def enter(parser: FunctionParser, form: Any) -> Callable[[], None]:
        wrapper = wrap(parser, form)
        parser.push()
        return lambda: parser.body_of(wrapper)

    return Scope(enter, wrap)


def _attribute(parser: FunctionParser, form: forms.Attribute) -> Wrapper:
    node, value, span = _attribute_node(form.node), _constant(as_operand(form.value)), parser.span()
    return lambda rest: ts.AttrStmt(node, form.key, value, rest, span)


def _attribute_node(node: Any) -> Any:
    if isinstance(node, str):
        return tir.StringImm(node)
    return op.convert(node) if isinstance(node, (bool, int, float)) else node


def _assertion(parser: FunctionParser, form: forms.Assertion) -> Wrapper:
    condition, message, span = _condition(form.condition), form.message, parser.span()
    text = tir.StringImm(message) if isinstance(message, str) else message
    return lambda rest: ts.AssertStmt(condition, text, rest, span)


def _realization(parser: FunctionParser, form: forms.Realization) -> Wrapper:
    region, span = as_region(form.region), parser.span()
    condition = _condition(form.condition)
    return lambda rest: ts.BufferRealize(region.buffer, region.region, condition, rest, span)


def _repeat(parser: FunctionParser, form: forms.Repeat) -> Wrapper:
    condition, span = _condition(form.condition), parser.span()
    return lambda rest: ts.While(condition, rest, span)


def _enter_block(parser: FunctionParser, form: forms.BlockScope) -> Callable[[], None]:
    span = parser.span()
    frame = BlockBody()
    parser.push(frame)
    return lambda: parser.body_of(lambda body: _finish_block(parser, frame, form, body, span))


def _finish_block(parser: FunctionParser, frame: BlockBody, form: forms.BlockScope, body: ts.Stmt, span: Span) -> ts.Stmt:
    block = Block(frame.iter_vars, frame.reads or (), frame.writes or (), form.name, body, frame.init, frame.alloc_buffers, frame.match_buffers,
                  frame.annotations, span)
    block = with_regions(block, frame.reads is None, frame.writes is None)
    parser.unstated[id(block)] = (block, frame.reads is None, frame.writes is None)
    if form.no_realize:
        return block
    if frame.predicate is None:
        return BlockRealize(frame.iter_values, True, block, span)
    around = {axis.var: value for axis, value in zip(frame.iter_vars, frame.iter_values)}  # the condition is asked outside of the block
    return BlockRealize(frame.iter_values, substitute(frame.predicate, around), block, span)


def _enter_init(parser: FunctionParser, form: forms.InitScope) -> Callable[[], None]:
    frame = parser.block("T.init()")
    if frame.init is not None:
        raise parser.error("the block has two T.init()")
    parser.push()

    def close() -> None:
        frame.init = parser.pop()

    return close


def _enter_branch(parser: FunctionParser, form: forms.Branch) -> Callable[[], None]:
    condition, span, frame = _condition(form.condition), parser.span(), BranchBody()
    parser.push(frame)

    def close() -> None:
        parser.pop()
        if True not in frame.sides:
            raise parser.error("T.If without T.Then() in it")
        parser.body.add(ts.IfThenElse(condition, frame.sides[True], frame.sides.get(False), span))

    return close


def _enter_side(parser: FunctionParser, form: forms.BranchSide) -> Callable[[], None]:
    frame = parser.body
    if not isinstance(frame, BranchBody):
        raise parser.error("T.Then() and T.Else() stand directly in T.If(...)")
    parser.push()

    def close() -> None:
        frame.sides[form.taken] = parser.pop()

    return close


_SCOPES: dict[type, Scope] = {
    forms.Attribute: _around(_attribute), forms.Assertion: _around(_assertion), forms.Realization: _around(_realization),
    forms.Repeat: Scope(_around(_repeat).enter), forms.BlockScope: Scope(_enter_block), forms.InitScope: Scope(_enter_init),
    forms.Branch: Scope(_enter_branch), forms.BranchSide: Scope(_enter_side),
}


# ---------------------------------------------------------------- forms alone on a line


def _function_attributes(parser: FunctionParser, form: forms.FunctionAttributes) -> None:
    if parser.private and "global_symbol" in form.attrs:
        raise parser.error("a private function has no global_symbol: leave out one of the two")
    parser.root.attrs.update({str(k): v for k, v in form.attrs.items()})


def _function_result(parser: FunctionParser, form: forms.FunctionResult) -> None:
    parser.root.ret_type = _result_type(form.type)


def _where(parser: FunctionParser, form: forms.Where) -> None:
    frame = parser.block("T.where")
    if frame.predicate is not None:
        raise parser.error("the block has two conditions (T.where)")
    frame.predicate = _condition(form.predicate)


def _accesses(parser: FunctionParser, form: forms.Accesses) -> None:
    frame, regions = parser.block("T.reads and T.writes"), [as_region(r) for r in form.regions]
    if (frame.writes if form.writes else frame.reads) is not None:
        raise parser.error(f"the block states twice what it {'writes' if form.writes else 'reads'}")
    if form.writes:
        frame.writes = regions
    else:
        frame.reads = regions


def _block_attributes(parser: FunctionParser, form: forms.BlockAttributes) -> None:
    parser.block("T.block_attr").annotations.update({str(k): v for k, v in form.attrs.items()})


def _store_form(parser: FunctionParser, form: forms.Store) -> None:
    indices = list(form.indices) if isinstance(form.indices, (list, tuple)) else [form.indices]
    parser.body.add(make_store(form.buffer, as_operand(form.value), vector_indices(form.buffer, indices), parser.span()))


def _evaluation(parser: FunctionParser, form: forms.Evaluation) -> None:
    parser.body.add(ts.Evaluate(_constant(as_operand(form.value)), parser.span()))


def _expression(parser: FunctionParser, value: Any) -> None:
    parser.body.add(ts.Evaluate(_constant(as_operand(value)), parser.span()))


_ALONE: dict[type, Callable[[FunctionParser, Any], None]] = {
    forms.FunctionAttributes: _function_attributes, forms.FunctionResult: _function_result, forms.Where: _where, forms.Accesses: _accesses,
    forms.BlockAttributes: _block_attributes, forms.Store: _store_form, forms.Evaluation: _evaluation, PrimExpr: _expression,
    BufferRegion: _expression, int: _expression,
}
