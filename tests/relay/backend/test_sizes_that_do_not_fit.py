"""Programs whose sizes only the inputs tell: all executors give the same result, or all refuse.

Each case is an operator over arguments whose sizes are partly unknown, and inputs of which some fit and some do not.
"""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.ir.module import IRModule
from anchorleg.relay import op
from anchorleg.support.errors import AnchorlegError

RNG = np.random.default_rng(5)


def outcomes(func, args):
    """What each executor gives: arrays, or None where it refuses."""
    mod = IRModule.from_expr(func)
    found = []
    for kind in ("debug", "vm"):
        try:
            result = relay.create_executor(kind, mod=mod, device=cpu(0), target="llvm").evaluate()(*args)
        except AnchorlegError:
            found.append(None)
        else:
            found.append([r.numpy() for r in result] if hasattr(result, "tag") else [result.numpy()])
    return found


def value(shape, dtype="float32", most=2):
    return RNG.standard_normal(shape).astype(dtype) if dtype.startswith("float") else RNG.integers(0, most, shape).astype(dtype)


def dims(shape, unknown):
    return tuple(relay.Any() if u else s for s, u in zip(shape, unknown))


def check(build, shapes, given, dtypes):
    """Declares every subset of few enough sizes unknown that ``given`` cannot be refused by type inference."""
    free = [[g != s for g, s in zip(given_shape, shape)] for shape, given_shape in zip(shapes, given)]
    for rest in (False, True):
        variables = [relay.var(f"x{i}", shape=dims(s, [f or rest for f in flags]), dtype=d)
                     for i, (s, flags, d) in enumerate(zip(shapes, free, dtypes))]
        most = 2 if min(given[0], default=2) > 1 else 1  # indices that are there
        first, second = outcomes(relay.Function(variables, build(*variables)), [value(g, d, most) for g, d in zip(given, dtypes)])
        assert (first is None) == (second is None), f"debug {'refuses' if first is None else 'accepts'} {given}, vm does not"
        for a, b in zip(first or [], second or []):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def along(name, count, **attrs):
    """An operator with ``count`` vectors along axis 1."""
    fn = getattr(op.nn, name)
    return (name, lambda *a: fn(*a, **attrs), [(2, 3, 4)] + [(3,)] * count)


