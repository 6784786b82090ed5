"""Every gradient rule against two-sided differences, in double precision, by the operators' numpy rules."""
import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.op import Op
from anchorleg.relay.backend.numpy_interpreter import evaluate
from anchorleg.relay.op.gradient import load_all, rule_of
from anchorleg.relay.transform import FirstOrderGradient, InferType
from anchorleg.support.errors import ArgumentError, UnsupportedOpError

nn = relay.nn
EPS = 1e-6


def numbers(*shape, low=-1.0, high=1.0, seed=0):
    """Distinct numbers, so that differences meet no kink."""
    values = np.linspace(low, high, int(np.prod(shape)) or 1) + 0.0123
    return np.random.default_rng(seed).permutation(values).reshape(shape)


def derived(build, inputs):
    params = [relay.var(f"p{i}", shape=x.shape, dtype=str(x.dtype)) for i, x in enumerate(inputs)]
    body = build(*params)
    func = relay.Function(params, body.astuple() if isinstance(body, relay.TupleWrapper) else body)
    mod = InferType()(IRModule.from_expr(func))
    return mod["main"], InferType()(FirstOrderGradient()(mod))["main"]


def total(value):
    return sum(map(total, value)) if isinstance(value, tuple) else float(np.sum(value))


def slopes(func, inputs, which):
    found = np.zeros(inputs[which].shape)
    for at in np.ndindex(*found.shape):
        ends = []
        for step in (EPS, -EPS):
            moved = [x.copy() for x in inputs]
            moved[which][at] += step
            ends.append(total(evaluate(func, moved)))
        found[at] = (ends[0] - ends[1]) / (2 * EPS)
    return found


def check(build, *inputs):
    inputs = [np.asarray(x) for x in inputs]
    func, both = derived(build, inputs)
    result, grads = evaluate(both, inputs)
    np.testing.assert_allclose(total(result), total(evaluate(func, inputs)))
    for i, x in enumerate(inputs):
        want = slopes(func, inputs, i) if x.dtype.kind == "f" else np.zeros(x.shape)
        assert grads[i].shape == x.shape and grads[i].dtype == x.dtype
        np.testing.assert_allclose(grads[i], want, rtol=1e-4, atol=1e-6)


POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt"}
ABOVE_ONE = {"acosh"}
UNARY = "negative copy exp log log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sigmoid erf abs floor ceil round trunc sign".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name):
    low, high = (1.1, 3) if name in ABOVE_ONE else (0.2, 2) if name in POSITIVE else (-0.9, 0.9)
    check(lambda x: getattr(relay, name)(x) * x, numbers(2, 3, low=low, high=high))


@pytest.mark.parametrize("name", "add subtract multiply divide power maximum minimum".split())
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (2,))])
def test_functions_of_two_tensors_that_broadcast(name, shapes):
    a, b = (numbers(*s, low=0.5 + 0.07 * i, high=2 + 0.11 * i, seed=i) for i, s in enumerate(shapes))
    check(lambda x, y: getattr(relay, name)(x, y) * x, a, b)


X23, X34, X234 = numbers(2, 3), numbers(3, 4), numbers(2, 3, 4)
IDS = np.array([2, 0, 2], "int32")

