"""Parameter files: upstream's layout byte by byte, round trips, and refusal of damaged data."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from anchorleg.runtime import (
    array, load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file,
)
from anchorleg.runtime.params import load_ndarray, save_ndarray
from anchorleg.support.errors import ArtifactError

PARAMS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.array(3, np.int64), "mask": np.array([True, False]),
    "half": np.arange(3).astype(ml_dtypes.bfloat16), "nothing": np.zeros((0, 5), np.uint8), "ñ": np.float64(1.5),
}


def test_bytes_are_upstreams():
    data = bytes(save_param_dict({"ab": np.array([[1, 2]], np.int16)}))
    expected = (
        struct.pack("<QQ", 0xF7E58D4F05049CB7, 0) + struct.pack("<Q", 1) + struct.pack("<Q", 2) + b"ab"
        + struct.pack("<Q", 1) + struct.pack("<QQ", 0xDD5E40F096B4A13F, 0) + struct.pack("<ii", 1, 0)
        + struct.pack("<i", 2) + struct.pack("<BBH", 0, 16, 1) + struct.pack("<qq", 1, 2) + struct.pack("<q", 4)
        + struct.pack("<hh", 1, 2)
    )
    assert data == expected


def test_round_trip(tmp_path):
    save_param_dict_to_file(PARAMS, tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == bytes(save_param_dict(PARAMS))
    loaded = load_param_dict_from_file(tmp_path / "p")
    assert list(loaded) == list(PARAMS)
    for name, value in PARAMS.items():
        assert loaded[name].numpy().dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(loaded[name].numpy(), value)
    assert load_param_dict(save_param_dict({})) == {}


def test_strided_tensors_are_saved_in_order():
    value = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(load_ndarray(save_ndarray(array(value))).numpy(), value)
    np.testing.assert_array_equal(load_param_dict(save_param_dict({"x": value}))["x"].numpy(), value)


def test_every_truncation():
    data = bytes(save_param_dict(PARAMS))
    for cut in range(len(data)):
        with pytest.raises(ArtifactError):
            load_param_dict(data[:cut])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_altered_bytes_never_crash(data):
    raw = bytearray(save_param_dict(PARAMS))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        load_param_dict(raw)
    except ArtifactError as err:
        assert "damaged at byte" in str(err)


@given(st.binary(max_size=200))
def test_noise(data):
    with pytest.raises(ArtifactError):
        load_param_dict(data)


def test_huge_claims_allocate_nothing():
    head = struct.pack("<QQ", 0xF7E58D4F05049CB7, 0)
    with pytest.raises(ArtifactError, match="names cannot fit"):
        load_param_dict(head + struct.pack("<Q", 1 << 62))
    tensor = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, 2, 2, 32, 1) + struct.pack("<qqq", 1 << 20, 1 << 20, 4 << 40)
    with pytest.raises(ArtifactError, match="tensor data needs"):
        load_ndarray(tensor)


def test_missing_file(tmp_path):
    with pytest.raises(ArtifactError, match="cannot read"):
        load_param_dict_from_file(tmp_path / "none")
