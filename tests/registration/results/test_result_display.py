"""Results compare, print as one line, and show as a table; a bar for who asks for one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import movie


@pytest.fixture(scope="module")
def result():
    return xc.estimate_shifts(np.concatenate([movie(), np.zeros((1, 40, 48), np.uint16)]), max_shift=6)


def test_results_are_equal_but_for_what_decided(result, tmp_path):
    result.save(tmp_path / "r.npz")
    assert result == xc.ShiftResult.load(tmp_path / "r.npz")  # with NaN of the flat frame
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray) and value.size:
            other = value.copy()
            other.flat[0] = 7
            assert result != dataclasses.replace(result, **{field.name: other}), field.name
    assert result != dataclasses.replace(result, engine="other")
    assert result != "result"
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


def test_it_prints_as_one_line(result):
    text = repr(result)
    assert "\n" not in text
    assert len(text) < 120
    assert "5 frames, 4 trusted, largest shift 3.00 px" in text
