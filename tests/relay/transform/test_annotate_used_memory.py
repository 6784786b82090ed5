"""How many bytes are alive while primitive functions run."""
import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.relay.transform import AnnotateUsedMemory, FuseOps, InferType, ToANormalForm
from anchorleg.support.errors import UnsupportedOpError


def annotated(body, params):
    mod = InferType()(IRModule.from_expr(relay.Function(params, body)))
    return AnnotateUsedMemory()(InferType()(ToANormalForm()(FuseOps(0)(mod))))["main"]


def used(main):
    found = []
    relay.analysis.post_order_visit(main.body, lambda n: found.append(list(n.attrs["used_memory"])) if isinstance(n, relay.Function) else None)
    return found


def test_before_and_after():
    before = IRModule.from_expr(relay.parse("""#[version = "0.0.5"]
    def @main(%input: Tensor[(1, 2, 2, 4), int8]) {
      let %f = fn (%x: Tensor[(1, 2, 2, 4), int8], Primitive=1) { nn.max_pool2d(%x, pool_size=[1, 1], padding=[0, 0, 0, 0]) };
      let %y = %f(%input);
      %f(%y) }""")["main"])
    main = AnnotateUsedMemory()(InferType()(ToANormalForm()(InferType()(before))))["main"]
    assert main.attrs["io_used_memory"] == 32 and used(main) == [[32, 32]]
    assert "used_memory=[32, 32]" in str(main)


def test_what_is_needed_later_counts():
    x = relay.var("x", shape=(4,), dtype="int16")
    first = relay.cast(x, "int32")
    main = annotated(relay.Tuple([first, relay.abs(relay.cast(x, "int64"))]), [x])
    # x and first; x, first and the cast; first, the cast and its absolute value
    assert used(main) == [[8 + 16], [8 + 16 + 32], [16 + 32 + 32]]
    assert main.attrs["io_used_memory"] == 8 + 16 + 32


def test_many_steps():
    x = y = relay.var("x", shape=(2,))
    for _ in range(3000):
        y = relay.abs(y)
    assert used(annotated(y, [x])) == [[16]] * 3000


def test_unknown_sizes_and_branches_are_refused():
    x = relay.var("x", shape=(relay.Any(),))
    with pytest.raises(UnsupportedOpError, match="does not support dynamic shapes"):
        annotated(relay.abs(x), [x])
    y = relay.var("y", shape=(2,))
    with pytest.raises(UnsupportedOpError, match="without branches"):
        annotated(relay.If(relay.const(np.array(True)), relay.abs(y), y), [y])
