"""Cases of matrix products."""
from __future__ import annotations

import numpy as np
from nn_harness import Case, rand

from anchorleg.relay import nn
from anchorleg.relay.op.transform.transpose import convert_layout

_W = rand(32, 12)
CASES = [
    Case("dense", lambda a, b: nn.dense(a, b), [rand(3, 7), rand(5, 7)], lambda a, b: a @ b.T),
    Case("dense_units", lambda a, b: nn.dense(a, b, units=33), [rand(17, 65), rand(33, 65)], lambda a, b: a @ b.T),
    Case("dense_vector", lambda a, b: nn.dense(a, b), [rand(3), rand(3, 3)], lambda a, b: a @ b.T),
    Case("dense_3d", lambda a, b: nn.dense(a, b, units=5), [rand(2, 3, 7), rand(5, 7)], lambda a, b: a @ b.T),
    Case("dense_one_row", lambda a, b: nn.dense(a, b), [rand(1, 100), rand(40, 100)], lambda a, b: a @ b.T),
    Case("dense_empty", lambda a, b: nn.dense(a, b), [rand(0, 4), rand(5, 4)], lambda a, b: a @ b.T),
    Case("dense_no_inner", lambda a, b: nn.dense(a, b), [rand(2, 0), rand(5, 0)], lambda a, b: np.zeros((2, 5))),
    Case("dense_int8", lambda a, b: nn.dense(a, b, out_dtype="int32"), [rand(3, 70, dtype="int8"), rand(5, 70, dtype="int8")],
         lambda a, b: a.astype("int32") @ b.astype("int32").T),
    Case("dense_float64", lambda a, b: nn.dense(a, b), [rand(3, 7, dtype="float64"), rand(5, 7, dtype="float64")], lambda a, b: a @ b.T, 1e-12),
    Case("dense_pack", lambda a, b: nn.contrib_dense_pack(a, b, "NC16n", 32), [rand(5, 12), convert_layout(_W, "NC", "NC16n")], lambda a, b: a @ _W.T),
    Case("dense_pack_partial_block", lambda a, b: nn.contrib_dense_pack(a, b, "NC16n", 27), [rand(7, 12), convert_layout(_W[:27], "NC", "NC16n")], lambda a, b: a @ _W[:27].T),
    Case("dense_pack_3d", lambda a, b: nn.contrib_dense_pack(a, b, "NC16n"), [rand(2, 5, 12), convert_layout(_W, "NC", "NC16n")], lambda a, b: a @ _W.T),
    Case("dense_pack_one_row", lambda a, b: nn.contrib_dense_pack(a, b, "NC8n", 32), [rand(1, 12), convert_layout(_W, "NC", "NC8n")], lambda a, b: a @ _W.T),
    Case("matmul", lambda a, b: nn.matmul(a, b), [rand(3, 7), rand(7, 5)], lambda a, b: a @ b),
    Case("matmul_ta", lambda a, b: nn.matmul(a, b, transpose_a=True), [rand(7, 3), rand(7, 5)], lambda a, b: a.T @ b),
    Case("matmul_ta_tb", lambda a, b: nn.matmul(a, b, transpose_a=True, transpose_b=True), [rand(7, 3), rand(5, 7)], lambda a, b: a.T @ b.T),
    Case("batch_matmul", lambda a, b: nn.batch_matmul(a, b), [rand(3, 4, 7), rand(3, 5, 7)], lambda a, b: a @ b.transpose(0, 2, 1)),
    Case("batch_matmul_nn", lambda a, b: nn.batch_matmul(a, b, transpose_b=False), [rand(3, 13, 17), rand(3, 17, 40)], lambda a, b: a @ b),
    Case("batch_matmul_ta", lambda a, b: nn.batch_matmul(a, b, transpose_a=True), [rand(3, 7, 4), rand(3, 5, 7)], lambda a, b: a.transpose(0, 2, 1) @ b.transpose(0, 2, 1)),
    Case("batch_matmul_ta_nn", lambda a, b: nn.batch_matmul(a, b, transpose_a=True, transpose_b=False), [rand(2, 7, 4), rand(2, 7, 9)], lambda a, b: a.transpose(0, 2, 1) @ b),
    Case("batch_matmul_repeat_b", lambda a, b: nn.batch_matmul(a, b), [rand(3, 4, 7), rand(1, 5, 7)], lambda a, b: a @ b.transpose(0, 2, 1)),
    Case("batch_matmul_repeat_a", lambda a, b: nn.batch_matmul(a, b, transpose_b=False), [rand(1, 4, 7), rand(3, 7, 5)], lambda a, b: a @ b),
    Case("batch_matmul_int", lambda a, b: nn.batch_matmul(a, b, out_dtype="int32"), [rand(2, 3, 9, dtype="int8"), rand(2, 5, 9, dtype="int8")],
         lambda a, b: a.astype("int32") @ b.astype("int32").transpose(0, 2, 1)),
]

_BIG = rand(150, 20)
CASES += [
    Case("fused_dense_pack_bias_relu", lambda a, b, c: nn.relu(nn.bias_add(nn.contrib_dense_pack(a, b, "NC64n", 150), c, -1)),
         [rand(13, 20), convert_layout(_BIG, "NC", "NC64n"), rand(150)], lambda a, b, c: np.maximum(a @ _BIG.T + c, 0)),
    Case("fused_batch_matmul_add", lambda a, b, c: nn.batch_matmul(a, b, transpose_b=False) + c, [rand(3, 17, 9), rand(3, 9, 70), rand(3, 17, 70)],
         lambda a, b, c: a @ b + c),
    Case("batch_matmul_whole_tiles", lambda a, b: nn.batch_matmul(a, b), [rand(2, 12, 8), rand(2, 64, 8)], lambda a, b: a @ b.transpose(0, 2, 1)),
]
