"""Cases of normalisations, activations, padding, rearrangement, losses and sparse products."""
from __future__ import annotations

import numpy as np
from nn_harness import Case, ort, rand

from anchorleg.relay import nn

_NAN = np.array([[np.nan, -1.0, 0.0, -0.0, np.inf, -np.inf, 2.0, -3.0]], "float32")
_VAR = np.abs(rand(4, seed=9)) + 0.5


def affine(y, gamma, beta, axis):
    shape = [-1 if i == axis % y.ndim else 1 for i in range(y.ndim)]
    return y * gamma.reshape(shape) + beta.reshape(shape)


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def batch_norm(x, g, b, m, v):
    return ort("BatchNormalization", epsilon=1e-5)(x, g, b, m, v), m, v


def group_norm(x, g, b, groups):
    y = standard(x.reshape(x.shape[0], groups, -1), (2,)).reshape(x.shape)
    return affine(y, g, b, 1)


CASES = [
    Case("relu", lambda a: nn.relu(a), [_NAN], lambda a: np.maximum(a, 0)),
    Case("relu_int8", lambda a: nn.relu(a), [rand(3, 5, dtype="int8")], lambda a: np.maximum(a, 0)),
    Case("leaky_relu", lambda a: nn.leaky_relu(a, 0.1), [rand(3, 5)], ort("LeakyRelu", alpha=0.1)),
    Case("leaky_relu_nan", lambda a: nn.leaky_relu(a, 0.1), [_NAN], lambda a: np.where(a > 0, a, a * np.float32(0.1))),
    Case("prelu", lambda a, b: nn.prelu(a, b), [rand(2, 4, 3, 3), rand(4)], lambda a, b: np.where(a > 0, a, a * b.reshape(4, 1, 1))),
    Case("prelu_last_axis", lambda a, b: nn.prelu(a, b, -1), [rand(2, 3, 4), rand(4)], lambda a, b: np.where(a > 0, a, a * b)),
    Case("bias_add", lambda a, b: nn.bias_add(a, b), [rand(2, 4, 3, 3), rand(4)], lambda a, b: a + b.reshape(4, 1, 1)),
    Case("bias_add_last", lambda a, b: nn.bias_add(a, b, -1), [rand(2, 3, 4), rand(4)], lambda a, b: a + b),
    Case("softmax", lambda a: nn.softmax(a), [rand(3, 10) * 20], ort("Softmax", axis=-1)),
    Case("softmax_middle", lambda a: nn.softmax(a, 1), [rand(3, 5, 4)], ort("Softmax", axis=1)),
    Case("softmax_wide", lambda a: nn.softmax(a), [rand(2, 3, 100)], ort("Softmax", axis=-1)),
    Case("softmax_inf", lambda a: nn.softmax(a), [np.array([[0, -np.inf, 1], [np.nan, 0, 1]], "float32")], ort("Softmax", axis=-1)),
    Case("fast_softmax", lambda a: nn.fast_softmax(a), [rand(3, 10)], ort("Softmax", axis=-1), 1e-4),
    Case("log_softmax", lambda a: nn.log_softmax(a), [rand(3, 10) * 20], ort("LogSoftmax", axis=-1)),
    Case("log_softmax_first", lambda a: nn.log_softmax(a, 0), [rand(5, 4)], ort("LogSoftmax", axis=0)),
    Case("batch_norm", lambda *a: nn.batch_norm(*a), [rand(2, 4, 3, 3), rand(4), rand(4, seed=1), rand(4, seed=2), _VAR], batch_norm),
    Case("layer_norm", lambda *a: nn.layer_norm(*a), [rand(3, 5, 16), rand(16), rand(16, seed=1)], ort("LayerNormalization", axis=-1, epsilon=1e-5)),
    Case("layer_norm_axis1", lambda *a: nn.layer_norm(*a, axis=1), [rand(3, 5, 4), rand(5), rand(5, seed=1)], lambda x, g, b: affine(standard(x, (1,)), g, b, 1)),
    Case("layer_norm_no_scale", lambda *a: nn.layer_norm(*a, scale=False, center=False), [rand(3, 8), rand(8), rand(8)], lambda x, g, b: standard(x, (1,))),
    Case("instance_norm", lambda *a: nn.instance_norm(*a), [rand(2, 4, 5, 5), rand(4), rand(4, seed=1)], ort("InstanceNormalization", epsilon=1e-5)),
    Case("group_norm", lambda *a: nn.group_norm(*a, num_groups=2), [rand(2, 6, 4, 4), rand(6), rand(6, seed=1)], lambda x, g, b: group_norm(x, g, b, 2)),
    Case("l2_normalize", lambda a: nn.l2_normalize(a, 1e-3, [1]), [rand(2, 4, 3)], lambda a: a / np.sqrt(np.maximum((a * a).sum(1, keepdims=True), 1e-3))),
    Case("l2_normalize_all", lambda a: nn.l2_normalize(a, 1e-3), [rand(2, 4)], lambda a: a / np.sqrt((a * a).sum())),
    Case("lrn", lambda a: nn.lrn(a, 3, 1, 2.0, 0.1, 0.75), [rand(1, 6, 4, 4)], ort("LRN", size=3, bias=2.0, alpha=0.1, beta=0.75)),
    Case("dropout", lambda a: nn.dropout(a, 0.3), [rand(2, 3)], lambda a: a),
    Case("pad", lambda a: nn.pad(a, ((0, 0), (1, 2)), 3.0), [rand(2, 3)], lambda a: np.pad(a, ((0, 0), (1, 2)), constant_values=3)),
    Case("pad_negative", lambda a: nn.pad(a, ((0, 0), (-1, 2))), [rand(2, 3)], lambda a: np.pad(a[:, 1:], ((0, 0), (0, 2)))),
    Case("pad_edge", lambda a: nn.pad(a, ((1, 0), (1, 2)), pad_mode="edge"), [rand(2, 3)], lambda a: np.pad(a, ((1, 0), (1, 2)), mode="edge")),
    Case("pad_reflect", lambda a: nn.pad(a, ((1, 0), (1, 2)), pad_mode="reflect"), [rand(2, 3)], lambda a: np.pad(a, ((1, 0), (1, 2)), mode="reflect")),
    Case("mirror_pad", lambda a: nn.mirror_pad(a, ((1, 2), (1, 2))), [rand(3, 4)], lambda a: np.pad(a, ((1, 2), (1, 2)), mode="symmetric")),
    Case("mirror_pad_reflect", lambda a: nn.mirror_pad(a, ((1, 2), (1, 2)), "REFLECT"), [rand(3, 4)], lambda a: np.pad(a, ((1, 2), (1, 2)), mode="reflect")),
    Case("dilate", lambda a: nn.dilate(a, (1, 2), 5.0), [rand(2, 3)], lambda a: np.insert(a, [1, 2], 5.0, axis=1)),
    Case("batch_flatten", lambda a: nn.batch_flatten(a), [rand(2, 3, 4)], lambda a: a.reshape(2, 12)),
    Case("depth_to_space", lambda a: nn.depth_to_space(a, 2), [rand(2, 8, 3, 2)], ort("DepthToSpace", blocksize=2, mode="DCR")),
    Case("depth_to_space_crd", lambda a: nn.depth_to_space(a, 2, mode="CRD"), [rand(2, 8, 3, 2)], ort("DepthToSpace", blocksize=2, mode="CRD")),
    Case("depth_to_space_nhwc", lambda a: nn.depth_to_space(a, 2, "NHWC"), [rand(1, 3, 2, 8)],
         lambda a: ort("DepthToSpace", blocksize=2, mode="DCR")(a.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)),
    Case("space_to_depth", lambda a: nn.space_to_depth(a, 2), [rand(2, 3, 4, 6)], ort("SpaceToDepth", blocksize=2)),
    Case("space_to_batch_nd", lambda a: nn.space_to_batch_nd(a, (2, 2), ((0, 0), (2, 0))), [rand(2, 2, 4, 1)], None),
    Case("space_to_batch_and_back", lambda a: nn.batch_to_space_nd(nn.space_to_batch_nd(a, (2, 3), ((1, 1), (0, 2))), (2, 3), ((1, 1), (0, 2))),
         [rand(2, 4, 4, 3)], lambda a: a),
    Case("batch_to_space_nd", lambda a: nn.batch_to_space_nd(a, (2, 2), ((0, 0), (0, 0))), [np.arange(1, 5, dtype="float32").reshape(4, 1, 1, 1)],
         lambda a: np.array([[[[1], [2]], [[3], [4]]]], "float32")),
    Case("fifo_buffer", lambda a, b: nn.fifo_buffer(a, b, 1), [rand(2, 2), rand(2, 5)], lambda a, b: np.concatenate([b[:, 2:], a], 1)),
    Case("cross_entropy", lambda a, b: nn.cross_entropy(a, b), [np.abs(rand(3, 4)) + 0.1, rand(3, 4)], lambda a, b: -(np.log(a) * b).sum() / 3),
    Case("cross_entropy_with_logits", lambda a, b: nn.cross_entropy_with_logits(a, b), [rand(3, 4), rand(3, 4, seed=1)], lambda a, b: -(a * b).sum() / 3),
    Case("upsampling_nearest", lambda a: nn.upsampling(a, 2, 3), [rand(1, 2, 3, 3)], lambda a: a.repeat(2, 2).repeat(3, 3)),
    Case("upsampling_nearest_nchw4c", lambda a: nn.upsampling(a, 2, 2, "NCHW4c"), [rand(1, 2, 3, 3, 4)], lambda a: a.repeat(2, 2).repeat(2, 3)),
    Case("upsampling_nhwc", lambda a: nn.upsampling(a, 2, 2, "NHWC"), [rand(1, 3, 3, 2)], lambda a: a.repeat(2, 1).repeat(2, 2)),
    Case("upsampling_bilinear", lambda a: nn.upsampling(a, 2, 3, method="bilinear"), [rand(1, 2, 3, 4)],
         lambda a: ort("Resize", mode="linear", coordinate_transformation_mode="asymmetric")(a, np.zeros(0, "float32"), np.array([1, 1, 2, 3], "float32"))),
    Case("upsampling_bilinear_corners", lambda a: nn.upsampling(a, 2, 3, method="bilinear", align_corners=True), [rand(1, 2, 3, 4)],
         lambda a: ort("Resize", mode="linear", coordinate_transformation_mode="align_corners")(a, np.zeros(0, "float32"), np.array([1, 1, 2, 3], "float32"))),
    Case("upsampling_bicubic", lambda a: nn.upsampling(a, 2, 2, method="bicubic"), [rand(1, 1, 5, 4)],
         lambda a: ort("Resize", mode="cubic", cubic_coeff_a=-0.5, coordinate_transformation_mode="asymmetric")(a, np.zeros(0, "float32"), np.array([1, 1, 2, 2], "float32"))),
    Case("upsampling3d_nearest", lambda a: nn.upsampling3d(a, 2, 2, 2, coordinate_transformation_mode="asymmetric"), [rand(1, 2, 2, 3, 2)],
         lambda a: a.repeat(2, 2).repeat(2, 3).repeat(2, 4)),
    Case("upsampling3d_trilinear", lambda a: nn.upsampling3d(a, 2, 2, 2, method="trilinear"), [rand(1, 2, 2, 3, 2)],
         lambda a: ort("Resize", mode="linear", coordinate_transformation_mode="half_pixel")(a, np.zeros(0, "float32"), np.array([1, 1, 2, 2, 2], "float32"))),
]


