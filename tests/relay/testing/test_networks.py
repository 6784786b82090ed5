"""The example networks: shapes, parameters, and what they say to impossible sizes."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import Op
from anchorleg.relay import testing
from anchorleg.relay.testing import TempOpAttr
from anchorleg.support.errors import ArgumentError

SMALL = dict(batch_size=1, num_classes=10)


@pytest.mark.parametrize("name, kwargs, convolutions, out", [
    ("mlp", dict(batch_size=2), 0, (2, 10)),
    ("resnet", dict(**SMALL, num_layers=18), 21, (1, 10)),
    ("resnet", dict(**SMALL, num_layers=50), 53, (1, 10)),
    ("resnet", dict(**SMALL, num_layers=8, image_shape=(3, 28, 28)), 10, (1, 10)),
    ("resnet", dict(**SMALL, num_layers=18, image_shape=(224, 224, 3), layout="NHWC"), 21, (1, 10)),
    ("mobilenet", SMALL, 27, (1, 10)),
    ("mobilenet", dict(**SMALL, image_shape=(64, 64, 3), layout="NHWC"), 27, (1, 10)),
    ("vgg", dict(**SMALL, image_shape=(3, 32, 32), batch_norm=True), 8, (1, 10)),
    ("squeezenet", dict(**SMALL, version="1.0"), 26, (1, 10)),
    ("squeezenet", dict(**SMALL, version="1.1"), 26, (1, 10)),
    ("dqn", dict(batch_size=3), 3, (3, 18)),
])
def test_network(name, kwargs, convolutions, out):
    net = getattr(testing, name)
    build = net.mobile_net if name == "mobilenet" else net.get_net
    if name == "mobilenet":
        shape = (1, *kwargs.get("image_shape", (3, 224, 224)))
        main = build(10, shape, layout=kwargs.get("layout", "NCHW"))
    else:
        defaults = {"vgg": dict(dtype="float32"), "squeezenet": dict(dtype="float32", image_shape=(3, 224, 224))}.get(name, {})
        main = build(**{**defaults, **kwargs})
    typed = testing.run_infer_type(main)
    assert typed.ret_type.dims == out and testing.count_ops(typed).get("nn.conv2d", 0) == convolutions


def test_parameters_are_the_same_for_the_same_seed():
    (mod, a), (_, b) = testing.mlp.get_workload(1), testing.mlp.get_workload(1)
    assert set(a) == {v.name_hint for v in mod["main"].params} - {"data"}
    assert all((a[k].numpy() == b[k].numpy()).all() for k in a) and a["fc1_weight"].numpy().any()
    assert not a["fc1_bias"].numpy().any()


def test_impossible_sizes():
    with pytest.raises(ArgumentError, match="num_layers is expected to be one of"):
        testing.resnet.get_net(1, 10, 19)
    with pytest.raises(ArgumentError, match="version"):
        testing.squeezenet.get_net(1, (3, 224, 224), 10, "2.0", "float32")
    with pytest.raises(ArgumentError, match="names are expected to end in weight"):
        testing.Xavier()("strange", None)


def test_temporary_attribute():
    op = Op.get("nn.relu")
    with testing.TempOpAttr("nn.relu", "FTest", 1):
        assert op.get_attr("FTest") == 1
        with testing.TempOpAttr("nn.relu", "FTest", 2):
            assert op.get_attr("FTest") == 2
        assert op.get_attr("FTest") == 1
    assert not op.has_attr("FTest")


def test_run_opt_pass_gives_what_it_was_given():
    x = relay.var("x", shape=(2,))
    assert isinstance(testing.run_infer_type(relay.Function([x], x)), relay.Function)
    assert isinstance(testing.run_infer_type(relay.const(1.0) + relay.const(2.0)), relay.Call)


@pytest.mark.parametrize("name, args, shape", [("dcgan", {"batch_size": 1, "ngf": 4}, (1, 3, 64, 64)),
                                               ("densenet", {"batch_size": 1, "image_shape": (3, 64, 64)}, (1, 1000)),
                                               ("lstm", {"iterations": 3, "num_hidden": 5}, (1, 5)),
                                               ("inception_v3", {}, (1, 1000))])
def test_further_networks_have_the_shape_they_should(name, args, shape):
    mod, params = getattr(relay.testing, name).get_workload(**args)
    assert relay.transform.InferType()(mod)["main"].checked_type.ret_type.concrete_shape == shape
    assert params


def test_gradients_are_compared_with_differences():
    x = relay.var("x", shape=(2,), dtype="float64")
    testing.check_grad(relay.Function([x], x * x), inputs=[np.array([0.5, 2.0])])
    testing.check_grad(relay.Function([x], relay.sin(x)), mode="first_order")
    with TempOpAttr("sin", "FPrimalGradient", lambda call, grad: [grad]), pytest.raises(AssertionError, match="Not equal"):
        testing.check_grad(relay.Function([x], relay.sin(x)), inputs=[np.array([0.5, 2.0])])
    with pytest.raises(ArgumentError, match="among inputs"):
        testing.check_grad(relay.Function([x], x), inputs=[np.ones(2)], test_inputs=[np.ones(2)])


def test_targets_are_found():
    assert "llvm" in [target for target, _ in testing.enabled_targets()]
