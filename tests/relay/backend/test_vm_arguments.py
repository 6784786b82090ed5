"""Arguments of data types, tuples and functions: what is something else is refused before the program runs."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.runtime.container import ADT
from anchorleg.runtime.vm import Executable, VirtualMachine
from anchorleg.support.errors import AnchorlegError, ArgumentError, TypeMismatchError

LIST = """#[version = "0.0.5"]
type L[A] { C(A, L[A]), N }
def @main(%l: L[(Tensor[(2), float32], int32)], %t: (int32, Tensor[(?), float32])) -> Tensor[(2), float32] {
    match (%l) { C(%h, %rest) => add(%h.0, %h.0), N => zeros(shape=[2], dtype="float32") }
}"""
X, PAIR = np.ones(2, "float32"), (1, np.zeros(3, "float32"))


@pytest.fixture(scope="module", params=["compiled", "loaded"])
def parts(request):
    mod = relay.fromtext(LIST)
    exe = relay.vm.compile(mod, "llvm")
    some, none = (c.tag for c in mod.get_type("L")[1:])
    return VirtualMachine(exe if request.param == "compiled" else Executable.load_exec(*exe.save()), cpu(0)), some, none


def test_what_fits(parts):
    vm, some, none = parts
    end = ADT(none, [])
    np.testing.assert_array_equal(vm.run(ADT(some, [(X, 1), ADT(some, [(X, 2), end])]), PAIR).numpy(), 2 * X)
    np.testing.assert_array_equal(vm.run(end, PAIR).numpy(), 0 * X)


@pytest.mark.parametrize("error, text, value", [
    (TypeMismatchError, "expected a value of the type L.*, got a tensor", lambda c, n: X),
    (TypeMismatchError, "expected a value of the type L.*, got a tuple", lambda c, n: (X, ADT(n, []))),
    (TypeMismatchError, "got a value with the tag 99", lambda c, n: ADT(99, [])),
    (ArgumentError, "of 2 fields, got 0", lambda c, n: ADT(c, [])),
    (ArgumentError, "of 0 fields, got 1", lambda c, n: ADT(n, [X])),
    (ArgumentError, r"expected shape \(2\), got \(3,\)", lambda c, n: ADT(c, [(np.ones(3, "float32"), 1), ADT(n, [])])),
    (TypeMismatchError, "expected a tensor of float32, got float64", lambda c, n: ADT(c, [(np.ones(2), 1), ADT(n, [])])),
    (TypeMismatchError, "expected a tuple, got a tensor", lambda c, n: ADT(c, [X, ADT(n, [])])),
    (TypeMismatchError, "expected a tuple, got a value with the tag", lambda c, n: ADT(c, [ADT(n, []), ADT(n, [])])),
    (TypeMismatchError, "expected a tensor of float32, got a value of a data type", lambda c, n: ADT(c, [(ADT(n, []), 1), ADT(n, [])])),
    (ArgumentError, r"expected shape \(2\), got \(1,\)", lambda c, n: ADT(c, [(X, 1), ADT(c, [(np.ones(1, "float32"), 1), ADT(n, [])])])),
])
def test_what_does_not(parts, error, text, value):
    vm, some, none = parts
    vm.run(ADT(none, []), PAIR)
    held = int(vm._memory.words[vm._memory.core.M_HELD // 8])
    for _ in range(3000):  # more than a slab holds, if anything were left behind
        with pytest.raises(error, match=text):
            vm.run(value(some, none), PAIR)
    assert int(vm._memory.words[vm._memory.core.M_HELD // 8]) == held and vm._border.given == []
    np.testing.assert_array_equal(vm.run(ADT(some, [(X, 1), ADT(none, [])]), PAIR).numpy(), 2 * X)


def test_functions_of_another_number_of_parameters():
    text = """#[version = "0.0.5"]
    type M { F(fn (int32) -> int32), G(fn () -> int32), N }
    def @main(%x: int32, %m: M) -> (fn () -> int32, int32) {
        match (%m) { F(%f) => (fn () { 0 }, %f(%x)), G(%g) => (%g, %g()), N => (fn () { add(%x, 1) }, 0) }
    }"""
    mod = relay.fromtext(text)
    f, g, n = (c.tag for c in mod.get_type("M")[1:])
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"), cpu(0))
    made = vm.run(4, ADT(n, []))[0]
    assert int(vm.run(0, ADT(g, [made]))[1].numpy()) == 5
    with pytest.raises(TypeMismatchError, match="a function of 1 parameters, got one of 0"):
        vm.run(0, ADT(f, [made]))


def test_a_type_that_grows_without_end():
    text = """#[version = "0.0.5"]
    type T[A] { C(A, T[(A, A)]), N }
    def @main(%t: T[int32]) -> int32 { match (%t) { C(%h, _) => %h, N => 0 } }"""
    mod = relay.fromtext(text)
    some, none = (c.tag for c in mod.get_type("T")[1:])
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"), cpu(0))
    assert int(vm.run(ADT(some, [3, ADT(none, [])])).numpy()) == 3
    with pytest.raises(AnchorlegError):
        vm.run(ADT(some, [X, ADT(none, [])]))


def test_a_type_that_grows_in_two_ways_without_end():
    text = """#[version = "0.0.5"]
    type P[A] { MakeP(A) }
    type Q[A] { MakeQ(A) }
    type T[A] { C(A, T[P[A]], T[Q[A]]), N }
    def @main(%t: T[int32]) -> int32 { match (%t) { C(%h, _, _) => %h, N => 0 } }"""
    mod = relay.fromtext(text)
    some, none = (c.tag for c in mod.get_type("T")[1:])
    exe = relay.vm.compile(mod, "llvm")
    assert int(VirtualMachine(exe, cpu(0)).run(ADT(some, [3, ADT(none, []), ADT(none, [])])).numpy()) == 3
