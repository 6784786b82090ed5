"""Computes of neural network operators, as tensor expressions, and their schedules."""
from __future__ import annotations

from .conv import (conv, conv1d, conv1d_ncw, conv1d_nwc, conv2d, conv2d_hwcn, conv2d_nchw, conv2d_NCHWc, conv2d_nhwc, conv3d_ncdhw,
                   conv3d_ndhwc, depthwise_conv2d_nchw, depthwise_conv2d_NCHWc, depthwise_conv2d_nhwc, group_conv2d_nchw, group_conv2d_nhwc)
from .conv_transpose import (conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw, conv_transpose,
                             group_conv2d_transpose_nchw)
from .dense import batch_matmul, dense, dense_pack, dense_pack4, matmul
from .elemwise import bias_add, leaky_relu, prelu, relu, scale_shift_nchw
from .loss import cross_entropy, cross_entropy_with_logits, nll_loss
from .misc import (conv2d_winograd_weight_transform, conv2d_winograd_without_weight_transform, correlation_nchw, deformable_conv2d,
                   sparse_add, sparse_dense, sparse_transpose)
from .norm import batch_norm, group_norm, instance_norm, l2_normalize, layer_norm, lrn
from .pad import dilate, mirror_pad, pad
from .pooling import adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool, pool1d, pool2d, pool3d
from .rearrange import batch_to_space_nd, depth_to_space, fifo_buffer, flatten, space_to_batch_nd, space_to_depth
from .softmax import fast_softmax, log_softmax, softmax
from .upsampling import upsampling, upsampling3d
