"""What is said of the patches of each frame, number by number."""

import csv

import numpy as np
import pytest

from xcorr_app.batch.align.by_patches import _bends, _field_csv, _frames_csv, _median_known, _seen_by_all
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.warping.field import Field

COUNT, ROWS, COLUMNS = 4, np.array([0.0, 7.5, 31.0]), np.array([0.0, 12.25, 20.5, 40.0])


class Names:
    """Where frames come from."""

    def origin(self, frame):
        return f"{frame // 2}.tif", frame % 2


@pytest.fixture
def field(rng):
    size = COUNT, ROWS.size, COLUMNS.size
    shifts = rng.normal(size=(*size, 2))
    shifts[2] *= 5
    sigma, significance = rng.uniform(0.01, 0.5, (*size, 2)), rng.uniform(3, 90, size)
    significance[1, 0, :2] = np.nan
    significance[3] = np.nan
    return Field(ROWS, COLUMNS, shifts, sigma, rng.random(size) < 0.6, significance)


def result_of(field, flags=((), ("uncertain",), (), ("flat", "edge"))):
    matrices = np.tile(np.eye(3), (COUNT, 1, 1))
    score = np.array([0.5, 0.25, 0.125, np.nan])
    overlap = np.array([1.0, 0.75, 0.5, 0.0])
    nothing = np.zeros((COUNT, 2))
    return MotionResult("patches", matrices, score, nothing, nothing[:, 0], overlap, flags, (32, 41), "", {}, (), field)


def test_columns_of_quality_are_what_their_names_say(field):
    lines = list(csv.DictReader(_frames_csv(Names(), result_of(field), field).splitlines()))
    assert [(line["frame"], line["source"], line["page"]) for line in lines] == [
        ("0", "0.tif", "0"), ("1", "0.tif", "1"), ("2", "1.tif", "0"), ("3", "1.tif", "1")
    ]  # fmt: skip
    assert [line["flags"] for line in lines] == ["", "uncertain", "", "flat|edge"]
    assert [line["score"] for line in lines] == ["0.500000", "0.250000", "0.125000", ""]
    assert [line["overlap"] for line in lines] == ["1.000000", "0.750000", "0.500000", "0.000000"]
    assert lines[3]["median_significance"] == ""
    for t, line in enumerate(lines):
        nodes = [(i, j) for i in range(3) for j in range(4)]
        mean = sum(field.shifts[t, i, j] for i, j in nodes) / 12
        away = np.array([np.linalg.norm(field.shifts[t, i, j] - mean) for i, j in nodes])
        told = {
            "trusted_patches": field.trusted[t].sum() / 12,
            "rms_bend": (sum(away**2) / 12) ** 0.5,
            "max_bend": max(away),
            "median_sigma": np.median([*field.sigma[t, ..., 0].ravel(), *field.sigma[t, ..., 1].ravel()]),
            "max_sigma": field.sigma[t].max(),
        }
        if t < 3:
            known = sorted(value for value in field.significance[t].ravel() if value == value)
            told["median_significance"] = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
        for name, value in told.items():
            assert float(line[name]) == pytest.approx(value, abs=1e-6), name


def test_every_node_of_every_frame_has_a_line(field, rng):
    field.shifts[1, 2, 3] = np.nan
    applied = rng.normal(size=field.shifts.shape)
    lines = list(csv.DictReader(_field_csv(field, applied).splitlines()))
    assert len(lines) == COUNT * 12
    for n, line in enumerate(lines):
        t, i, j = np.unravel_index(n, (COUNT, 3, 4))
        assert (line["frame"], line["row"], line["column"]) == (str(t), f"{ROWS[i]:g}", f"{COLUMNS[j]:g}")
        assert line["trusted"] == str(int(field.trusted[t, i, j]))
        numbers = (*field.shifts[t, i, j], *field.sigma[t, i, j], *applied[t, i, j])
        for name, value in zip(("dy", "dx", "sigma_y", "sigma_x", "applied_dy", "applied_dx"), numbers, strict=True):
            assert line[name] == ("" if np.isnan(value) else f"{value:.6f}")


def test_bends_are_of_frames_that_are_trusted(field):
    trusted = np.array([True, True, False, True])
    away = field.shifts - field.shifts.mean(axis=(1, 2), keepdims=True)
    size = np.sqrt((away**2).sum(axis=3))
    found = _bends(field, trusted)
    assert (found.rows, found.columns) == (tuple(ROWS), tuple(COLUMNS))
    np.testing.assert_allclose(found.size, np.median(size[trusted], axis=0), atol=6e-5)
    most = max((0, 1, 3), key=lambda t: (size[t] ** 2).mean())
    assert found.frame == most
    np.testing.assert_allclose(found.arrows, away[most], atol=6e-5)
    # That of the largest bends is the one that bends most where it is trusted.
    assert _bends(field, np.ones(COUNT, dtype=bool)).frame == 2
    assert _bends(field, np.zeros(COUNT, dtype=bool)) is None
    # A frame that does not bend at all may still be the only one.
    field.shifts[0] = 3.0
    alone = _bends(field, np.array([False, False, False, True]))
    assert alone.frame == 3
    field.shifts[:] = 1.0
    assert _bends(field, np.array([False, True, False, False])).frame == 1


def test_medians_leave_out_what_is_not_known():
    values = np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [5.0, 9.0, 6.0]])
    np.testing.assert_array_equal(_median_known(values), [2.0, np.nan, 6.0])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((0.0, 0.0), (0.0, 0.0), (slice(0, 30), slice(0, 40))),
        ((-2.5, 1.0), (3.2, 4.0), (slice(4, 27), slice(4, 40))),
        ((-7.0, -9.5), (-1.0, -0.1), (slice(0, 23), slice(0, 30))),
        ((-14.0, -20.0), (14.0, 20.0), (slice(14, 16), slice(20, 21))),
        ((-14.5, -20.5), (14.5, 20.5), (slice(15, 16), slice(20, 21))),
    ],
)
def test_what_every_frame_shows(low, high, expected):
    shifts = np.zeros((3, 2, 2, 2)) + np.array(low)
    shifts[1, 1, 0], shifts[2] = high, np.nan
    assert _seen_by_all(shifts, (30, 40)) == expected
    assert _seen_by_all(np.full((2, 2, 2, 2), np.nan), (30, 40)) == (slice(0, 30), slice(0, 40))
