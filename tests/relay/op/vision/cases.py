"""Cases of the operators of object detection; small ones are worked out by hand."""
from __future__ import annotations

import numpy as np

from anchorleg.relay.op import vision

from ..op_cases import Case, case

R = np.random.default_rng(3)

# class, score, left, top, right, bottom
BOXES = np.array([[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40], [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], np.float32)
ALL_FIVE, FIRST_FOUR = np.array([5], np.int32), np.array([4], np.int32)
WHERE = np.arange(5, dtype=np.int32)[None]


def _rows(*order: int) -> np.ndarray:
    """Boxes by number; -1 for one that was suppressed."""
    return np.stack([np.full(6, -1, np.float32) if i < 0 else BOXES[0, i] for i in order])[None]


def _nms(name: str, want: object, count: np.ndarray = ALL_FIVE, **kw: object) -> Case:
    return case(f"nms-{name}", lambda d, c, i: vision.non_max_suppression(d, c, i, **kw), [BOXES, count, WHERE], want)


VALID = np.array([[[0, 0.9, 1, 2, 3, 4], [1, 0.1, 5, 6, 7, 8], [-1, 0.8, 1, 1, 1, 1], [2, 0.6, 9, 8, 7, 6]]], np.float32)

NMS = [
    _nms("boxes", _rows(3, 0, 1, 4, -1), iou_threshold=0.45, return_indices=False),
    _nms("force", _rows(3, 0, -1, 4, -1), iou_threshold=0.45, force_suppress=True, return_indices=False),
    _nms("bottom", _rows(3, 0, 4, -1, -1), iou_threshold=0.45, force_suppress=True, return_indices=False, invalid_to_bottom=True),
    _nms("indices", (np.array([[3, 0, 4, -1, -1]]), np.array([[3]])), iou_threshold=0.45, force_suppress=True),
    _nms("limit", (np.array([[3, 0, -1, -1, -1]]), np.array([[2]])), iou_threshold=0.45, max_output_size=2),
    _nms("top-k", (np.array([[3, 0, 1, -1, -1]]), np.array([[3]])), iou_threshold=0.45, top_k=3),
    _nms("count", (np.array([[3, 0, 1, -1, -1]]), np.array([[3]])), FIRST_FOUR, iou_threshold=0.45),
    _nms("no-class", (np.array([[3, 0, 4, -1, -1]]), np.array([[3]])), iou_threshold=0.45, id_index=-1),
    _nms("none", _rows(0, 1, 2, 3, -1), FIRST_FOUR, iou_threshold=0.0, return_indices=False),
    _nms("empty", (np.full((1, 5), -1), np.array([[0]])), np.array([0], np.int32), iou_threshold=0.45),
    case("get_valid_counts", lambda d: vision.get_valid_counts(d, 0.5), [VALID],
         (np.array([2]), np.concatenate([VALID[:, [0, 3]], np.full((1, 2, 6), -1)], 1), np.array([[0, 3, -1, -1]]))),
    case("get_valid_counts-no-class", lambda d: vision.get_valid_counts(d, 0.5, id_index=-1), [VALID],
         (np.array([3]), np.concatenate([VALID[:, [0, 2, 3]], np.full((1, 1, 6), -1)], 1), np.array([[0, 2, 3, -1]]))),
]

# the example of the ONNX operator NonMaxSuppression
CORNERS = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]], np.float32)
SCORES = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.3, 0.5, 0.95, 0.6, 0.75, 0.9]]], np.float32)


def _table(rows: list[list[int]], width: int, n: int = 12) -> np.ndarray:
    out = np.zeros((n, width), np.int64)
    out[:len(rows)] = np.array(rows, np.int64).reshape(-1, width)
    return out


def _regular() -> Case:
    scores = np.concatenate([np.zeros((1, 6, 1), np.float32), SCORES.transpose(0, 2, 1)], axis=2)
    kept = [(3, 0, 0.95), (2, 1, 0.95), (0, 0, 0.9), (5, 1, 0.9)]
    want = (np.stack([CORNERS[0, i] for i, _, _ in kept])[None], np.array([[c for _, c, _ in kept]]), np.array([[s for _, _, s in kept]]), np.array([4]))
    return case("regular_nms", lambda b, s: vision.regular_non_max_suppression(b, s, 3, 4, 2, 0.5, 0.2), [CORNERS, scores], want)


ALL_CLASS = [
    case("all_class-onnx", lambda b, s: vision.all_class_non_max_suppression(b, s, 2, 0.5, 0.0), [CORNERS, SCORES],
         (_table([[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 1, 5]], 3), np.array([4]))),
    case("all_class-unlimited", lambda b, s: vision.all_class_non_max_suppression(b, s, -1, 0.5, 0.4), [CORNERS, SCORES],
         (_table([[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 1, 5], [0, 1, 4]], 3), np.array([5]))),
    case("all_class-tensorflow", lambda b, s: vision.all_class_non_max_suppression(b, s, 2, 0.5, 0.0, "tensorflow"), [CORNERS, SCORES],
         (_table([[0, 3], [0, 0], [1, 2], [1, 5]], 2)[None], np.array([[0.95, 0.9, 0.95, 0.9] + [0] * 8]), np.array([4]))),
    case("all_class-no-overlap-allowed", lambda b, s: vision.all_class_non_max_suppression(b, s, 2, 0.0, 0.0), [CORNERS, SCORES],
         (_table([], 3), np.array([0]))),
    _regular(),
]

MAP = np.zeros((1, 1, 2, 3), np.float32)
ANCHORS = np.array([[[0.1, 0.1, 0.3, 0.3], [0.5, 0.5, 0.9, 0.7], [0.0, 0.2, 0.4, 0.4]]], np.float32)
PROBS = np.array([[[0.1, 0.8, 0.3], [0.7, 0.1, 0.0005], [0.2, 0.1, 0.0006]]], np.float32)
OFFSETS = np.array([[1, -1, 0.5, 0, 0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4]], np.float32)


