"""Cases of convolutions."""
from __future__ import annotations

import numpy as np
from nn_harness import Case, ort, rand

from anchorleg import relay
from anchorleg.relay import nn
from anchorleg.relay.op.transform.transpose import convert_layout
from anchorleg.topi.nn.winograd_util import winograd_transform_arrays


def conv_case(name, x, w, strides=1, padding=0, dilation=1, groups=1, op=None):
    rank = x.ndim - 2
    op = op or {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[rank]
    pads = list(padding) if isinstance(padding, (list, tuple)) else [padding] * rank * 2
    as_list = lambda v: [v] * rank if isinstance(v, int) else list(v)
    ref = ort("Conv", strides=as_list(strides), pads=pads, dilations=as_list(dilation), group=groups)
    return Case(name, lambda a, b: op(a, b, strides=strides, padding=padding, dilation=dilation, groups=groups,
                                      channels=w.shape[0], kernel_size=w.shape[2:]), [x, w], ref)


def layout_case(name, data, kernel, out="", groups=1, padding=1, strides=1, shape=(2, 8, 7, 6), weight=(16, 8, 3, 3), op=nn.conv2d):
    x, w = rand(*shape), rand(*weight)
    plain = ort("Conv", strides=[strides] * 2, pads=[padding] * 4, group=groups)
    ref = lambda a, b: convert_layout(plain(x, w.reshape(-1, shape[1] // groups, *weight[2:])), "NCHW", out or data)
    channels = weight[0] * (weight[1] if groups == shape[1] == weight[0] else 1)
    return Case(name, lambda a, b: op(a, b, strides=strides, padding=padding, groups=groups, channels=channels, kernel_size=weight[2:],
                                      data_layout=data, kernel_layout=kernel, out_layout=out),
                [convert_layout(x, "NCHW", data), convert_layout(w, "OIHW", kernel)], ref)


def transpose_case(name, x, w, strides=1, padding=0, dilation=1, groups=1, output_padding=0):
    rank = x.ndim - 2
    op = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}[rank]
    as_list = lambda v: [v] * rank if isinstance(v, int) else list(v)
    pads = list(padding) if isinstance(padding, (list, tuple)) else [padding] * rank * 2
    ref = ort("ConvTranspose", strides=as_list(strides), pads=pads, dilations=as_list(dilation), group=groups,
              output_padding=as_list(output_padding))
    return Case(name, lambda a, b: op(a, b, strides=as_list(strides), padding=padding, dilation=as_list(dilation), groups=groups,
                                      output_padding=as_list(output_padding), channels=w.shape[1] * groups,
                                      kernel_size=w.shape[2:]), [x, w], ref)


def int_conv(x, w):
    out = np.zeros((x.shape[0], w.shape[0], x.shape[2] - 2, x.shape[3] - 2), np.int64)
    for i in range(3):
        for j in range(3):
            out += np.einsum("nchw,oc->nohw", x[:, :, i:i + out.shape[2], j:j + out.shape[3]].astype(np.int64), w[:, :, i, j].astype(np.int64))
    return out.astype(np.int32)


CASES = [
    conv_case("conv1d", rand(2, 4, 11), rand(6, 4, 3), strides=2, padding=(1, 2)),
    conv_case("conv1d_grouped_dilated", rand(1, 6, 14), rand(9, 2, 3), dilation=2, groups=3, padding=1),
    conv_case("conv2d_3x3", rand(1, 5, 9, 8), rand(7, 5, 3, 3), padding=1),
    conv_case("conv2d_stem", rand(1, 3, 20, 20), rand(8, 3, 7, 7), strides=2, padding=3),
    conv_case("conv2d_1x1", rand(2, 6, 5, 5), rand(12, 6, 1, 1)),
    conv_case("conv2d_1x1_stride", rand(1, 6, 5, 5), rand(12, 6, 1, 1), strides=(2, 3)),
    conv_case("conv2d_uneven_padding", rand(1, 4, 6, 6), rand(3, 4, 2, 4), padding=(0, 1, 2, 3)),
    conv_case("conv2d_few_outputs", rand(2, 5, 11, 40), rand(2, 5, 5, 5), padding=2),
    conv_case("conv2d_few_outputs_ragged", rand(1, 3, 9, 37), rand(3, 3, 3, 2), padding=(1, 0, 1, 1)),
    conv_case("conv2d_one_long_row", rand(1, 1, 1, 200), rand(1, 1, 1, 64), strides=(1, 2)),
    conv_case("conv2d_long_taps_few_channels", rand(1, 2, 3, 90), rand(3, 2, 2, 33), strides=(1, 3), padding=(0, 5, 1, 4)),
    conv_case("conv2d_narrow", rand(1, 16, 61, 1), rand(32, 16, 5, 1)),
    conv_case("conv2d_three_blocks", rand(1, 8, 9, 12), rand(24, 8, 3, 3), padding=1),
    conv_case("conv1d_one_output", rand(2, 4, 50), rand(1, 4, 5), padding=2),
    conv_case("conv3d_one_output", rand(1, 2, 4, 5, 18), rand(1, 2, 3, 3, 3), padding=1),
    conv_case("depthwise_plain", rand(1, 6, 9, 21), rand(6, 1, 3, 3), padding=1, groups=6),
    conv_case("depthwise_plain_stride", rand(1, 16, 9, 21), rand(16, 1, 3, 3), padding=1, groups=16, strides=2),
    conv_case("conv2d_dilated", rand(1, 4, 12, 12), rand(4, 4, 3, 3), padding=2, dilation=(2, 3)),
    conv_case("conv2d_grouped", rand(1, 8, 6, 6), rand(12, 2, 3, 3), padding=1, groups=4),
    conv_case("conv2d_depthwise", rand(2, 8, 9, 9), rand(8, 1, 3, 3), padding=1, groups=8, strides=2),
    conv_case("conv2d_empty_batch", rand(0, 3, 5, 5), rand(2, 3, 3, 3)),
    conv_case("conv3d", rand(1, 3, 5, 6, 7), rand(4, 3, 3, 2, 3), padding=(1, 0, 1, 1, 1, 0), strides=(1, 2, 1)),
    conv_case("conv3d_grouped_not_depthwise", rand(1, 4, 3, 3, 3), rand(2, 2, 1, 1, 1), groups=2),
    layout_case("conv2d_nhwc_hwio", "NHWC", "HWIO"),
    layout_case("conv2d_hwcn", "HWCN", "HWIO"),
    layout_case("conv2d_nhwc_out_nchw", "NHWC", "OHWI", out="NCHW"),
    layout_case("conv2d_nchw4c", "NCHW4c", "OIHW4i8o", out="NCHW8c"),
    layout_case("conv2d_nchw4c_stride", "NCHW4c", "OIHW4i8o", out="NCHW8c", strides=2, padding=1, shape=(1, 8, 9, 9)),
    layout_case("contrib_conv2d_nchwc", "NCHW8c", "OIHW8i16o", out="NCHW16c", op=nn.contrib_conv2d_nchwc),
    layout_case("contrib_conv2d_nchwc_1x1", "NCHW8c", "OIHW8i8o", out="NCHW8c", weight=(16, 8, 1, 1), padding=0, op=nn.contrib_conv2d_nchwc),
    layout_case("contrib_conv2d_nchwc_grouped", "NCHW4c", "OIHW4i4o", out="NCHW4c", groups=2, weight=(16, 4, 3, 3), op=nn.contrib_conv2d_nchwc),
    layout_case("conv2d_depthwise_nhwc", "NHWC", "HWOI", groups=8, weight=(8, 1, 3, 3)),
    layout_case("conv2d_depthwise_multiplier", "NCHW", "OIHW", groups=8, weight=(8, 2, 3, 3)),
    layout_case("conv2d_depthwise_multiplier_nhwc", "NHWC", "HWOI", groups=8, weight=(8, 2, 3, 3)),
    layout_case("contrib_depthwise", "NCHW8c", "OIHW1i8o", groups=8, weight=(8, 1, 3, 3), op=nn.contrib_depthwise_conv2d_nchwc),
    layout_case("contrib_depthwise_5x5", "NCHW4c", "OIHW1i4o", groups=8, weight=(8, 1, 5, 5), padding=2, strides=2, op=nn.contrib_depthwise_conv2d_nchwc),
    Case("conv2d_int8_to_int32", lambda a, b: nn.conv2d(a, b, out_dtype="int32"), [rand(1, 6, 6, 6, dtype="uint8"), rand(4, 6, 3, 3, dtype="int8")], int_conv),
    transpose_case("conv1d_transpose", rand(1, 4, 5), rand(4, 3, 3), strides=2, padding=1),
    transpose_case("conv2d_transpose", rand(2, 4, 5, 6), rand(4, 5, 3, 3), strides=2, padding=1, output_padding=1),
    transpose_case("conv2d_transpose_uneven", rand(1, 3, 4, 4), rand(3, 2, 4, 2), strides=(3, 1), padding=(0, 1, 2, 0)),
    transpose_case("conv2d_transpose_grouped", rand(1, 4, 5, 5), rand(4, 3, 3, 3), strides=2, groups=2),
    transpose_case("conv2d_transpose_depthwise", rand(1, 10, 3, 3), rand(10, 1, 3, 3), strides=(3, 2), padding=(1, 2, 1, 2), groups=10),
    transpose_case("conv2d_transpose_dilated", rand(1, 2, 5, 5), rand(2, 3, 3, 3), strides=2, dilation=2),
    transpose_case("conv3d_transpose", rand(1, 3, 3, 4, 3), rand(3, 2, 2, 3, 2), strides=(2, 1, 2), padding=(0, 1, 0, 0, 1, 0)),
    transpose_case("conv2d_transpose_1x1", rand(1, 2, 1, 1), rand(2, 1, 1, 1), groups=2),
]


def winograd(tile, kernel, padding, shape=(1, 3, 9, 10), channels=5):
    x, w = rand(*shape), rand(channels, shape[1], kernel, kernel)

    def build(a, b):
        u = nn.contrib_conv2d_winograd_weight_transform(b, tile)
        return nn.contrib_conv2d_winograd_without_weight_transform(a, u, tile, padding=padding, channels=channels, kernel_size=(kernel, kernel))

    return Case(f"winograd_f{tile}_{kernel}", build, [x, w], ort("Conv", pads=[padding] * 4), 1e-4)


CASES += [winograd(2, 3, 1), winograd(4, 3, 1), winograd(4, 3, 0), winograd(2, 5, 2)]


def winograd_packed(name, tile, padding, shape, channels, icb, ocb, bias=True):
    """Packed by channels, with or without the element-wise operations that usually follow."""
    x, w, b = rand(*shape), rand(channels, shape[1], 3, 3), rand(1, channels, 1, 1)
    g = winograd_transform_arrays(tile, 3, "float64")[2]
    u = convert_layout(np.einsum("ah,oihw,bw->aboi", g, w, g).astype("float32"), "HWOI", f"OHWI{icb}i{ocb}o")
    layouts = {"data_layout": f"NCHW{icb}c", "kernel_layout": f"OHWI{icb}i{ocb}o", "out_layout": f"NCHW{ocb}c"}
    conv = ort("Conv", pads=[padding] * 4 if isinstance(padding, int) else list(padding))

    def build(data, weight, *rest):
        y = nn.contrib_conv2d_winograd_without_weight_transform(data, weight, tile, padding=padding, channels=channels, kernel_size=(3, 3),
                                                                **layouts)
        return nn.relu(relay.add(y, *rest)) if rest else y

    def ref(*_):
        y = conv(x, w)
        return convert_layout(np.maximum(y + b, 0) if bias else y, "NCHW", f"NCHW{ocb}c")

    args = [convert_layout(x, "NCHW", f"NCHW{icb}c"), u, *([convert_layout(b, "NCHW", f"NCHW{ocb}c")] if bias else [])]
    return Case(f"winograd_packed_{name}", build, args, ref, 1e-4)


CASES += [
    winograd_packed("f4", 4, 1, (1, 16, 8, 8), 16, 16, 16),
    winograd_packed("f4_odd", 4, 1, (2, 16, 7, 13), 32, 8, 16),
    winograd_packed("f2_odd", 2, 1, (1, 16, 7, 5), 16, 16, 8),
    winograd_packed("f4_no_padding", 4, 0, (1, 8, 9, 10), 8, 8, 8),
    winograd_packed("f4_uneven_padding", 4, (0, 1, 2, 1), (1, 8, 6, 7), 16, 8, 16, bias=False),
    winograd_packed("f2_many_blocks", 2, 1, (1, 8, 18, 34), 8, 8, 8),
    winograd_packed("f4_tiny", 4, 1, (1, 8, 2, 1), 8, 8, 8, bias=False),
]


def deformable_ref(x, offset, w, stride=1, padding=1, groups=1, dgroups=1):
    n, c, h, wd = x.shape
    o, _, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    out = np.zeros((n, o, oh, ow), np.float64)

    def at(b, ch, y, z):
        y0, z0 = int(np.floor(y)), int(np.floor(z))
        total = 0.0
        for yy, wy in ((y0, 1 - (y - y0)), (y0 + 1, y - y0)):
            for zz, wz in ((z0, 1 - (z - z0)), (z0 + 1, z - z0)):
                if 0 <= yy < h and 0 <= zz < wd:
                    total += x[b, ch, yy, zz] * wy * wz
        return total

    for b, oc, i, j in np.ndindex(n, o, oh, ow):
        for ic in range(c // groups):
            ch = oc // (o // groups) * (c // groups) + ic
            for p, q in np.ndindex(kh, kw):
                k = ((ch // (c // dgroups)) * kh * kw + p * kw + q) * 2
                out[b, oc, i, j] += w[oc, ic, p, q] * at(b, ch, i * stride - padding + p + offset[b, k, i, j],
                                                         j * stride - padding + q + offset[b, k + 1, i, j])
    return out


CASES += [
    Case("deformable_conv2d", lambda x, o, w: nn.deformable_conv2d(x, o, w, padding=1, kernel_size=(3, 3), channels=3),
         [rand(1, 4, 5, 5), rand(1, 18, 5, 5), rand(3, 4, 3, 3)], deformable_ref),
    Case("deformable_conv2d_grouped", lambda x, o, w: nn.deformable_conv2d(x, o, w, padding=1, strides=2, kernel_size=(3, 3), channels=4, groups=2, deformable_groups=2),
         [rand(1, 4, 5, 5), rand(1, 36, 3, 3), rand(4, 2, 3, 3)], lambda x, o, w: deformable_ref(x, o, w, 2, 1, 2, 2)),
]


def fused(name, op, data, kernel, shape, weight, groups=1, strides=1, padding=1):
    x, w, bias, other = rand(*shape), rand(*weight), rand(1, weight[0], 1, 1), None
    plain = ort("Conv", strides=[strides] * 2, pads=[padding] * 4, group=groups)
    y = plain(x, w)
    other = rand(*y.shape)

    def build(a, b, c, d):
        z = op(a, b, strides=strides, padding=padding, groups=groups, channels=weight[0], kernel_size=weight[2:], data_layout=data,
               kernel_layout=kernel, out_layout=data)
        return nn.relu(z + c + d)

    pack = lambda t: convert_layout(t, "NCHW", data)
    bias_packed = convert_layout(bias, "NCHW", data)
    return Case(name, build, [pack(x), convert_layout(w, "OIHW", kernel), bias_packed, pack(other)],
                lambda *_: pack(np.maximum(y + bias + other, 0)))


CASES += [
    fused("fused_conv_bias_add_relu", nn.contrib_conv2d_nchwc, "NCHW16c", "OIHW16i16o", (1, 16, 5, 30), (32, 16, 3, 3)),
    fused("fused_conv_uneven_width", nn.contrib_conv2d_nchwc, "NCHW8c", "OIHW8i8o", (1, 8, 6, 29), (32, 8, 1, 1), padding=0),
    fused("fused_conv_small_map", nn.contrib_conv2d_nchwc, "NCHW16c", "OIHW16i16o", (2, 16, 7, 7), (64, 16, 3, 3)),
    fused("fused_conv_rows_left_over", nn.contrib_conv2d_nchwc, "NCHW16c", "OIHW16i16o", (1, 16, 5, 3), (16, 16, 3, 3)),
    fused("fused_depthwise_bias_add_relu", nn.contrib_depthwise_conv2d_nchwc, "NCHW16c", "OIHW1i16o", (1, 16, 9, 29), (16, 1, 3, 3), groups=16),
    fused("fused_depthwise_stride", nn.contrib_depthwise_conv2d_nchwc, "NCHW16c", "OIHW1i16o", (1, 32, 14, 14), (32, 1, 5, 5), groups=32, strides=2, padding=2),
]
