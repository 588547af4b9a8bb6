"""The benchmarks of registration measure what they say: true shifts are true, every count can go wrong."""

import json

import numpy as np
import pytest

from benchmarks import accuracy, conditions
from benchmarks.board import command, measure, real, report, scenes, textures
from benchmarks.board.cases import CASES
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


def test_accuracy_is_measured_beside_peers():
    name = "OpenCV template + parabola"
    arguments = accuracy.parse_arguments(["--frames", "2", "--snr", "1"])
    records = list(accuracy.measure(arguments, {name: accuracy.PEERS[name]}))
    assert [record["scene"] for record in records] == ["spots", "speckle"]
    for record in records:
        assert 0 < record["methods"]["xcorr"]["rms"] < record["methods"][name]["rms"] < 0.2
        assert record["methods"]["xcorr"]["frames"] == 2
    assert accuracy.table(records).row_count == 8


def test_a_texture_moves_as_said(rng):
    texture = scenes.Texture(rng, 60)
    still, moved = texture.along(np.array([(0.0, 0.0), (3.0, -5.0)]))
    np.testing.assert_allclose(moved[3:, :-5], still[:-3, 5:], atol=1e-9)
    aside = texture.at(np.zeros(2), np.full(60, -5.0))
    np.testing.assert_allclose(aside[:, :-5], still[:, 5:], atol=1e-9)


@pytest.mark.parametrize(("kind", "alike"), [("noise", 0.98), ("0.5", 0.98), ("box", 0.3), ("speckle", 0.8)])
def test_fine_textures_move_as_said(rng, kind, alike):
    """Aliased ones cannot be moved back by half a pixel, but are nowhere else as much alike."""
    for series in textures.pairs(rng, kind, 50.0)[:2]:
        steps = series.shifts[1]
        np.testing.assert_array_equal(steps % 1, 0.5)
        first, second = series.frames.astype(float) - series.frames.mean()
        inner, scores = np.s_[30:-30, 30:-30], {}
        for beside in (-0.5, 0.0, 0.5):
            ramps = [
                np.exp(-2j * np.pi * (s + beside) * np.fft.fftfreq(n)) for s, n in zip(steps, (192, 192), strict=True)
            ]
            back = np.fft.ifft2(np.fft.fft2(second) * ramps[0][:, None] * ramps[1]).real
            scores[beside] = np.corrcoef(back[inner].ravel(), first[inner].ravel())[0, 1]
        assert max(scores, key=scores.get) == 0
        assert scores[0] > alike


def test_names_are_one_each_and_what_is_asked_is_measured():
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.asked_of in case.ways for case in CASES if case.asked)


def found(error, sigma, flagged, foreign):
    error = np.array(error, float)
    said = np.array(sigma, float), np.array(flagged, bool), np.array(foreign, bool)
    return measure.Found(error, error + 0.1, *said, np.full(len(error), 0.5))


def test_figures_of_known_errors():
    rows = [(0.1, -0.05), (0.3, 0.1), (0.1, 0.9), (3, 0), (0.01, 0.02), (np.nan, np.nan), (0.3, 0)]
    figures = measure.figures(found(rows, 7 * [(0.1, 0.2)], [0, 0, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1, 0]))
    assert (figures["frames"], figures["gross"], figures["flagged"]) == (6, 1, 3)
    assert (figures["right"], figures["needless"], figures["missed"]) == (1, 1, 2)
    kept = np.array([each for each in rows if max(np.abs(each)) < 2])
    assert figures["rms"] == pytest.approx(np.sqrt(np.mean(kept**2)))
    assert figures["largest"] == 3
    assert figures["applied_largest"] == pytest.approx(3.1)
    assert figures["within_1"] == pytest.approx(4 / 6)
    assert figures["within_2"] == pytest.approx(4 / 6)


def test_a_case_is_measured_in_its_ways():
    case = next(case for case in CASES if case.name == "still/scene/5")
    seed = command.of_seed(case.name, 0)
    rows = {way: command.row_of(case, way, [seed[way]]) for way in case.ways}
    assert [rows[way]["frames"] for way in case.ways] == [19, 3]
    for row in rows.values():
        assert 0 < row["rms"] < 0.1
        assert row["passes"] > 1
        assert row["raised"] == []
    assert rows["first"]["over_base"] > 0.5
    assert rows["pair"]["over_base"] is None
    again = command.of_seed(case.name, 0)["pair"]["found"]
    np.testing.assert_array_equal(again.error, seed["pair"]["found"].error)


def test_what_cannot_be_measured_is_told():
    series = scenes.Series(np.zeros((2, 8, 8), complex), np.array([(0, 0), (9.0, 0)]))
    measured = measure.measure("first", [series])
    row = command.row_of(CASES[0], "first", [measured])
    assert row["missed"] == 1
    assert any("raised" in text for text in row["fails"])


def test_absent_sets_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(real, "DATA", tmp_path)
    case = real._case("pc12", real._cells)
    assert case.series(0) == []
    monkeypatch.setitem(command._ALL, "real/pc12", case)
    assert command.of_seed("real/pc12", 0) == {}


def test_a_small_run(tmp_path, capsys):
    path = tmp_path / "board.json"
    command.main(["--cases", "frames/beyond", "still/scene/5", "--seeds", "1", "--json", str(path)])
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert read["environment"]["cpu"]
    rows = read["rows"]
    assert [(row["case"], row["way"]) for row in rows] == [
        ("frames/beyond the window", "first"),
        ("still/scene/5", "first"),
        ("still/scene/5", "pair"),
    ]
    beyond, still, _ = rows
    assert beyond["right"] > 0
    assert still["rms"] < 0.05
    assert "beyond the window" in capsys.readouterr().out
    before = {**still, "rms": still["rms"] / 2, "needless": 5}
    assert list(report.compared([still], [still])) == []
    [(name, worse, better)] = report.compared([still], [before])
    assert name == "still/scene/5 first"
    assert [text.split()[0] for text in (*worse, *better)] == ["rms", "needless"]
    assert report.failures({**still, "asked": {"rms": 1e-4}})[0].startswith("rms")
