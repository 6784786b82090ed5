"""gradient and FirstOrderGradient: before and after, and programs that no single operator shows."""
import re

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, assert_structural_equal
from anchorleg.relay.op.tensor import ones_like, zeros_like
from anchorleg.relay.prelude import Prelude
from anchorleg.relay.testing import check_grad, count_ops, make_nat_expr, run_infer_type
from anchorleg.relay.transform import FirstOrderGradient, InferType, gradient
from anchorleg.support.errors import ArgumentError, UnsupportedOpError

MODES = ("first_order", "higher_order")
T = relay.TensorType((2,), "float64")


def var(name="x", ty=T):
    return relay.Var(name, ty)


def run(func, *args, mod=None, kind="debug"):
    return relay.create_executor(kind, mod=mod).evaluate(run_infer_type(func) if mod is None else func)(*args)


def grads_of(func, *args, mode="higher_order", kind="debug"):
    _, grads = run(gradient(run_infer_type(func), mode=mode), *args, kind=kind)
    return [g.numpy() for g in grads]


def test_first_order_before_and_after():
    x = var()
    mod = FirstOrderGradient()(InferType()(IRModule.from_expr(relay.Function([x], x * relay.sin(x)))))
    want = InferType()(IRModule.from_expr(_expected()))
    assert_structural_equal(InferType()(mod)["main"].body, want["main"].body, map_free_vars=True)


def _expected():
    x, scope = var(), relay.ScopeBuilder()
    a = scope.let("a", relay.sin(x))
    b = scope.let("b", relay.multiply(x, a))
    g = scope.let("g", ones_like(b))
    dx = scope.let("dx", g * a)
    da = scope.let("da", g * x)
    dx2 = scope.let("dx2", da * relay.cos(x))
    both = scope.let("both", dx + dx2)
    scope.ret(relay.Tuple([b, relay.Tuple([both])]))
    return relay.Function([x], scope.get())


DERIVED_SIN = """\
fn (%x: T) -> (T, (T,)) {
  %0 = fn () -> () {
    ()
  };
  let %way_0: ref(fn () -> ()) = ref(%0);
  let %x_1 = fn (%x1: (T, ref(T)), %way: ref(fn () -> ())) -> (T, ref(T)) {
    let %x_0 = %x1.0;
    let %x_11 = sin(%x_0);
    %1 = zeros_like(%x_11);
    %2 = ref(%1);
    let %x_2 = (%x_11, %2);
    let %x_3 = ref_read(%way);
    %3 = fn () -> () {
      let %x_01 = %x_2.1;
      let %x_12 = ref_read(%x_01);
      let %x_02 = %x_12;
      let %x_21 = cos(%x_0);
      let %x_31 = multiply(%x_02, %x_21);
      let %x_13 = %x_31;
      let %x_41 = %x1.1;
      let %x_22 = %x_41;
      let %x_5 = ref_read(%x_22);
      let %x_6 = add(%x_5, %x_13);
      let %x_7 = ref_write(%x_22, %x_6);
      let %x_32 = %x_7;
      let %x_8 = %x_3();
      %x_8
    };
    let %x_4 = ref_write(%way, %3);
    %x_2
  };
  %4 = zeros_like(%x);
  %5 = ref(%4);
  let %x_23 = (%x, %5);
  let %x_33 = %x_1(%x_23, %way_0);
  %6 = %x_33.1;
  %7 = %x_33.0;
  %8 = ones_like(%7);
  let %x_42 = ref_write(%6, %8);
  %9 = ref_read(%way_0);
  let %x_51 = %9();
  %10 = %x_23.1;
  %11 = ref_read(%10);
  %12 = %x_33.0;
  %13 = (%11,);
  (%12, %13)
}"""


def test_higher_order_before_and_after():
    """Forwards, each step leaves a way back; the result's gradient is set; the way back is taken; gradients are read."""
    x = var()
    text = re.sub(r" */\*.*?\*/", "", str(gradient(run_infer_type(relay.Function([x], relay.sin(x))))))
    assert text.replace("Tensor[(2), float64]", "T").strip() == DERIVED_SIN


@pytest.mark.parametrize("mode", MODES)
def test_the_type_says_result_and_gradients(mode):
    x, y = var(), var("y", relay.TensorType((3, 2), "float64"))
    derived = run_infer_type(gradient(run_infer_type(relay.Function([x, y], x + y)), mode=mode))
    assert derived.checked_type == relay.FuncType([x.type_annotation, y.type_annotation],
                                                  relay.TupleType([y.type_annotation, relay.TupleType([x.type_annotation, y.type_annotation])]))


@pytest.mark.parametrize("mode", MODES)
def test_shared_values_are_derived_once(mode):
    x = y = var()
    for _ in range(30):
        y = y + y
    func = run_infer_type(relay.Function([x], y))
    derived = gradient(func, mode=mode)
    assert count_ops(derived)["add"] < 200
    assert np.array_equal(grads_of(func, np.ones(2), mode=mode)[0], np.full(2, 2.0**30))


