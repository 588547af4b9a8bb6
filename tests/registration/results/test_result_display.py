"""Results compare, print as one line, and show as a table; a bar for who asks for one."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

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