# name, builder, shapes that fit, dtypes (float32 where none are given)
CASES = [
    along("bias_add", 1), along("prelu", 1), along("layer_norm", 2, axis=1), along("instance_norm", 2), along("group_norm", 2, num_groups=1),
    ("batch_norm", lambda *a: op.nn.batch_norm(*a)[0], [(2, 3, 4)] + [(3,)] * 4),
    ("add", op.add, [(2, 3), (2, 3)]), ("where", op.where, [(2, 3)] * 3, ["bool", "float32", "float32"]),
    ("dense", op.nn.dense, [(2, 3), (4, 3)]), ("matmul", op.nn.matmul, [(2, 3), (3, 4)]), ("batch_matmul", op.nn.batch_matmul, [(2, 3, 4), (2, 5, 4)]),
    ("concatenate", lambda a, b: op.concatenate([a, b], 1), [(2, 3), (2, 4)]), ("stack", lambda a, b: op.stack([a, b], 0), [(2, 3), (2, 3)]),
    ("conv2d", lambda x, w: op.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=4), [(1, 3, 5, 5), (4, 3, 3, 3)]),
    ("take", lambda x, i: op.take(x, i, axis=1), [(2, 3), (4,)], ["float32", "int32"]),
    ("take-batch", lambda x, i: op.take(x, i, axis=1, batch_dims=1), [(2, 3), (2, 4)], ["float32", "int32"]),
    ("gather", lambda x, i: op.gather(x, 1, i), [(2, 3), (2, 4)], ["float32", "int32"]),
    ("gather_nd", op.gather_nd, [(2, 3), (2, 4)], ["float32", "int32"]),
    ("scatter_elements", lambda x, i, u: op.scatter_elements(x, i, u, 0), [(2, 3), (2, 3), (2, 3)], ["float32", "int32", "float32"]),
    ("scatter_nd", lambda x, i, u: op.scatter_nd(x, i, u, "add"), [(2, 3), (2, 4), (4,)], ["float32", "int32", "float32"]),
    ("split", lambda x: op.split(x, 3, 1)[1], [(2, 6)]), ("squeeze", lambda x: op.squeeze(x, [1]), [(2, 1, 3)]),
    ("reshape", lambda x: op.reshape(x, (2, 3)), [(6,)]), ("reshape-infer", lambda x: op.reshape(x, (2, -1)), [(6,)]),
    ("reshape-fused", lambda x: op.nn.relu(op.reshape(op.nn.relu(x), (2, -1))), [(6,)]),
    ("reshape-split", lambda x: op.nn.relu(op.reshape(op.nn.relu(x), (-4, 2, -1, 0))), [(6, 4)]),
    ("reshape-joined", lambda x: op.nn.relu(op.reshape(op.nn.relu(x), (-3, 3))), [(2, 4, 3)]),
    ("reshape_like", op.reshape_like, [(6,), (2, 3)]), ("slice_like", op.slice_like, [(4, 5), (2, 3)]),
    ("broadcast_to", lambda x: op.broadcast_to(x, (2, 3)), [(1, 3)]), ("broadcast_to_like", op.broadcast_to_like, [(1, 3), (2, 3)]),
    ("sequence_mask", lambda x, n: op.sequence_mask(x, n, axis=0), [(4, 2, 3), (2,)], ["float32", "int32"]),
    ("one_hot", lambda i: op.one_hot(i, op.const(1.0), op.const(0.0), 3, -1, "float32"), [(4,)], ["int32"]),
    ("strided_slice", lambda x: op.strided_slice(x, [1], [3]), [(4, 2)]), ("argmax", lambda x: op.argmax(x, axis=1), [(2, 3)]),
    ("max", lambda x: op.max(x, axis=1), [(2, 3)]), ("mean", lambda x: op.mean(x, axis=0), [(2, 3)]),
    ("depth_to_space", lambda x: op.nn.depth_to_space(x, 2), [(1, 4, 2, 3)]), ("space_to_depth", lambda x: op.nn.space_to_depth(x, 2), [(1, 1, 4, 6)]),
    ("max_pool2d", lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)), [(1, 2, 4, 4)]), ("softmax", lambda x: op.nn.softmax(x, 1), [(2, 3)]),
    ("upsampling", lambda x: op.nn.upsampling(x, 2, 2), [(1, 2, 3, 3)]), ("tile", lambda x: op.tile(x, (2, 2)), [(2, 3)]),
    ("adv_index", lambda x, i, j: op.adv_index([x, i, j]), [(2, 3), (4,), (4,)], ["float32", "int32", "int32"]),
    ("meshgrid", lambda a, b: op.meshgrid([a, b])[1], [(2,), (3,)]), ("topk", lambda x: op.topk(x, 2, ret_type="values"), [(2, 3)]),
    ("matrix_set_diag", op.matrix_set_diag, [(2, 3, 4), (2, 3)]), ("searchsorted", op.searchsorted, [(2, 3), (2, 4)]),
    ("conv1d", lambda x, w: op.nn.conv1d(x, w, kernel_size=3, channels=4), [(1, 3, 5), (4, 3, 3)]),
    ("conv2d-groups", lambda x, w: op.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, groups=2), [(1, 4, 5, 5), (4, 2, 3, 3)]),
    ("conv2d-depthwise", lambda x, w: op.nn.conv2d(x, w, kernel_size=(3, 3), channels=2, groups=2), [(1, 2, 5, 5), (2, 1, 3, 3)]),
    ("conv2d-nhwc", lambda x, w: op.nn.conv2d(x, w, kernel_size=(3, 3), channels=4, data_layout="NHWC", kernel_layout="HWIO"), [(1, 5, 5, 3), (3, 3, 3, 4)]),
    ("conv2d_transpose", lambda x, w: op.nn.conv2d_transpose(x, w, kernel_size=(3, 3), channels=4), [(1, 3, 4, 4), (3, 4, 3, 3)]),
    ("conv2d_transpose-groups", lambda x, w: op.nn.conv2d_transpose(x, w, kernel_size=(3, 3), channels=4, groups=2), [(1, 6, 4, 4), (6, 2, 3, 3)]),
    ("conv2d-multiplier", lambda x, w: op.nn.conv2d(x, w, kernel_size=(3, 3), channels=6, groups=3), [(1, 3, 5, 5), (3, 2, 3, 3)]),
    ("conv3d", lambda x, w: op.nn.conv3d(x, w, kernel_size=(1, 3, 3), channels=2), [(1, 2, 2, 4, 4), (2, 2, 1, 3, 3)]),
    ("avg_pool2d", lambda x: op.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1)), [(1, 2, 5, 5)]),
    ("avg_pool2d-ceil", lambda x: op.nn.avg_pool2d(x, (3, 3), (2, 2), ceil_mode=True), [(1, 2, 5, 5)]),
    ("global_avg_pool2d", lambda x: op.nn.global_avg_pool2d(x), [(1, 2, 4, 4)]), ("global_max_pool2d", lambda x: op.nn.global_max_pool2d(x), [(1, 2, 4, 4)]),
    ("adaptive_avg_pool2d", lambda x: op.nn.adaptive_avg_pool2d(x, (2, 2)), [(1, 2, 5, 5)]),
    ("pad", lambda x: op.nn.pad(x, ((0, 0), (1, 2))), [(2, 3)]), ("mirror_pad", lambda x: op.nn.mirror_pad(x, ((0, 0), (1, 2)), "REFLECT"), [(2, 4)]),
    ("lrn", lambda x: op.nn.lrn(x, 3), [(1, 4, 2, 2)]), ("batch_flatten", op.nn.batch_flatten, [(2, 3, 4)]),
    ("strided_set", lambda x, v: op.strided_set(x, v, op.const([0], "int32"), op.const([2], "int32")), [(4, 3), (2, 3)]),
    ("reverse_sequence", lambda x, n: op.reverse_sequence(x, n, 1, 0), [(4, 3), (3,)], ["float32", "int32"]),
    ("cumsum", lambda x: op.cumsum(x, 1), [(2, 3)]), ("sort", lambda x: op.sort(x, 1), [(2, 3)]), ("argsort", lambda x: op.argsort(x, 1), [(2, 3)]),
    ("repeat", lambda x: op.repeat(x, 2, 0), [(2, 3)]), ("flip", lambda x: op.reverse(x, 1), [(2, 3)]), ("transpose", lambda x: op.transpose(x, (1, 0)), [(2, 3)]),
    ("layout_transform", lambda x: op.layout_transform(x, "NCHW", "NHWC"), [(1, 2, 3, 4)]), ("squeeze-all", lambda x: op.squeeze(x, [0, 2]), [(1, 3, 1)]),
    ("resize2d", lambda x: op.image.resize2d(x, (4, 4)), [(1, 2, 3, 3)]), ("broadcast-dynamic", lambda x, n: op.broadcast_to(x, n), [(1, 3), (2,)], ["float32", "int64"]),
    ("slice-dynamic", lambda x, b: op.strided_slice(x, b, op.const([2], "int64"), op.const([1], "int64")), [(4, 2), (1,)], ["float32", "int64"]),
    ("sliding_window", lambda x: op.sliding_window(x, 0, [2, 2], [1, 1]), [(3, 4)]), ("variance", lambda x: op.variance(x, 1), [(2, 3)]),
    ("matmul-transposed", lambda a, b: op.nn.matmul(a, b, transpose_a=True), [(3, 2), (3, 4)]),
    ("batch_matmul-plain", lambda a, b: op.nn.batch_matmul(a, b, transpose_b=False), [(2, 3, 4), (2, 4, 5)]),
    ("l2_normalize", lambda x: op.nn.l2_normalize(x, 1e-5, [1]), [(2, 3)]), ("log_softmax", lambda x: op.nn.log_softmax(x, 1), [(2, 3)]),
    ("scale_shift", lambda x, a: op.multiply(op.nn.relu(op.add(x, a)), x), [(2, 3), (3,)]),
    ("dense-fused", lambda x, w, b: op.tanh(op.nn.bias_add(op.nn.dense(x, w), b)), [(2, 3), (4, 3), (4,)]),
]


def changed(shapes):
    """The shapes themselves, and each with one size changed: to 1, to less, to more, to none."""
    yield shapes
    for i, shape in enumerate(shapes):
        for k, size in itertools.product(range(len(shape)), (0, 1, 2, 5)):
            if shape[k] != size:
                yield [*shapes[:i], (*shape[:k], size, *shape[k + 1:]), *shapes[i + 1:]]


def check_case(case, step):
    """Checks every ``step``-th change of a case's shapes."""
    _, build, shapes, *dtypes = case
    kinds = dtypes[0] if dtypes else ["float32"] * len(shapes)
    for given in list(changed(shapes))[::step]:
        check(build, shapes, given, kinds)


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_all_executors_accept_or_all_refuse(case):
    check_case(case, 5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
def test_with_every_change(case):
    check_case(case, 1)
