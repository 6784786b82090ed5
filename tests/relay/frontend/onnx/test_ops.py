"""Each row is one node; the imported model must agree with ONNX Runtime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .models import check, single

pytest.importorskip("onnxruntime")
_rng = np.random.default_rng(7)


def f(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (_rng.standard_normal(shape) * scale).astype(np.float32)


def i(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def u8(*shape: int) -> np.ndarray:
    return _rng.integers(0, 256, shape).astype(np.uint8)


def scalar(value: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


X4, X3, X2 = f(2, 4, 6, 5), f(2, 3, 4), f(3, 4)
SPECIAL = np.array([-np.inf, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, np.inf], np.float32)

# operator, inputs, keywords of ``single``
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    # element-wise
    *[(name, [X2], {}) for name in ("Abs", "Neg", "Exp", "Sigmoid", "Tanh", "Erf", "Floor", "Ceil", "Sign", "Softsign", "Softplus", "Relu",
                                    "Sin", "Cos", "Atan", "Sinh", "Asinh", "HardSwish", "Identity", "Reciprocal")],
    *[(name, [X2, f(4)], {}) for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum")],
    ("Round", [SPECIAL], {}), ("Log", [np.abs(X2) + 1], {}), ("Sqrt", [np.abs(X2)], {}),
    ("Div", [i(7, -7, 7, -7), i(3, 3, -3, -3)], {}),
    ("Mean", [X2, X2, X2], {"opset": 8}), ("Max", [X2, f(4), f(1)], {"opset": 8}),
    ("Pow", [np.abs(X2), f(4)], {}), ("Pow", [X2, scalar(2.0)], {"fixed": [1]}), ("Pow", [i(2, 3, 4), scalar(2.0)], {"fixed": [1]}),
    ("Clip", [X2], {"opset": 6, "min": -0.5, "max": 0.7}), ("Clip", [X2, scalar(-0.5), None], {"fixed": [1]}),
    ("Clip", [X2, None, scalar(0.5)], {}), ("Clip", [i(1, 5, 9), i(2).reshape(()), i(7).reshape(())], {"fixed": [1, 2]}),
    ("IsInf", [SPECIAL], {}), ("IsInf", [SPECIAL], {"detect_negative": 0}), ("IsNaN", [np.array([np.nan, 1], np.float32)], {}),
    ("Cast", [X2 * 10], {"to": 7}), ("Cast", [i(0, 1, 2)], {"to": 9}), ("CastLike", [X2, i(1)], {}),
    ("BitShift", [u8(5), np.array([1, 2, 3, 4, 5], np.uint8)], {"direction": "LEFT"}), ("Not", [X2 > 0], {}),
    ("And", [X2 > 0, X2[0] > 0], {}), ("Xor", [X2 > 0, X2[0] > 0], {}), ("Equal", [i(1, 2), i(1, 3)], {}),
    ("GreaterOrEqual", [X2, f(4)], {}), ("Where", [X2 > 0, X2, f(4)], {}), ("Mod", [X2, f(4)], {"fmod": 1}),
    # activations
    ("LeakyRelu", [X2], {"alpha": 0.2}), ("Elu", [X2], {"alpha": 1.5}), ("Selu", [X2], {}), ("Celu", [X2], {"alpha": 2.0}),
    ("HardSigmoid", [X2], {}), ("Mish", [X2], {"opset": 18}), ("ThresholdedRelu", [X2], {"alpha": 0.3}), ("Shrink", [X2], {"bias": 0.1}),
    ("PRelu", [X4, f(4, 1, 1)], {}), ("PRelu", [X4, f(5)], {}), ("Gelu", [X2], {"opset": 20}),
    ("Gelu", [X2], {"opset": 20, "approximate": "tanh"}), ("Hardmax", [X3], {"opset": 11}), ("Hardmax", [X3], {}),
    ("LogSoftmax", [X3], {"opset": 11, "axis": 1}), ("LogSoftmax", [X3], {"axis": 1}), ("Softmax", [X3], {}),
    # reductions
    *[(f"Reduce{r}", [np.abs(X3) + 0.1], {"axes": [1], "keepdims": k}) for k, r in enumerate(("L1", "L2", "LogSum", "LogSumExp"))
      for k in (0, 1)],
    ("ReduceMean", [X3], {}), ("ReduceMax", [X3], {"axes": [-1], "keepdims": 0}), ("ReduceProd", [X3], {"axes": [0, 2]}),
    ("ReduceSum", [X3, i(0, 2)], {"fixed": [1]}), ("ReduceSum", [X3, i()], {"fixed": [1], "noop_with_empty_axes": 1}),
    ("ReduceMin", [X3, i(1)], {"opset": 18, "fixed": [1]}), ("ReduceSumSquare", [X3], {"opset": 18}),
    ("ReduceLogSumExp", [X3 * 200], {"axes": [2]}), ("ArgMax", [X3], {"axis": 1, "keepdims": 0}),
    ("ArgMin", [i(3, 1, 1, 2)], {"axis": 0, "select_last_index": 1}),
    # shapes
    ("Reshape", [X3, i(0, -1)], {"fixed": [1]}), ("Reshape", [X3, i(4, 3, 2)], {"fixed": [1]}), ("Flatten", [X4], {"axis": 2}),
    ("Flatten", [X3], {"axis": -1}), ("Flatten", [X3], {"axis": 0}), ("Transpose", [X3], {}), ("Transpose", [X3], {"perm": [1, 0, 2]}),
    ("Squeeze", [f(1, 3, 1)], {}), ("Squeeze", [f(1, 3, 1), i(-1)], {"fixed": [1]}), ("Squeeze", [f(1, 3, 1)], {"opset": 11, "axes": [0]}),
    ("Unsqueeze", [X2, i(3, 0)], {"fixed": [1]}), ("Unsqueeze", [X2], {"opset": 11, "axes": [0, -1]}),
    ("Concat", [X2, f(2, 4)], {"axis": 0}), ("Concat", [X3, X3, X3], {"axis": -1}), ("Split", [X2], {"axis": 1, "outputs": 2}),
    ("Split", [X4, i(1, 3)], {"axis": 1, "outputs": 2, "fixed": [1]}), ("Split", [X4], {"opset": 18, "num_outputs": 4, "axis": 2, "outputs": 4}),
    ("Split", [X4], {"opset": 11, "split": [2, 2], "axis": 1, "outputs": 2}),
    ("Slice", [X4], {"opset": 9, "starts": [1, -4], "ends": [3, 2**31 - 1], "axes": [1, 2]}),
    ("Slice", [X4, i(-1, 5), i(-9, 0), i(1, 2), i(-1, -2)], {"fixed": [1, 2, 3, 4]}), ("Slice", [X2, i(0, 1), i(2, 99)], {"fixed": [1, 2]}),
    ("Expand", [f(3, 1), i(2, 1, 4)], {"fixed": [1]}), ("Expand", [X2, i(1)], {"fixed": [1]}), ("Tile", [X2, i(2, 3)], {"fixed": [1]}),
    ("Shape", [X3], {"start": 1}), ("Size", [X3], {}), ("DepthToSpace", [f(1, 8, 2, 3)], {"blocksize": 2}),
    ("DepthToSpace", [f(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}), ("SpaceToDepth", [f(1, 2, 4, 6)], {"blocksize": 2}),
    ("Pad", [X2, i(0, 1, 2, 0), scalar(1.5)], {"fixed": [1]}), ("Pad", [X2, i(1, 1, 1, 1)], {"mode": "reflect", "fixed": [1]}),
    ("Pad", [X2, i(0, 2, 0, 1)], {"mode": "edge", "fixed": [1]}), ("Pad", [X2, i(-1, 0, 0, 2)], {"fixed": [1]}),
    ("Pad", [X2], {"opset": 9, "pads": [1, 0, 0, 1], "value": 2.0}), ("Pad", [X2, i(1, 2), None, i(1)], {"opset": 18, "fixed": [1, 3]}),
    # indices
    ("Gather", [X3, i(0, -1)], {"axis": 1}), ("Gather", [X3, i(1, -2)], {"axis": 2, "fixed": [1]}), ("Gather", [X2, i(1).reshape(())], {}),
    ("GatherElements", [X2, np.array([[0, -1, 2, 1]])], {}), ("GatherND", [X3, i([[0, -1]], [[1, 2]])], {}),
    ("GatherND", [X3, i([0, 1], [2, 3])[:, :1]], {"batch_dims": 1}), ("ScatterElements", [X2, i([0, -1], [1, 2], [3, 0]), f(3, 2)], {"axis": 1}),
    ("ScatterND", [X3, i([0, 1], [-1, 0]), f(2, 4)], {}), ("ScatterND", [X3, i([1], [1]), f(2, 3, 4)], {"opset": 16, "reduction": "add"}),
    ("OneHot", [i(0, -1, 2), i(4).reshape(()), np.array([2, 5], np.float32)], {"fixed": [1]}), ("Trilu", [X2], {}),
    ("Trilu", [X2, i(-1).reshape(())], {"upper": 0}), ("Compress", [X2, np.array([True, False, True])], {"axis": 0, "fixed": [1]}),
    ("TopK", [X3, i(2)], {"axis": 1, "outputs": 2, "fixed": [1]}), ("TopK", [X3, i(2)], {"largest": 0, "outputs": 2, "fixed": [1]}),
    ("CumSum", [X2, i(1).reshape(())], {"fixed": [1]}), ("CumSum", [X2, i(0).reshape(())], {"fixed": [1], "reverse": 1, "exclusive": 1}),
    ("ReverseSequence", [f(4, 3, 2), i(1, 4, 2)], {}), ("NonZero", [X2 > 0], {}), ("EyeLike", [X2], {"k": 1}),
    ("Range", [scalar(1, np.int64), scalar(9, np.int64), scalar(3, np.int64)], {"fixed": [0, 1, 2]}),
    ("ConstantOfShape", [i(2, 3)], {"fixed": [0]}), ("Unique", [i(3, 1, 3, 2)], {"outputs": 4}),
    # products
    ("MatMul", [f(2, 3, 4), f(4, 5)], {}), ("MatMul", [f(2, 1, 3, 4), f(3, 4, 5)], {}), ("MatMul", [f(2, 3, 4), f(4, 5)], {"fixed": [1]}),
    ("Gemm", [f(3, 4), f(5, 4), f(5)], {"transB": 1, "alpha": 0.5, "beta": 2.0, "fixed": [1]}), ("Gemm", [f(4, 3), f(4, 5)], {"transA": 1}),
    ("Einsum", [f(2, 3, 4), f(2, 4, 5)], {"equation": "bij,bjk->bik"}), ("Einsum", [f(3, 3)], {"equation": "ii->i"}),
    ("Einsum", [f(2, 3, 4), f(4, 3)], {"equation": "...ij,ji->..."}), ("Einsum", [f(2, 3), f(3, 4), f(4, 2)], {"equation": "ab,bc,ca"}),
    # convolutions
    ("Conv", [f(1, 4, 7, 6), f(6, 2, 3, 3), f(6)], {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1], "fixed": [1, 2]}),
    ("Conv", [f(1, 3, 9), f(2, 3, 3)], {"auto_pad": "SAME_LOWER", "strides": [2]}), ("Conv", [f(1, 2, 4, 5, 4), f(3, 2, 2, 2, 2)], {}),
    ("Conv", [f(1, 4, 7, 7), f(8, 1, 3, 3)], {"group": 4, "dilations": [2, 2]}), ("ConvTranspose", [f(1, 3, 4, 5), f(3, 2, 3, 3)],
                                                                                 {"strides": [2, 2], "output_padding": [1, 1]}),
    ("ConvTranspose", [f(1, 3, 4, 5), f(3, 2, 3, 3)], {"strides": [3, 2], "output_shape": [10, 8]}),
    ("ConvTranspose", [f(1, 4, 5), f(4, 1, 3)], {"group": 2, "pads": [1, 1], "dilations": [2]}),
    # pools
    ("MaxPool", [X4], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}), ("MaxPool", [X4], {"kernel_shape": [3, 2],
                                                                                     "pads": [1, 0, 1, 1], "dilations": [1, 2]}),
    ("MaxPool", [X4], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1], "outputs": 2}),
    ("AveragePool", [X4], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), ("AveragePool", [X4], {"kernel_shape": [3, 3],
                                                                           "auto_pad": "SAME_UPPER", "count_include_pad": 1}),
    ("GlobalAveragePool", [X4], {}), ("GlobalMaxPool", [X3], {}), ("GlobalLpPool", [X4], {"p": 3}),
    ("MaxUnpool", [f(1, 1, 2, 2), i([[[5, 7], [13, 15]]])], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    # normalisations
    ("BatchNormalization", [X4, f(4), f(4), f(4), np.abs(f(4))], {}), ("InstanceNormalization", [X4, f(4), f(4)], {}),
    ("LayerNormalization", [X3, f(4), f(4)], {}), ("LayerNormalization", [X3, f(3, 4)], {"axis": 1}), ("LRN", [X4], {"size": 3}),
    ("GroupNormalization", [X4, f(4), f(4)], {"opset": 21, "num_groups": 2}), ("LpNormalization", [X2], {"p": 1, "axis": 0}),
    ("MeanVarianceNormalization", [X4], {}), ("Dropout", [X2], {"outputs": 2}),
    # quantised
    ("QuantizeLinear", [X2 * 5, scalar(0.1), scalar(3, np.uint8)], {}), ("QuantizeLinear", [X2, np.abs(f(3)), np.zeros(3, np.int8)], {"axis": 0}),
    ("DequantizeLinear", [u8(3, 4), scalar(0.1), scalar(128, np.uint8)], {}), ("DynamicQuantizeLinear", [X2], {"outputs": 3}),
    ("MatMulInteger", [u8(3, 4), u8(4, 5), scalar(7, np.uint8)], {}),
    ("ConvInteger", [u8(1, 2, 5, 5), u8(3, 2, 3, 3), scalar(7, np.uint8)], {"pads": [1, 1, 1, 1]}),
    ("QLinearConv", [u8(1, 2, 5, 5), scalar(0.1), scalar(9, np.uint8), u8(3, 2, 3, 3), scalar(0.05), scalar(120, np.uint8), scalar(0.7),
                     scalar(100, np.uint8)], {}),
    ("QLinearMatMul", [u8(3, 4), scalar(0.1), scalar(9, np.uint8), u8(4, 5), scalar(0.05), scalar(1, np.uint8), scalar(2.0),
                       scalar(3, np.uint8)], {}),
    # signals and images
    ("DFT", [f(1, 10, 1)], {"axis": 1, "onesided": 1}), ("STFT", [f(1, 20, 1), scalar(4, np.int64), np.hanning(8).astype(np.float32)],
                                                        {"fixed": [1]}),
    ("GridSample", [X4, np.clip(f(2, 3, 3, 2), -1, 1)], {"opset": 16}),
    ("RoiAlign", [X4, np.array([[0, 0, 3, 3], [1, 1, 4, 5]], np.float32), i(0, 1)], {"sampling_ratio": 2, "output_height": 2, "output_width": 2}),
    ("RoiAlign", [X4, np.array([[0, 0, 3, 3], [1, 1, 4, 5]], np.float32), i(0, 1)],
     {"opset": 15, "output_height": 2, "output_width": 3, "spatial_scale": 0.5}),
    ("NonMaxSuppression", [np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32), np.array([[[0.9, 0.8, 0.7]]], np.float32),
                           i(3), np.array([0.5], np.float32)], {"fixed": [2, 3]}),
    # com.microsoft
    ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)], {"domain": "com.microsoft", "activation": "Relu"}),
    ("FusedMatMul", [f(2, 3, 4), f(2, 5, 4)], {"domain": "com.microsoft", "transB": 1, "alpha": 0.3}),
    ("BiasGelu", [X2, f(4)], {"domain": "com.microsoft"}), ("FastGelu", [X2], {"domain": "com.microsoft"}),
    ("SkipLayerNormalization", [X3, X3 * 2, f(4), f(4)], {"domain": "com.microsoft"}),
    ("Attention", [f(1, 3, 8), f(8, 24), f(24)], {"domain": "com.microsoft", "num_heads": 2}),
    ("QLinearAdd", [u8(3, 4), scalar(0.1), scalar(9, np.uint8), u8(3, 4), scalar(0.2), scalar(1, np.uint8), scalar(0.4),
                    scalar(3, np.uint8)], {"domain": "com.microsoft"}),
    ("QLinearMul", [u8(3, 4), scalar(0.1), scalar(9, np.uint8), u8(3, 4), scalar(0.2), scalar(1, np.uint8), scalar(4.0),
                    scalar(3, np.uint8)], {"domain": "com.microsoft"}),
    *((name, [u8(1, 3, 6, 7), scalar(0.1), scalar(9, np.uint8), scalar(scale), scalar(3, np.uint8)], {"domain": "com.microsoft", **more})
      for name, scale, more in (("QLinearAveragePool", 0.07, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}),
                                ("QLinearAveragePool", 0.1, {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0], "count_include_pad": 1}),
                                ("QLinearGlobalAveragePool", 0.07, {}), ("QLinearSigmoid", 0.004, {}), ("QLinearLeakyRelu", 0.1, {"alpha": 0.2}))),
    ("QLinearConcat", [scalar(0.3), scalar(7, np.uint8), u8(2, 3), scalar(0.1), scalar(9, np.uint8), u8(2, 3), scalar(0.2), scalar(1, np.uint8)],
     {"domain": "com.microsoft", "axis": 1}),
]

@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)])
def test_agrees_with_onnx_runtime(case: tuple[str, list[Any], dict[str, Any]]) -> None:
    op, inputs, options = case
    proto, feed = single(op, inputs, **options)
    quantised = op.startswith(("QLinear", "Quantize"))
    if quantised:  # one step of the integers, where the float product rounds the other way
        from .models import ours, runtime

        for got, want in zip(ours(proto, feed), runtime(proto, feed)):
            assert got.dtype == want.dtype and np.abs(got.astype(int) - want.astype(int)).max() <= 1
    else:
        check(proto, feed, 2e-5)


RESIZE = [
    {"mode": "nearest", "coordinate_transformation_mode": c, "nearest_mode": r}
    for c in ("half_pixel", "asymmetric", "align_corners") for r in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
] + [{"mode": m, "coordinate_transformation_mode": c} for m in ("linear", "cubic") for c in ("half_pixel", "align_corners", "pytorch_half_pixel")] + [
    {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}]


@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 1.5, 0.6]])
@pytest.mark.parametrize("attributes", RESIZE, ids=[f"{a['mode']}-{n}" for n, a in enumerate(RESIZE)])
def test_resize(attributes: dict[str, Any], scales: list[float]) -> None:
    proto, feed = single("Resize", [f(1, 2, 4, 5), None, np.array(scales, np.float32)], 13, fixed=[2], **attributes)
    check(proto, feed)


@pytest.mark.parametrize("attributes", [{"antialias": 1, "mode": "linear"}, {"antialias": 1, "mode": "cubic"}], ids=["linear", "cubic"])
def test_resize_to_sizes_with_antialias(attributes: dict[str, Any]) -> None:
    proto, feed = single("Resize", [f(1, 1, 9, 8), None, None, i(1, 1, 4, 3)], 18, fixed=[3], **attributes)
    check(proto, feed, 1e-4)


def test_resize_crops() -> None:
    roi = np.array([0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2], np.float32)
    proto, feed = single("Resize", [f(1, 1, 5, 6), roi, None, i(1, 1, 3, 4)], 13, fixed=[1, 3], mode="linear", extrapolation_value=9.0,
                         coordinate_transformation_mode="tf_crop_and_resize")
    check(proto, feed)


def test_upsample_of_old_models() -> None:
    check(*single("Upsample", [f(1, 2, 3, 4)], 7, scales=[1.0, 1.0, 2.0, 3.0]))
    check(*single("Upsample", [f(1, 2, 3, 4), np.array([1, 1, 2, 2], np.float32)], 9, fixed=[1], mode="linear"))
