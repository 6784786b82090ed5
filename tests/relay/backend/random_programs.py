"""Random typed programs: loops, closures, data types, branches, references, sizes that only inputs tell.

A program is made from its type inward: `Maker.value(type, env, depth)` gives an expression of a type from the variables at hand.
Whatever can change a reference is bound by a ``let``, so that there is one order of evaluation.
"""
from __future__ import annotations

import random

import numpy as np

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay import op
from anchorleg.relay.adt import Clause, Constructor, Match, PatternConstructor, PatternVar, PatternWildcard, TypeData
from anchorleg.relay.expr import RefCreate, RefRead, RefWrite

SIZES = (2, 3)
COUNT, FLAG = relay.TensorType((), "int32"), relay.TensorType((), "bool")


def tensor_type(dims):
    """A float tensor; sizes that are 0 are unknown."""
    return relay.TensorType([d or relay.Any() for d in dims], "float32")


def is_tensor(ty):
    return isinstance(ty, relay.TensorType) and ty.dtype == "float32"


def key(ty):
    """Types are equal when their texts are."""
    return str(ty)


class Maker:
    """Makes one program from a seed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.mod = IRModule()
        self.count = 0
        self.element = tensor_type((2,))
        self.list = relay.GlobalTypeVar("List")
        self.cons, self.nil = Constructor("Cons", [self.element, self.list()], self.list), Constructor("Nil", [], self.list)
        self.mod[self.list] = TypeData(self.list, [], [self.cons, self.nil])

    def fresh(self, ty, name="v"):
        self.count += 1
        return relay.Var(f"{name}{self.count}", ty)

    # -- types

    def some_type(self, depth=2):
        pick = self.rng.random()
        if depth and pick < 0.15:
            return relay.TupleType([self.some_type(depth - 1) for _ in range(self.rng.randrange(1, 3))])
        if depth and pick < 0.3:
            return relay.RefType(self.some_type(depth - 1))
        if depth and pick < 0.42:
            return relay.FuncType([self.some_type(depth - 1) for _ in range(self.rng.randrange(0, 3))], self.some_type(depth - 1))
        if pick < 0.5:
            return self.list()
        if pick < 0.6:
            return self.rng.choice([COUNT, FLAG])
        return self.some_tensor()

    def some_tensor(self):
        return tensor_type([self.rng.choice((0, 0, *SIZES)) for _ in range(self.rng.randrange(1, 3))])

    # -- values

    def value(self, ty, env, depth):
        """An expression of a type."""
        known = [v for v in env if key(v.type_annotation) == key(ty)]
        if known and (depth <= 0 or self.rng.random() < 0.35):
            return self.rng.choice(known)
        if depth > 0:
            steps = [self.let, self.let, self.branch, self.field, self.call, self.loop, self.read, self.match]
            if any(isinstance(v.type_annotation, relay.RefType) for v in env):
                steps += [self.write] * 4
            step = self.rng.choice(steps)
            if self.rng.random() < (0.35 if is_tensor(ty) else 0.6):
                return step(ty, env, depth - 1)
        return self.plain(ty, env, depth - 1)

    def plain(self, ty, env, depth):
        if isinstance(ty, relay.TupleType):
            return relay.Tuple([self.value(f, env, depth) for f in ty.fields])
        if isinstance(ty, relay.RefType):
            return RefCreate(self.value(ty.value, env, depth))
        if isinstance(ty, relay.FuncType):
            params = [self.fresh(t, "p") for t in ty.arg_types]
            return relay.Function(params, self.value(ty.ret_type, [*env, *params], depth), ty.ret_type)
        if not isinstance(ty, relay.TensorType):
            return self.cons(self.value(self.element, env, depth), self.value(ty, env, depth)) if depth > 0 else self.nil()
        if is_tensor(ty):
            return self.tensor(ty, env, depth)
        return self.flag(env, depth) if ty.dtype == "bool" else self.number(env, depth)

    def number(self, env, depth):
        if depth > 0 and self.rng.random() < 0.6:
            return self.rng.choice([op.add, op.subtract, op.maximum])(self.value(COUNT, env, depth - 1), self.value(COUNT, env, depth - 1))
        return relay.const(self.rng.randrange(-2, 4), "int32")

    def flag(self, env, depth):
        if depth > 0 and self.rng.random() < 0.8:
            return self.rng.choice([op.less, op.equal])(self.value(COUNT, env, depth - 1), self.value(COUNT, env, depth - 1))
        return relay.const(bool(self.rng.randrange(2)))

    def tensor(self, ty, env, depth):
        dims = [d if isinstance(d, int) else 0 for d in ty.dims]
        if depth > 0 and self.rng.random() < 0.8:
            return self.operator(ty, dims, env, depth - 1)
        sizes = [d or self.rng.choice(SIZES) for d in dims]
        data = relay.const(np.linspace(-1, 1, int(np.prod(sizes)), dtype="float32").reshape(sizes))
        return self.hidden(data, dims)

    def hidden(self, data, dims):
        """A tensor whose type tells only some sizes."""
        if all(dims):
            return data
        source = self.fresh(tensor_type(dims), "h")
        return relay.Call(relay.Function([source], source, source.type_annotation), [data])

    def operator(self, ty, dims, env, depth):
        def same():
            return self.value(ty, env, depth)

        picks = [lambda: op.add(same(), same()), lambda: op.multiply(same(), same()), lambda: op.tanh(same()), lambda: op.negative(same()),
                 lambda: op.maximum(same(), op.exp(op.negative(op.abs(same())))), lambda: op.where(self.value(FLAG, env, depth - 1), same(), same())]
        if not dims[0]:
            rest = tensor_type([0, *dims[1:]])
            picks += [lambda: op.concatenate([self.value(rest, env, depth), self.value(rest, env, depth)], 0),
                      lambda: op.strided_slice(self.value(rest, env, depth), [0], [1])]
        if dims == [0]:
            picks += self.vectors(env, depth)
        if dims == [0, 0]:
            picks += self.matrices(env, depth)
        if len(dims) == 2:
            inner = self.rng.choice((0, *SIZES))
            picks.append(lambda: op.nn.dense(self.value(tensor_type([dims[0], inner]), env, depth), self.value(tensor_type([dims[1], inner]), env, depth)))
            picks.append(lambda: op.transpose(self.value(tensor_type(dims[::-1]), env, depth)))
        if len(dims) == 1:
            picks.append(lambda: op.sum(self.value(tensor_type([dims[0], self.rng.choice((0, *SIZES))]), env, depth), axis=1))
            picks.append(lambda: op.take(self.value(tensor_type([self.rng.choice((0, *SIZES)), dims[0]]), env, depth), relay.const(0), axis=0))
        return self.rng.choice(picks)()

    def vectors(self, env, depth):
        """Vectors of unknown size: sizes from values, other shapes flattened, repeated, cut."""
        def any_tensor():
            return self.value(self.some_tensor(), env, depth)

        def count():  # at least 1
            return op.reshape(op.add(op.abs(self.value(COUNT, env, depth - 1)), relay.const(1, "int32")), [1])

        vector = tensor_type((0,))
        return [
            lambda: op.reshape(any_tensor(), [-1]), lambda: op.full(relay.const(0.5), op.cast(count(), "int64"), "float32"),
            lambda: op.cast(op.arange(relay.const(0, "int32"), op.squeeze(count(), [0]), relay.const(1, "int32"), "int32"), "float32"),
            lambda: op.strided_slice(self.value(vector, env, depth), relay.const([0], "int32"), count(), relay.const([1], "int32")),
            lambda: op.tile(self.value(vector, env, depth), [2]), lambda: op.repeat(self.value(vector, env, depth), 2, 0),
            lambda: op.cast(op.reshape(op.argwhere(any_tensor()), [-1]), "float32"),
            lambda: op.reshape(any_tensor(), op.reshape(op.ndarray_size(any_tensor(), "int64"), [1]), allowzero=True),
            lambda: op.take(self.value(vector, env, depth), op.abs(op.cast(op.reshape(any_tensor(), [-1]), "int32"))),
            lambda: op.take(self.value(tensor_type((0, 0)), env, depth), self.value(COUNT, env, depth - 1), axis=0, mode="wrap"),
            lambda: op.max(self.value(tensor_type((0, 0)), env, depth), axis=0), lambda: op.split(self.value(vector, env, depth), [1])[0],
            lambda: op.topk(self.value(vector, env, depth), op.squeeze(count(), [0]), ret_type="values"),
        ]

    def matrices(self, env, depth):
        """Matrices of unknown sizes."""
        vector, matrix = tensor_type((0,)), tensor_type((0, 0))
        return [
            lambda: op.expand_dims(self.value(vector, env, depth), 0), lambda: op.reshape(self.value(matrix, env, depth), [-1, 1]),
            lambda: op.broadcast_to(self.value(vector, env, depth), op.shape_of(self.value(matrix, env, depth), "int64")),
            lambda: op.add(self.value(vector, env, depth), self.value(matrix, env, depth)), lambda: op.nn.softmax(self.value(matrix, env, depth), 1),
            lambda: op.stack([self.value(vector, env, depth), self.value(vector, env, depth)], 0),
            lambda: op.gather_nd(self.value(matrix, env, depth), relay.const([[0, 0]], "int32")),
            lambda: op.reshape(self.value(matrix, env, depth), op.shape_of(self.value(matrix, env, depth), "int64"), allowzero=True),
        ]

    # -- constructs, each gives a value of the type asked for

    def let(self, ty, env, depth):
        bound = self.fresh(self.some_type())
        return relay.Let(bound, self.value(bound.type_annotation, env, depth), self.value(ty, [*env, bound], depth))

    def branch(self, ty, env, depth):
        return relay.If(self.value(FLAG, env, depth), self.value(ty, env, depth), self.value(ty, env, depth))

    def field(self, ty, env, depth):
        others = [self.some_type(1) for _ in range(self.rng.randrange(0, 2))]
        at = self.rng.randrange(len(others) + 1)
        types = [*others[:at], ty, *others[at:]]
        whole = self.fresh(relay.TupleType(types), "t")
        return relay.Let(whole, self.value(whole.type_annotation, env, depth), relay.TupleGetItem(whole, at))

    def call(self, ty, env, depth):
        callee = self.fresh(relay.FuncType([self.some_type(1) for _ in range(self.rng.randrange(0, 3))], ty), "f")
        made = self.value(callee.type_annotation, env, depth)
        args = [self.fresh(t, "a") for t in callee.type_annotation.arg_types]
        result = relay.Call(callee, args)
        for a in reversed(args):
            result = relay.Let(a, self.value(a.type_annotation, env, depth - 1), result)
        return relay.Let(callee, made, result)

    def loop(self, ty, env, depth):
        """A local function that calls itself a few times, in tail position or not."""
        i, state = self.fresh(COUNT, "i"), self.fresh(ty, "s")
        loop = self.fresh(relay.FuncType([COUNT, ty], ty), "loop")
        following = self.value(ty, [*env, i, state], depth)
        again = relay.Call(loop, [op.subtract(i, relay.const(1, "int32")), following])
        if self.rng.random() < 0.3 and is_tensor(ty):
            again = op.tanh(again)
        body = relay.If(op.less(i, relay.const(1, "int32")), state, again)
        call = relay.Call(loop, [relay.const(self.rng.randrange(0, 4), "int32"), self.value(ty, env, depth)])
        return relay.Let(loop, relay.Function([i, state], body, ty), call)

    def read(self, ty, env, depth):
        cell = self.fresh(relay.RefType(ty), "r")
        known = [v for v in env if key(v.type_annotation) == key(cell.type_annotation)]
        if known and self.rng.random() < 0.8:
            return self.bound(RefRead(self.rng.choice(known)), ty, "g")
        return relay.Let(cell, self.value(cell.type_annotation, env, depth), self.bound(RefRead(cell), ty, "g"))

    def bound(self, expr, ty, name):
        var = self.fresh(ty, name)
        return relay.Let(var, expr, var)

    def write(self, ty, env, depth):
        cell = self.rng.choice([v for v in env if isinstance(v.type_annotation, relay.RefType)])
        new = self.fresh(cell.type_annotation.value, "n")
        unit = self.fresh(relay.TupleType([]), "u")
        return relay.Let(new, self.value(new.type_annotation, env, depth), relay.Let(unit, RefWrite(cell, new), self.value(ty, env, depth)))

    def match(self, ty, env, depth):
        data, head, tail = self.fresh(self.list(), "l"), self.fresh(self.element, "h"), self.fresh(self.list(), "rest")
        some = Clause(PatternConstructor(self.cons, [PatternVar(head), PatternVar(tail)]), self.value(ty, [*env, head, tail], depth))
        other = Clause(PatternWildcard(), self.value(ty, env, depth))
        return relay.Let(data, self.value(self.list(), env, depth), Match(data, [some, other]))

    def program(self, depth=5):
        """The module; its ``main`` takes two vectors and a matrix of unknown sizes, a number and a flag."""
        params = [self.fresh(t, "x") for t in (tensor_type((0,)), tensor_type((0, 2)), tensor_type((0, 0)), COUNT, FLAG)]
        result = relay.TupleType([self.some_tensor(), self.list(), relay.TupleType([COUNT, self.some_tensor()])])
        self.mod["main"] = relay.Function(params, self.value(result, params, depth), result)
        return self.mod


def inputs(seed, sizes):
    """Arguments for a program, with these sizes."""
    rng = np.random.default_rng(seed)
    a, b, c, d = sizes
    return [rng.standard_normal((a,)).astype("float32"), rng.standard_normal((b, 2)).astype("float32"), rng.standard_normal((c, d)).astype("float32"),
            np.array(seed % 5, "int32"), np.array(bool(seed % 2))]
