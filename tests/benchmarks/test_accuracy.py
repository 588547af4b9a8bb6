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


@pytest.mark.parametrize("scene", ["spots", "speckle"])
def test_conditions_change_what_they_say(scene):
    views = {name: conditions._clean(scene, name, 2, 1, LARGEST_DRIFT) for name in ("plain", "pattern", "foreground")}
    plain = views["plain"].views
    added = views["pattern"].views - plain
    np.testing.assert_allclose(added, np.broadcast_to(added[:1], added.shape), atol=1e-9)
    assert added[0].std() == pytest.approx(1, abs=0.15)
    covered = np.abs(views["foreground"].views - plain) > 1e-9
    assert (np.abs(covered.mean(axis=(1, 2)) - 0.25) < 0.02).all()
    hot, flickering = (conditions._clean(scene, name, 2, 1, LARGEST_DRIFT).hot for name in ("hot", "flickering"))
    for pixels in (hot, flickering):
        np.testing.assert_array_equal((pixels > 0).sum(axis=(1, 2)), 20)
    np.testing.assert_array_equal(hot[0] > 0, hot[1] > 0)
    assert ((flickering[0] > 0) != (flickering[1] > 0)).any()


def test_blinking_is_of_spots_alone():
    with pytest.raises(ValueError, match="no condition"):
        make_series("speckle", 1.0, 2, condition="blinking")
    assert ("speckle", "lattice") not in accuracy.cases(["spots", "speckle"], [*CONDITIONS])


def test_what_turns_or_grows_does_so_about_the_centre():
    """A spot far from it is found where a turn of 1.5 degrees, or a growth of 2 %, and the shift put it."""
    angle, middle = np.deg2rad(1.5), (SIZE - 1) / 2
    for condition, change in (
        ("turning", np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])),
        ("growing", 1.02 * np.eye(2)),
    ):
        clean = conditions._clean("spots", condition, 2, 1, 3.0)
        first, last = (view / view.max() for view in clean.views[[0, 2]])
        place = np.array(np.unravel_index(np.argmax(first[380:480, 380:480]), (100, 100))) + 380
        expected = middle + change @ (place - middle) + clean.path[2]
        y, x = np.rint(expected).astype(int)
        near = last[y - 4 : y + 5, x - 4 : x + 5]
        assert np.abs(np.array(np.unravel_index(near.argmax(), near.shape)) - 4).max() <= 1


def found(error, sigma, trusted):
    flags = [() if good else ("uncertain",) for good in trusted]
    return accuracy.Found(np.array(error, float), np.array(sigma, float), np.array(trusted, bool), flags)


def test_scores_and_trust_of_known_errors():
    result = found([(0.1, -0.1), (0.3, 0.1), (0.1, 0.9), (3, 0), (np.nan, 0)], 5 * [(0.1, 0.2)], [1, 0, 1, 0, 1])
    score, trust = accuracy.score(result), accuracy.trust(result)
    assert score["gross"] == 2
    assert score["rms"] == pytest.approx(np.sqrt((0.01 + 0.01 + 0.09 + 0.01 + 0.01 + 0.81) / 6))
    assert (trust["good"], trust["good_flagged"], trust["bad"], trust["bad_flagged"]) == (2, 1, 3, 1)
    assert (trust["errors"], trust["within_1"], trust["within_2"]) == (6, 4, 4)
    assert trust["flags"] == {"uncertain": 2}
    assert accuracy.pooled([result, result]).error.shape == (10, 2)


def test_limits_follow_plain_where_they_are_multiples_of_it():
    def record(scene, condition, rms):
        return {"scene": scene, "condition": condition, "drift": 20.0, "snr": 20.0, "methods": {"xcorr": {"rms": rms}}}

    records = [record("speckle", "plain", 0.001), record("speckle", "gradient", 0.002), record("spots", "lattice", 1.0)]
    limits = [accuracy.limit(one, records) for one in records]
    assert limits[0] is None
    np.testing.assert_allclose(limits[1:], [0.0015, 0.0024])
    assert accuracy.limit(records[1], records[1:]) is None
    assert accuracy.limit(records[2] | {"drift": 1.0}, records) is None


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


def test_what_is_not_known_is_null_in_json():
    assert accuracy.known({"a": {"b": float("nan"), "c": 1.5}, "d": "nan"}) == {"a": {"b": None, "c": 1.5}, "d": "nan"}
