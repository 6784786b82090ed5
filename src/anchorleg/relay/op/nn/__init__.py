"""Operators of neural networks (``relay.nn``)."""
from __future__ import annotations

from .activation import leaky_relu, prelu, relu
from .bias_add import bias_add
from .conv import contrib_conv2d_nchwc, contrib_depthwise_conv2d_nchwc, conv1d, conv2d, conv3d
from .conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from .deformable import deformable_conv2d
from .dense import batch_matmul, contrib_dense_pack, dense, matmul
from . import convert_layout as _convert_layout, legalize as _legalize  # noqa: F401  (register the rules)
from .loss import cross_entropy, cross_entropy_with_logits, nll_loss
from .misc import correlation, dropout, dropout_raw, fifo_buffer
from .norm import batch_norm, group_norm, instance_norm, l2_normalize, layer_norm, lrn
from .pad import dilate, mirror_pad, pad
from .pooling import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
                      adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, global_avg_pool1d, global_avg_pool2d, global_avg_pool3d,
                      global_max_pool1d, global_max_pool2d, global_max_pool3d, max_pool1d, max_pool2d, max_pool3d)
from .rearrange import batch_flatten, batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from .recurrent import contrib_gru, contrib_lstm, contrib_rnn
from .softmax import fast_softmax, log_softmax, softmax
from .sparse import sparse_add, sparse_dense, sparse_transpose
from .upsampling import upsampling, upsampling3d
from .utils import get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d
from .winograd import contrib_conv2d_winograd_weight_transform, contrib_conv2d_winograd_without_weight_transform

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"]