@pytest.mark.parametrize("mode", MODES)
def test_a_rule_does_not_compute_its_call_again(mode):
    x = var()
    assert count_ops(gradient(run_infer_type(relay.Function([x], relay.tanh(relay.sigmoid(x)))), mode=mode))["sigmoid"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_tuples_and_inner_functions(mode):
    x, y, z = var(), var("y"), var("z")
    inner = relay.Function([z], z * z)
    both = relay.Tuple([inner(x), relay.Tuple([y, x])])
    body = relay.TupleGetItem(both, 0) * relay.TupleGetItem(relay.TupleGetItem(both, 1), 0)
    dx, dy = grads_of(relay.Function([x, y], body), np.array([1.0, 2.0]), np.array([3.0, 4.0]), mode=mode)
    assert dx.tolist() == [6.0, 16.0] and dy.tolist() == [1.0, 4.0]


def test_first_order_takes_tuple_parameters_and_counts_all_results():
    ty = relay.TupleType([T, T])
    t = var("t", ty)
    func = run_infer_type(relay.Function([t], relay.Tuple([relay.TupleGetItem(t, 0), relay.TupleGetItem(t, 0)])))
    _, (grad,) = run(gradient(func, mode="first_order"), (np.ones(2), np.ones(2)))
    assert grad[0].numpy().tolist() == [2.0, 2.0] and grad[1].numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", ("debug", "vm"))
def test_branches(kind):
    x, flag = var(), relay.var("flag", shape=(), dtype="bool")
    func = relay.Function([x, flag], relay.If(flag, x * x, relay.sin(x)))
    at = np.array([0.5, 2.0])
    for taken, want in ((True, 2 * at), (False, np.cos(at))):
        np.testing.assert_allclose(grads_of(func, at, np.array(taken), kind=kind)[0], want)


@pytest.mark.parametrize("kind", ("debug", "vm"))
def test_loops_closures_and_references(kind):
    mod = IRModule()
    prelude = Prelude(mod)
    mod.import_from_std("nat.rly")
    x, i, c = var(), var("i"), var("c")
    ref = relay.Var("r")
    double = relay.Function([x], relay.Let(ref, relay.RefCreate(x), relay.RefRead(ref) + relay.RefRead(ref)))
    captured = relay.Function([x], c * double(x))
    mod["main"] = relay.Function([i, c], mod.get_global_var("nat_iterate")(captured, make_nat_expr(prelude, 3))(i))
    mod = InferType()(mod)
    mod["main"] = gradient(mod["main"], mod=mod)
    mod = InferType()(mod)
    at, by = np.array([1.0, 2.0]), np.array([3.0, 0.5])
    result, (di, dc) = relay.create_executor(kind, mod=mod).evaluate()(at, by)
    np.testing.assert_allclose(result.numpy(), 8 * by**3 * at)
    np.testing.assert_allclose(di.numpy(), 8 * by**3)
    np.testing.assert_allclose(dc.numpy(), 24 * by**2 * at)


def test_global_functions_get_a_derived_form():
    mod, x = IRModule(), var()
    double = relay.GlobalVar("double")
    mod[double] = relay.Function([x], x + x)
    y = var("y")
    mod["main"] = relay.Function([y], double(double(y)))
    mod = InferType()(mod)
    mod["grad"] = gradient(mod.get_global_var("main"), mod)
    assert "double_grad" in [g.name_hint for g in mod.get_global_vars()]
    mod = InferType()(mod)
    _, (grad,) = run(mod["grad"], np.ones(2), mod=mod)
    assert grad.numpy().tolist() == [4.0, 4.0]


def test_second_derivatives():
    x, y = var(), var("y")
    first = gradient(run_infer_type(relay.Function([x], x * x * x)))
    slope = relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(first(y), 1), 0))
    np.testing.assert_allclose(grads_of(slope, np.array([2.0, 3.0]))[0], [12.0, 18.0])


def test_checkpoints_are_computed_again_on_the_way_back():
    x, y = var(), var("y")
    plain = relay.sin(x * y) * y
    kept = relay.annotation.checkpoint(relay.sin(x * y)) * y
    at = (np.array([0.5, 1.0]), np.array([2.0, -1.0]))
    for a, b in zip(grads_of(relay.Function([x, y], kept), *at), grads_of(relay.Function([x, y], plain), *at)):
        np.testing.assert_allclose(a, b)
    count = count_ops(gradient(run_infer_type(relay.Function([x, y], kept))))
    assert count["sin"] == 2
    check_grad(relay.Function([x, y], relay.annotation.checkpoint(relay.exp(kept) * x)))


@pytest.mark.parametrize("mode", MODES)
def test_depth(mode):
    x = y = var()
    for _ in range(5_000):
        y = relay.negative(y)
    assert gradient(run_infer_type(relay.Function([x], y)), mode=mode).params[0].name_hint == "x"


def test_bad_programs():
    x, t, flag = var(), var("t", relay.TupleType([T])), relay.var("flag", shape=(), dtype="bool")
    typed = run_infer_type(relay.Function([x], x))
    with pytest.raises(ArgumentError, match="expected mode"):
        gradient(typed, mode="backwards")
    with pytest.raises(ArgumentError, match="pass FirstOrderGradient"):
        gradient(typed, IRModule(), "first_order")
    with pytest.raises(ArgumentError, match="run relay.transform.InferType first"):
        gradient(relay.Function([x], zeros_like(x)))
    with pytest.raises(ArgumentError, match="expects a function"):
        gradient(x)
    with pytest.raises(UnsupportedOpError, match="parameters that are tensors, got t"):
        gradient(run_infer_type(relay.Function([t], relay.TupleGetItem(t, 0))))
    with pytest.raises(UnsupportedOpError, match="got a If.*higher_order"):
        gradient(run_infer_type(relay.Function([x, flag], relay.If(flag, x, x))), mode="first_order")


def test_fusing_a_gradient_of_integers_builds():
    x = relay.var("x", shape=(), dtype="int64")
    y = relay.var("y", shape=(9, 4, 10), dtype="int64")
    mod = FirstOrderGradient()(InferType()(IRModule.from_expr(relay.Function([x, y], zeros_like(x) * y))))
    mod = relay.transform.FuseOps(3)(InferType()(mod))
    _, (dx, dy) = relay.create_executor("graph", mod=mod).evaluate()(np.array(3), np.ones((9, 4, 10), "int64"))
    assert dx.shape == () and dx.numpy() == 0
    assert not dy.numpy().any()
