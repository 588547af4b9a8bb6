"""Results compare, print as one line, and show as a table; a bar for who asks for one."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
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
    assert "5 frames, 4 trusted, largest shift 3.61 px, median standard error 0.0" in text


def test_every_result_has_a_length_a_summary_a_table_and_a_drawing(result):
    mpl.use("agg")
    field = xc.displacement_field(*movie((64, 64))[:2], window=16, step=8)
    assert "7 x 7 points, 0 replaced, 0 masked, largest displacement " in field.summary()
    motion = xc.estimate_motion(movie(), "translation")
    quality = xc.assess(movie(), xc.apply_shifts(movie(), motion.shifts), None)
    assert quality.summary().startswith("correlation 0.")
    pairs = xc.find_shifts(movie()[0], movie(), "one-to-many", max_shift=6)
    assert pairs.summary().startswith("4 pairs, largest shift 3.6")
    for shown, length in ((pairs, 4), (result, 5), (motion, 4), (field, 49), (quality, None)):
        table = shown._repr_html_()
        assert shown.summary() in table
        assert table.count("<tr>") > 3
        assert length is None or len(shown) == length
    assert pairs.plot().collections[0].get_offsets().shape == (4, 2)
    axes = result.plot()
    rows, doubted, columns, _ = (line.get_xydata() for line in axes.lines)
    np.testing.assert_array_equal(rows[:4, 1], result.shifts[:4, 0])
    np.testing.assert_array_equal(columns[:4, 1], result.shifts[:4, 1])
    assert doubted[:, 0].tolist() == [4]
    assert motion.plot(axes) is axes
    assert field.plot(axes).collections[-1].N == 49