CASES = {
    "relu": (lambda x: nn.relu(x) * x, X23),
    "clip": (lambda x: relay.clip(x, -0.5, 0.5) * x, X23),
    "where": (lambda c, x, y: relay.where(relay.cast(c, "bool"), x, y) * y, np.array([[1, 0, 1]], "int32"), X23, numbers(2, 1)),
    "less": (lambda x, y: relay.cast(relay.less(x, y), "float64") * x, X23, numbers(2, 3, seed=1)),
    "broadcast_to": (lambda x: relay.broadcast_to(x, (4, 2, 3)), numbers(2, 1)),
    "collapse_sum_to": (lambda x: relay.collapse_sum_to(x, (1, 3)), X23),
    "full": (lambda x: relay.full(x, (2, 3), "float64"), np.array(1.5)),
    "full_like": (lambda x, v: relay.full_like(x, v) * x, X23, np.array(2.0)),
    "zeros_like": (lambda x: relay.zeros_like(x) + relay.ones_like(x) * x, X23),
    "sum": (lambda x: relay.sum(x, axis=[0, -1]) * relay.sum(x), X234),
    "sum_exclude": (lambda x: relay.sum(x, axis=[1], exclude=True, keepdims=True) * x, X234),
    "mean": (lambda x: relay.mean(x, axis=1) * relay.mean(x), X234),
    "max": (lambda x: relay.max(x, axis=1, keepdims=True) * x, X234),
    "min": (lambda x: relay.min(x) * x, X234),
    "prod": (lambda x: relay.prod(x, axis=1), numbers(2, 3, low=0.5, high=2)),
    "variance": (lambda x: relay.variance(x, axis=1) * relay.mean(x), X234),
    "variance_unbiased": (lambda x: relay.variance(x, axis=[0, 2], unbiased=True, keepdims=True) * x, X234),
    "std": (lambda x: relay.std(x, axis=0), X234),
    "logsumexp": (lambda x: relay.logsumexp(x, axis=1), X234),
    "reshape": (lambda x: relay.reshape(x, (4, -1)) * relay.reshape(x, (4, 6)), X234),
    "squeeze": (lambda x: relay.squeeze(relay.expand_dims(x, 1, 2), [1, 2]) * x, X23),
    "batch_flatten": (lambda x: nn.batch_flatten(x), X234),
    "transpose": (lambda x: relay.transpose(x, (1, 2, 0)) * relay.const(numbers(3, 4, 2)), X234),
    "transpose_reversed": (lambda x: relay.transpose(x) * relay.const(numbers(4, 3, 2)), X234),
    "concatenate": (lambda x, y: relay.concatenate([x, y, x], 1) * relay.const(numbers(2, 8)), X23, numbers(2, 2)),
    "concatenate_one": (lambda x: relay.concatenate([x], 0) * x, X23),
    "stack": (lambda x, y: relay.stack([x, y], 1) * relay.const(numbers(2, 2, 3)), X23, numbers(2, 3, seed=1)),
    "split": (lambda x: relay.split(x, (1, 3), 2)[1] * relay.split(x, 2, 2)[0], X234),
    "strided_slice": (lambda x: relay.strided_slice(x, [0, 1], [2, 3], [1, 2]) * relay.const(3.0, "float64"), X234),
    "strided_slice_back": (lambda x: relay.strided_slice(x, [3, 1], [-5, 3], [-2, 1], axes=[2, 1]) * relay.const(numbers(2, 2, 2)), X234),
    "pad": (lambda x, v: nn.pad(x, ((1, 0), (0, 2)), v) * relay.const(numbers(3, 5)), X23, np.array(0.5)),
    "take": (lambda x, i: relay.take(x, i, axis=1) * relay.const(numbers(2, 3, 4)), X234, IDS),
    "take_matrix": (lambda x, i: relay.take(x, i, axis=-1) * relay.const(numbers(2, 3, 2, 2)), X234, np.array([[1, 1], [0, 3]], "int32")),
    "take_scalar": (lambda x, i: relay.take(x, i, axis=0) * relay.const(numbers(3, 4)), X234, np.array(1, "int32")),
    "take_flat": (lambda x, i: relay.take(x, i) * relay.const(numbers(3)), X23, np.array([5, 0, 5], "int32")),
    "take_clip": (lambda x, i: relay.take(x, i, axis=0, mode="clip") * relay.const(numbers(3, 3)), X23, np.array([-7, 1, 9], "int32")),
    "take_wrap": (lambda x, i: relay.take(x, i, axis=0, mode="wrap") * relay.const(numbers(3, 3)), X23, np.array([-1, 1, 2], "int32")),
    "gather": (lambda x, i: relay.gather(x, 1, i) * relay.const(numbers(2, 2)), X23, np.array([[2, 2], [0, 1]], "int32")),
    "gather_nd": (lambda x, i: relay.gather_nd(x, i) * relay.const(numbers(2, 4)), X234, np.array([[0, 0], [1, 1]], "int32")),
    "scatter_nd": (lambda x, i, u: relay.scatter_nd(x, i, u, "add") * relay.const(numbers(2, 3)), X23, np.array([[1, 1]], "int32"), numbers(2, 3, seed=2)),
    "one_hot": (lambda i, a, b: relay.one_hot(i, a, b, 3, -1, "float64"), IDS, np.array(2.0), np.array(0.5)),
    "softmax": (lambda x: nn.softmax(x, 1) * relay.const(numbers(2, 3, 4, seed=3)), X234),
    "log_softmax": (lambda x: nn.log_softmax(x, 1) * relay.const(numbers(2, 3, seed=3)), X23),
    "cross_entropy": (lambda x, y: nn.cross_entropy(x, y), numbers(2, 3, low=0.2, high=0.9), numbers(2, 3, low=0.2, high=0.9, seed=1)),
    "cross_entropy_with_logits": (lambda x, y: nn.cross_entropy_with_logits(x, y), X23, numbers(2, 3, seed=1)),
    "dense": (lambda x, w: nn.dense(x, w) * relay.const(numbers(2, 5)), X23, numbers(5, 3)),
    "dense_of_rows": (lambda x, w: nn.dense(x, w) * relay.const(numbers(2, 3, 5)), X234, numbers(5, 4)),
    "bias_add": (lambda x, b: nn.bias_add(x, b, 1) * relay.const(numbers(2, 3, 4)), X234, numbers(3)),
    "batch_matmul_of_one": (lambda x, y: nn.batch_matmul(x, y) * relay.const(numbers(2, 3, 5)), X234, numbers(1, 5, 4)),
    "conv2d": (lambda x, w: nn.conv2d(x, w, padding=(1, 0, 0, 2), channels=3, kernel_size=(3, 2)), numbers(2, 2, 5, 6), numbers(3, 2, 3, 2)),
    "conv2d_strided": (lambda x, w: nn.conv2d(x, w, strides=(2, 3), padding=(1, 1), channels=2, kernel_size=(2, 2)), numbers(1, 2, 6, 8), numbers(2, 2, 2, 2)),
    "conv2d_groups": (lambda x, w: nn.conv2d(x, w, groups=2, strides=2, channels=4, kernel_size=(3, 3)) * relay.const(numbers(2, 4, 2, 2)),
                      numbers(2, 4, 6, 6), numbers(4, 2, 3, 3)),
    "conv2d_dilated": (lambda x, w: nn.conv2d(x, w, dilation=2, channels=1, kernel_size=(2, 2)), numbers(1, 1, 5, 6), numbers(1, 1, 2, 2)),
    "max_pool2d": (lambda x: nn.max_pool2d(x, (3, 2), (2, 2), padding=(1, 0)) * relay.const(numbers(1, 2, 3, 3)), numbers(1, 2, 6, 6)),
    "max_pool2d_nhwc": (lambda x: nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC", ceil_mode=True), numbers(1, 5, 5, 2)),
    "max_pool1d": (lambda x: nn.max_pool1d(x, (2,), (1,)), numbers(1, 2, 5)),
    "avg_pool2d": (lambda x: nn.avg_pool2d(x, (3, 2), (2, 1), padding=(1, 1)) * relay.const(numbers(1, 1, 3, 7)), numbers(1, 1, 6, 6)),
    "avg_pool2d_padding": (lambda x: nn.avg_pool2d(x, (2, 2), (2, 2), padding=(1, 1), count_include_pad=True), numbers(1, 1, 4, 4)),
    "avg_pool3d": (lambda x: nn.avg_pool3d(x, (2, 2, 2), (2, 2, 2)), numbers(1, 1, 4, 4, 2)),
    "global_avg_pool2d": (lambda x: nn.global_avg_pool2d(x, layout="NHWC"), numbers(1, 3, 4, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    check(*CASES[name])


@pytest.mark.parametrize("flip_a", (False, True))
@pytest.mark.parametrize("flip_b", (False, True))
def test_products_of_transposed_factors(flip_a, flip_b):
    a, b = numbers(4, 2) if flip_a else numbers(2, 4), numbers(3, 4) if flip_b else numbers(4, 3)
    weights = relay.const(numbers(2, 3, seed=5))
    check(lambda x, y: nn.matmul(x, y, transpose_a=flip_a, transpose_b=flip_b) * weights, a, b)
    check(lambda x, y: nn.batch_matmul(x, y, transpose_a=flip_a, transpose_b=flip_b) * weights, a[None], b[None])


def test_a_tie_of_a_maximum_is_shared_and_one_of_a_window_is_not():
    ones = np.ones((1, 1, 2, 2))
    _, both = derived(lambda x: relay.max(x), [ones])
    np.testing.assert_array_equal(evaluate(both, [ones])[1][0], ones / 4)
    _, both = derived(lambda x: nn.max_pool2d(x, (2, 2), (2, 2)), [ones])
    np.testing.assert_array_equal(evaluate(both, [ones])[1][0].reshape(-1), [1, 0, 0, 0])


def test_gradients_have_the_dtype_of_their_input():
    x = np.array([0.5, -1.0], "float32")
    _, both = derived(lambda x: relay.cast(x, "float64") * relay.const(np.array([3.0, 4.0])), [x])
    grad = evaluate(both, [x])[1][0]
    assert grad.dtype == np.float32 and grad.tolist() == [3.0, 4.0]


def test_gradients_of_integers_are_zeros_or_sums():
    func, both = derived(lambda x, y: relay.zeros_like(x) * y, [np.array(3, "int64"), np.ones((2, 3), "int64")])
    _, grads = evaluate(both, [np.array(3, "int64"), np.ones((2, 3), "int64")])
    assert grads[0].dtype == grads[1].dtype == np.int64 and not grads[0].any() and not grads[1].any()


def test_operators_without_a_rule_are_named():
    with pytest.raises(UnsupportedOpError, match="sort has no gradient.*register_gradient"):
        derived(lambda x: relay.sort(x), [X23])
    with pytest.raises(UnsupportedOpError, match="expects data_layout 'NCHW', got 'NHWC'"):
        derived(lambda x, w: nn.conv2d(x, w, channels=1, kernel_size=(1, 1), data_layout="NHWC", kernel_layout="HWIO"), [numbers(1, 3, 3, 2), numbers(1, 1, 2, 1)])


def test_a_rule_that_a_user_registers_wins():
    load_all()
    op = Op.get("sin")
    before = rule_of(op)
    relay.op.register_gradient("sin", lambda call, grad: [grad * relay.const(7.0, "float64")], level=11)
    try:
        _, both = derived(lambda x: relay.sin(x), [X23])
        np.testing.assert_array_equal(evaluate(both, [X23])[1][0], np.full((2, 3), 7.0))
        relay.op.register_gradient("sin", lambda call, grad: [], level=12)
        with pytest.raises(ArgumentError, match="gave 0 gradients for 1 arguments"):
            derived(lambda x: relay.sin(x), [X23])
    finally:
        op.reset_attr("FPrimalGradient")
        relay.op.register_gradient("sin", before)