def _transform() -> Case:
    half_w = np.exp(0.1) * 0.2 / 2
    box = [0.2 + 0.02 - half_w, 0.2 - 0.02 - 0.1, 0.2 + 0.02 + half_w, 0.2 - 0.02 + 0.1]
    second = [0, 0.1, 0.5, 0.5, 0.9, 0.7]  # equal scores: the first class
    want = np.full((1, 3, 6), -1.0)
    want[0, 0], want[0, 1] = [0, 0.7, *box], second
    return case("multibox_transform_loc", lambda c, o, a: vision.multibox_transform_loc(c, o, a), [PROBS, OFFSETS, ANCHORS], (want, np.array([2])))


def _prior() -> Case:
    want = []
    for i in range(2):
        for j in range(3):
            y, x = (i + 0.5) / 2, (j + 0.5) / 3
            for w, h in ((0.3 * 2 / 3 / 2, 0.15), (0.5 * 2 / 3 / 2, 0.25), (0.3 * 2 / 3 * np.sqrt(2) / 2, 0.3 / np.sqrt(2) / 2)):
                want.append([x - w, y - h, x + w, y + h])
    return case("multibox_prior", lambda p: vision.multibox_prior(p, (0.3, 0.5), (1, 2)), [MAP], np.array(want)[None])


FEATURES = R.standard_normal((2, 3, 7, 6)).astype(np.float32)
ROIS = np.array([[0, 0, 0, 5, 6], [1, 2.5, 1.5, 9.5, 11.0], [1, -3, -2, 2, 2], [0, 4, 4, 4, 4]], np.float32)


def _sample(image: np.ndarray, y: float, x: float) -> np.ndarray:
    rows, columns = image.shape[1:]
    if not (-1 <= y <= rows and -1 <= x <= columns):
        return np.zeros(3)
    y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    i, j = int(y), int(x)
    a, b = min(i + 1, rows - 1), min(j + 1, columns - 1)
    return (image[:, i, j] * (1 - (x - j)) + image[:, i, b] * (x - j)) * (1 - (y - i)) + (image[:, a, j] * (1 - (x - j)) + image[:, a, b] * (x - j)) * (y - i)


def _roi_align(ratio: int, mode: str, layout: str = "NCHW", scale: float = 0.5) -> Case:
    want = np.zeros((4, 3, 2, 3))
    for n, roi in enumerate(ROIS.astype(np.float64)):
        x1, y1, x2, y2 = roi[1:] * scale
        bh, bw = max(y2 - y1, 1) / 2, max(x2 - x1, 1) / 3
        gh, gw = (ratio, ratio) if ratio > 0 else (int(np.ceil(bh)), int(np.ceil(bw)))
        for i, j in np.ndindex(2, 3):
            values = [_sample(FEATURES[int(roi[0])], y1 + (i + (p + 0.5) / gh) * bh, x1 + (j + (q + 0.5) / gw) * bw) for p in range(gh) for q in range(gw)]
            want[n, :, i, j] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    data = FEATURES if layout == "NCHW" else FEATURES.transpose(0, 2, 3, 1).copy()
    return case(f"roi_align-{ratio}-{mode}-{layout}", lambda d, r: vision.roi_align(d, r, (2, 3), scale, ratio, layout, mode), [data, ROIS],
                want if layout == "NCHW" else want.transpose(0, 2, 3, 1))


def _roi_pool() -> Case:
    want = np.zeros((4, 3, 2, 2))
    for n, roi in enumerate(ROIS):
        x1, y1, x2, y2 = (int(np.sign(v) * np.floor(abs(v) + 0.5)) for v in roi[1:])
        h, w = max(y2 - y1 + 1, 1) / 2, max(x2 - x1 + 1, 1) / 2
        for i, j in np.ndindex(2, 2):
            rows = range(max(int(np.floor(i * h)) + y1, 0), min(int(np.ceil((i + 1) * h)) + y1, 7))
            columns = range(max(int(np.floor(j * w)) + x1, 0), min(int(np.ceil((j + 1) * w)) + x1, 6))
            if len(rows) and len(columns):
                want[n, :, i, j] = FEATURES[int(roi[0])][:, rows.start:rows.stop, columns.start:columns.stop].max((1, 2))
    return case("roi_pool", lambda d, r: vision.roi_pool(d, r, (2, 2), 1.0), [FEATURES, ROIS], want)


def _reorg(x: np.ndarray, s: int) -> Case:
    """Darknet's loops."""
    n, c, h, w = x.shape
    flat, out, groups = x.reshape(-1), np.zeros(x.size, x.dtype), c // (s * s)
    for b, k, j, i in np.ndindex(n, c, h, w):
        column, row = i * s + (k // groups) % s, j * s + (k // groups) // s
        out[i + w * (j + h * (k + c * b))] = flat[column + w * s * (row + h * s * (k % groups + groups * b))]
    return case(f"yolo_reorg-{x.shape}-{s}", lambda p: vision.yolo_reorg(p, s), [x], out.reshape(n, c * s * s, h // s, w // s))


ALL = NMS + ALL_CLASS + [_transform(), _prior(), _roi_align(2, "avg"), _roi_align(-1, "avg"), _roi_align(2, "max"), _roi_align(-1, "avg", "NHWC"), _roi_pool(),
                         _reorg(R.standard_normal((2, 4, 4, 6)).astype(np.float32), 2), _reorg(R.standard_normal((1, 9, 3, 3)).astype(np.float32), 3)]
