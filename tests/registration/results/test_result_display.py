"""Results compare, print as one line, and show as a table; a bar for who asks for one."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import DRIFT, movie


@pytest.fixture(scope="module")
def result():
    return xc.estimate_shifts(np.concatenate([movie(), np.zeros((1, 40, 48), np.uint16)]), max_shift=6)


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows, self._inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._inside = tag == "td"
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data):
        if self._inside:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag):
        self._inside = False


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


def test_how_far_frames_moved_is_said_of_those_to_trust(result):
    flags = (*result.flags[:1], ("edge",), ("edge",), ("edge",), *result.flags[4:])
    assert "5 frames, 1 trusted, largest shift 0.00 px, ref" in repr(dataclasses.replace(result, flags=flags))
    blind = dataclasses.replace(result, flags=(("flat",),) * 5)
    assert repr(blind) == f"ShiftResult(5 frames, none trusted, reference {result.reference}, {result.engine})"


def test_it_shows_as_a_table(result):
    rows = Cells(result._repr_html_()).rows[1:]
    assert len(rows) == 5
    for row, shift in zip(rows[:4], DRIFT, strict=True):
        np.testing.assert_allclose([float(row[1]), float(row[2])], shift, atol=0.02)
    assert "flat" in rows[4][-1]
    long = xc.estimate_shifts(movie((16, 20), drift=[(0, 0)] * 60), max_shift=2)
    numbers = [row[0] for row in Cells(long._repr_html_()).rows[1:]]
    assert len(numbers) == 25
    assert (numbers[0], numbers[11], numbers[13], numbers[-1]) == ("0", "11", "48", "59")


def test_a_bar_is_shown_for_true_and_a_callable_is_called():
    code = (
        "import numpy as np, xcorr_app as xc; from tests.batch.movies import movie;"
        "xc.estimate_shifts(movie(), max_shift=6, progress={});"
        "xc.estimate_motion(movie(), 'translation', progress={})"
    )
    shown = [
        subprocess.run([sys.executable, "-c", code.format(on, on)], capture_output=True, text=True, check=True).stdout
        for on in ("True", "False")
    ]
    assert "4/4" in shown[0]
    assert shown[1] == ""
    told = []
    xc.estimate_shifts(movie(), max_shift=6, progress=lambda *step: told.append(step))
    assert ("measure", 4, 4) in told


def test_notes_go_to_the_log(caplog):
    frames = movie().astype(np.float32)
    frames[1, 3, 4] = np.nan
    with caplog.at_level(logging.INFO, logger="xcorr_app"):
        found = xc.estimate_shifts(np.stack([*frames] * 3), "pairs:2", smooth_time=3, max_shift=6)
    assert found.notes
    assert [record.message for record in caplog.records if record.name == "xcorr_app"] == list(found.notes)
