"""The accuracy benchmark measures what it says: true shifts are true, and every count can go wrong."""

import numpy as np
import pytest

from benchmarks import accuracy, conditions
from benchmarks.conditions import CONDITIONS, make_series
from benchmarks.scenes import LARGEST_DRIFT, SIZE

pytest.importorskip("cv2")


@pytest.mark.share(3)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_scene_moves_as_said(condition):
    series = make_series("spots", 20.0, 2, seed=3, condition=condition)
    clean = conditions._clean("spots", condition, 2, 3, LARGEST_DRIFT)
    assert series.frames.shape == (3, SIZE, SIZE)
    largest = conditions.LATTICE_DRIFT if condition == "lattice" else LARGEST_DRIFT
    np.testing.assert_allclose(np.abs(series.shifts).max(axis=0), largest)
    for frame in range(3):
        np.testing.assert_allclose(clean.scene.sample(*-series.shifts[frame]), clean.scene.sample(*clean.path[frame]))
    assert np.isnan(series.bound_known_scene) == (condition != "plain")


def test_a_quick_run_measures(monkeypatch):
    arguments = accuracy.parse_arguments(["--quick", "--scenes", "spots", "--conditions", "plain", "hot"])
    arguments.frames, arguments.snr = 2, [1.0]
    records = list(accuracy.measure(arguments, {"verify": "none"}))
    assert [r["condition"] for r in records] == ["plain", "hot"]
    for record in records:
        assert 0 < record["methods"]["xcorr"]["rms"] < 0.1
        assert record["trust"]["errors"] == 4
    hot = "# hot or dead pixels, always at the same places, were replaced by their neighbours for measuring"
    assert [record["notes"] for record in records] == [{}, {hot: 1}]
    assert accuracy.error_table("spots", records).row_count == 4
    assert accuracy.trust_table(records).row_count == 4
