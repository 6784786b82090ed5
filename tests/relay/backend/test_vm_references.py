"""References on the virtual machine: cells that change, in loops, closures and data, and cells that hold each other."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.runtime.container import ADT, RefValue
from anchorleg.runtime.vm import Executable, VirtualMachine
from anchorleg.support.errors import AnchorlegError, ArgumentError, TypeMismatchError

PROGRAMS = {
    "a value read before stays": """
        def @main(%x: Tensor[(3), float32]) {
            let %r = ref(%x); let %old = ref_read(%r); let %u = ref_write(%r, add(ref_read(%r), 1f)); (ref_read(%r), %old)
        }""",
    "loop": """
        def @loop(%i: int32, %r: ref(Tensor[(3), float32])) -> () {
            if (equal(%i, 0)) { () } else { let %u = ref_write(%r, add(ref_read(%r), 1f)); @loop(subtract(%i, 1), %r) }
        }
        def @main(%x: Tensor[(3), float32]) { let %r = ref(%x); let %u = @loop(50, %r); ref_read(%r) }""",
    "closures share a cell": """
        def @main(%x: Tensor[(3), float32]) {
            let %r = ref(%x);
            let %f = fn (%y: Tensor[(3), float32]) { let %u = ref_write(%r, add(ref_read(%r), %y)); () };
            let %p = (%f, fn () { ref_read(%r) });
            let %a = %f(%x); let %b = %p.0(%x); let %get = %p.1; (%get(), %r)
        }""",
    "cells in cells": """
        def @main(%x: Tensor[(3), float32]) {
            let %r = ref((%x, 1)); let %s = ref(%r); let %t = ref_read(%s); let %u = ref_write(%t, (add(%x, %x), 7));
            (ref_read(%r), %r, (%r, %s))
        }""",
    "one of two cells": """
        def @main(%x: Tensor[(3), float32]) {
            let %a = ref(%x); let %b = ref(%x); let %u = ref_write(if (less(sum(%x), 100f)) { %a } else { %b }, negative(%x));
            (ref_read(%a), ref_read(%b))
        }""",
    "sizes that grow": """
        def @main(%x: Tensor[(?), float32]) {
            let %r = ref(%x); let %u = ref_write(%r, concatenate((ref_read(%r), %x))); ref_read(%r)
        }""",
    "a list of cells": """
        type Cells { More(ref(Tensor[(3), float32]), Cells), Done }
        def @bump(%l: Cells) -> () {
            match (%l) { More(%r, %rest) => { let %u = ref_write(%r, add(ref_read(%r), 1f)); @bump(%rest) }, Done => () }
        }
        def @main(%x: Tensor[(3), float32]) {
            let %r = ref(%x); let %s = ref(%x); let %l = More(%r, More(%s, More(%r, Done))); let %u = @bump(%l); (ref_read(%r), ref_read(%s))
        }""",
}

# A cell that holds a function that reads the cell: nobody else refers to either after the run.
KNOT = """
    def @main(%x: int32) {
        let %r = ref(fn (%y: int32) { %y });
        let %f = fn (%y: int32) -> int32 { if (equal(%y, 0)) { %y } else { let %g = ref_read(%r); add(%y, %g(subtract(%y, 1))) } };
        let %u = ref_write(%r, %f); let %h = ref_read(%r); %h(%x)
    }"""


def parsed(text):
    return relay.fromtext('#[version = "0.0.5"]\n' + text)


def machine(text):
    return VirtualMachine(relay.vm.compile(parsed(text), "llvm"), cpu(0))


def plain(value):
    if isinstance(value, ADT):
        return (value.tag, *map(plain, value))
    return ("ref", plain(value.value)) if isinstance(value, RefValue) else value.numpy().tolist()


def words(vm, *names):
    memory = vm._memory
    return [int(memory.words[getattr(memory.core, n) // 8]) for n in names]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_interpreter_has_it(name):
    x = np.arange(3, dtype="float32")
    want = relay.create_executor("debug", mod=parsed(PROGRAMS[name]), device=cpu(0), target="llvm").evaluate()(x)
    vm = machine(PROGRAMS[name])
    for _ in range(3):
        assert plain(vm.run(x)) == plain(want)
    assert words(vm, "M_CELLS") == [0]


def test_one_cell_is_one_value_of_python():
    value = machine("def @main() { let %r = ref(1); let %s = ref(%r); (%r, %s) }").run()
    assert value[1].value is value[0]


def test_cells_that_hold_each_other_are_freed():
    vm = machine(KNOT)
    assert int(vm.run(10).numpy()) == 55
    held = words(vm, "M_HELD")
    for _ in range(5000):  # more than fits into the memory taken so far
        vm.run(3)
    assert words(vm, "M_HELD", "M_CELLS") == [*held, 0]


def test_a_function_given_out_keeps_its_cell():
    text = """
        type Maybe { Some(fn () -> int32), Nothing }
        def @main(%x: int32, %m: Maybe) -> (fn () -> int32, int32) {
            match (%m) {
                Some(%f) => (%f, %f()),
                Nothing => { let %r = ref(%x); (fn () { let %u = ref_write(%r, add(ref_read(%r), 1)); ref_read(%r) }, 0) }
            }
        }"""
    vm = machine(text)
    some, nothing = (c.tag for c in parsed(text).get_type("Maybe")[1:])
    made = [vm.run(x, ADT(nothing, []))[0] for x in (10, 20)]
    assert [int(vm.run(0, ADT(some, [made[i]]))[1].numpy()) for i in (0, 0, 1, 0)] == [11, 12, 21, 13]
    assert words(vm, "M_CELLS") != [0]
    with pytest.raises(ArgumentError, match="made by another machine"):
        machine(text).run(0, ADT(some, made[:1]))
    made.clear()
    vm.run(1, ADT(nothing, []))
    vm.run(1, ADT(nothing, []))
    vm._memory.settle()
    vm._memory.tidy()
    assert words(vm, "M_CELLS") == [0]


def test_functions_are_checked():
    vm = machine("def @main(%f: fn (int32) -> int32) { %f(1) }")
    with pytest.raises(TypeMismatchError, match="argument 'f': expected a function that this machine gave"):
        vm.run(np.array(1, "int32"))
    with pytest.raises(TypeMismatchError, match="argument 'f': expected a function, got a tuple"):
        vm.run((1, 2))
    given = machine("def @main() { fn (%x: int32) { %x } }")
    with pytest.raises(TypeMismatchError, match="argument 'x': expected a tensor of int32, got a function"):
        machine("def @main(%x: int32) { %x }").run(given.run())


def test_a_failing_run_leaves_no_cells():
    vm = machine("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { let %r = ref(%x); ref_write(%r, add(ref_read(%r), %y)) }")
    with pytest.raises(AnchorlegError, match="broadcast"):
        vm.run(np.zeros(2, "float32"), np.zeros(3, "float32"))
    assert words(vm, "M_CELLS") == [0]
    assert plain(vm.run(np.zeros(2, "float32"), np.zeros(2, "float32"))) == (0,)


def test_references_of_the_caller_are_refused():
    vm = machine("def @main(%r: ref(int32)) { ref_read(%r) }")
    with pytest.raises(TypeMismatchError, match="argument 'r': a reference of the caller's"):
        vm.run(RefValue(np.array(1, "int32")))


def test_saved_and_loaded():
    exe = relay.vm.compile(parsed(KNOT), "llvm")
    code, lib = exe.save()
    assert "alloc_ref" in exe.bytecode and "write_ref" in exe.bytecode
    assert int(VirtualMachine(Executable.load_exec(code, lib), cpu(0)).run(4).numpy()) == 10