def nll(p, t, w, reduction, ignore):
    total, weight, each = 0.0, 0.0, np.zeros(t.shape)
    for i in np.ndindex(*t.shape):
        if t[i] != ignore:
            each[i] = -p[(i[0], t[i], *i[1:])] * w[t[i]]
            total, weight = total + each[i], weight + w[t[i]]
    return {"none": each, "sum": np.float64(total), "mean": np.float64(total / weight)}[reduction]


for _reduction in ("none", "sum", "mean"):
    CASES.append(Case(f"nll_loss_{_reduction}", lambda p, t, w, r=_reduction: nn.nll_loss(p, t, w, r, 2),
                      [rand(2, 4, 3), rand(2, 3, dtype="int32") % 4, np.abs(rand(4))], lambda p, t, w, r=_reduction: nll(p, t, w, r, 2)))


def correlation(a, b, k, d, s1, s2, pad, multiply):
    a, b = (np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in (a, b))
    n, c, h, w = a.shape
    border, r = d + (k - 1) // 2, d // s2
    oh, ow = -(-(h - 2 * border) // s1), -(-(w - 2 * border) // s1)
    out = np.zeros((n, (2 * r + 1) ** 2, oh, ow))
    for m, q, i, j in np.ndindex(*out.shape):
        y1, x1 = i * s1 + d, j * s1 + d
        y2, x2 = y1 + (q // (2 * r + 1) - r) * s2, x1 + (q % (2 * r + 1) - r) * s2
        p1, p2 = a[m, :, y1:y1 + k, x1:x1 + k], b[m, :, y2:y2 + k, x2:x2 + k]
        out[m, q, i, j] = (p1 * p2 if multiply else np.abs(p1 - p2)).sum() / (k * k * c)
    return out


for _i, _config in enumerate([(1, 2, 1, 1, 2, True), (3, 3, 1, 2, 3, True), (3, 2, 2, 1, 3, False)]):
    CASES.append(Case(f"correlation_{_i}", lambda a, b, c=_config: nn.correlation(a, b, *c[:5], c[5], "NCHW"), [rand(1, 3, 8, 9), rand(1, 3, 8, 9, seed=1)],
                      lambda a, b, c=_config: correlation(a, b, *c)))

_SPARSE = np.where(rand(6, 8) > 0.7, rand(6, 8, seed=3), 0).astype("float32")


def csr(m):
    rows, cols = np.nonzero(m)
    return m[rows, cols], cols.astype("int32"), np.concatenate([[0], np.cumsum((m != 0).sum(1))]).astype("int32")


def bsr(m, r, c):
    blocks = m.reshape(m.shape[0] // r, r, m.shape[1] // c, c).transpose(0, 2, 1, 3)
    used = (blocks != 0).any((2, 3))
    rows, cols = np.nonzero(used)
    return blocks[rows, cols], cols.astype("int32"), np.concatenate([[0], np.cumsum(used.sum(1))]).astype("int32")


_SQUARE = np.where(rand(5, 5) > 0.3, rand(5, 5, seed=3), 0).astype("float32")
CASES += [
    Case("sparse_dense_csr", lambda a, *s: nn.sparse_dense(a, s), [rand(3, 8), *csr(_SPARSE)], lambda a, *s: a @ _SPARSE.T),
    Case("sparse_dense_bsr", lambda a, *s: nn.sparse_dense(a, s), [rand(3, 8), *bsr(_SPARSE, 2, 4)], lambda a, *s: a @ _SPARSE.T),
    Case("sparse_dense_lhs", lambda a, *s: nn.sparse_dense(a, s, True), [rand(3, 8), *csr(_SPARSE)], lambda a, *s: _SPARSE @ a.T),
    Case("sparse_add", lambda a, *s: nn.sparse_add(a, s), [rand(6, 8), *csr(_SPARSE)], lambda a, *s: a + _SPARSE),
    Case("sparse_transpose", lambda *s: nn.sparse_transpose(s), [*csr(_SQUARE)], lambda *s: csr(_SQUARE.T)),
]

CASES += [
    Case("fused_softmax_scale", lambda a, b: nn.softmax(a) * b, [rand(2, 5, 70), rand(1, 1, 70)], lambda a, b: ort("Softmax", axis=-1)(a) * b),
    Case("fused_layer_norm_add", lambda x, g, b, y: nn.layer_norm(x, g, b) + y, [rand(5, 130), rand(130), rand(130, seed=1), rand(5, 130, seed=2)],
         lambda x, g, b, y: affine(standard(x, (1,)), g, b, 1) + y),
]
