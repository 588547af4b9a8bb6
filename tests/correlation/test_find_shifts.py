"""Shifts without planes: the peaks of the planes of the definition, whichever way they are found."""

from types import SimpleNamespace

import numpy as np
import pytest

import xcorr_app as xc
from tests.correlation import plain
from tests.kernels.correlation_definition import records_by_definition
from xcorr_app import FoundShifts, KernelOptions, ShiftWindow, find_shifts
from xcorr_app.correlation import pair_peaks
from xcorr_app.correlation.forms import FORMS
from xcorr_app.correlation.pair_peaks import decide_shifts, peaks_by_kernels, peaks_by_planes
from xcorr_app.correlation.plane_peaks import peaks_of_planes
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import H200

WINDOW = ShiftWindow(-5, 4, -6, 7)


def texture(rng, shape):
    """Noise that is smooth enough to have a few clear hills."""
    spectrum = np.fft.fft2(rng.normal(size=shape))
    radius = np.hypot(*np.meshgrid(np.fft.fftfreq(shape[-2]), np.fft.fftfreq(shape[-1]), indexing="ij"))
    return np.fft.ifft2(spectrum * np.exp(-((radius / 0.15) ** 2))).real * 10


def peaks_by_definition(left, right, form, normalization):
    def of_pair(f, g):
        plane = plain.sums(f, g, WINDOW) if normalization == "none" else plain.zncc(f, g, WINDOW, 0.25)
        row, column = np.unravel_index(np.nanargmax(plane), plane.shape)
        rivals = [
            plane[y, x]
            for y in range(1, plane.shape[0] - 1)
            for x in range(1, plane.shape[1] - 1)
            if max(abs(y - row), abs(x - column)) >= 3 and plane[y, x] >= np.nanmax(plane[y - 1 : y + 2, x - 1 : x + 2])
        ]
        second = max(rivals, default=-np.inf)
        ratio = plane[row, column] / second if second > 0 else np.inf
        return np.array([row + WINDOW.dy_min, column + WINDOW.dx_min, plane[row, column], ratio])

    return plain.every_pair(left, right, form, of_pair)


@pytest.mark.parametrize("engine", ["auto", "definition"])
@pytest.mark.parametrize("normalization", ["zncc", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_definition(rng, form, normalization, engine):
    left, right = plain.operands(form, (23, 26), (21, 27), lambda shape: texture(rng, shape))
    found = find_shifts(left, right, form, WINDOW, normalization=normalization, engine=engine)
    expected = peaks_by_definition(left, right, form, normalization)
    assert isinstance(found, FoundShifts)
    assert found.score.shape == expected.shape[:-1]
    np.testing.assert_array_equal(found.peak, expected[..., :2])
    np.testing.assert_allclose(found.score, expected[..., 2], rtol=1e-9)
    np.testing.assert_allclose(found.ratio, expected[..., 3], rtol=1e-9)


@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
@pytest.mark.parametrize("subpixel", ["gaussian", "dft", "none"])
def test_the_same_as_in_the_planes(rng, normalization, subpixel):
    left, right = texture(rng, (3, 24, 26)), texture(rng, (2, 24, 26))
    found = find_shifts(left, right, "n-to-m", WINDOW, normalization=normalization, subpixel=subpixel)
    planes = xc.cross_correlate(left, right, "n-to-m", WINDOW, normalization=normalization)
    expected = peaks_of_planes(planes, WINDOW, subpixel)
    for name in ("shift", "ratio", "peak", "on_edge"):
        values = getattr(found, name)
        np.testing.assert_allclose(values.reshape(getattr(expected, name).shape), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(found.score.ravel(), expected.value)


def test_of_equal_peaks_the_nearest_to_zero(rng):
    lattice = np.tile(rng.normal(size=(4, 4)), (6, 6))
    found = find_shifts(lattice, lattice, max_shift=9, min_overlap=0.1)
    assert found.peak.tolist() == [0, 0]
    assert found.ratio == pytest.approx(1)


def test_where_no_shift_counts(rng):
    flat = np.ones((9, 9))
    found = find_shifts(flat, rng.normal(size=(9, 9)))
    assert np.isnan(found.score)
    assert np.isnan(found.shift).all()
    assert not found.on_edge
    # Sums of negative products: zeros beyond the matrices would be higher.
    outside = find_shifts(flat, -flat, max_shift=ShiftWindow(-12, 12, 5, 12), normalization="none")
    assert abs(outside.peak[0]) == 8
    assert outside.peak[1] == 8
    assert outside.score == pytest.approx(-1)
    assert np.isnan(find_shifts(flat, flat, max_shift=ShiftWindow(9, 12, 0, 3), normalization="none").score)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"subpixel": "phase"}, ArgumentError, "unknown subpixel method 'phase'"),
        ({"normalization": "ncc"}, ArgumentError, "unknown normalization"),
        ({"form": "n-to-m"}, ShapeError, "needs 3 axes"),
        ({"left": ["a"]}, DataTypeError, "not numbers"),
        ({"left": np.full((5, 5), np.inf)}, ArgumentError, "left holds NaN or infinite"),
        ({"right": np.full((5, 5), np.nan)}, ArgumentError, "right holds NaN or infinite"),
        ({"left": np.full((5, 5), 3e38, "f4"), "normalization": "none"}, ArgumentError, "do not fit float32"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, error, message):
    square = np.full((5, 5), 3e38, np.float32) * np.eye(5, dtype=np.float32)
    with pytest.raises(error, match=message):
        find_shifts(**{"left": square, "right": square, **arguments})


def many(side, most, count, **batch):
    return Problem((side, side), (side, side), (-most, -most), (2 * most + 1, 2 * most + 1), rights=count, **batch)


@pytest.mark.parametrize(
    ("problem", "how", "name", "by_kernels"),
    [
        (many(64, 16, 16384, lefts=16384), {"normalization": "none"}, "direct:combined", True),
        (many(64, 4, 1), {}, "direct:", True),
        (many(512, 16, 64, rights_per_left=64), {}, "tensor:", True),
        (many(512, 16, 64, rights_per_left=64), {"normalization": "none", "engine": "tensor"}, "tensor:hankel", False),
        (many(512, 16, 64, rights_per_left=64), {"dtypes": ("float64", "float64")}, "fft", False),
        (many(512, 16, 64, rights_per_left=64), {"subpixel": "dft"}, "", False),
        (many(64, 16, 64, lefts=64), {"engine": "fft"}, "fft", False),
        (many(64, 16, 64, lefts=64), {"options": KernelOptions("multi-row")}, "direct:multi-row", False),
        (many(64, 16, 64, lefts=64), {"options": KernelOptions(precision="fp16x2")}, "tensor:", False),
        (many(64, 16, 64, lefts=64), {"options": KernelOptions(precision="fp16")}, "tensor:", True),
        (many(2048, 300, 1), {"engine": "direct"}, "direct:", False),
        (many(64, 16, 64, lefts=64), {"normalization": "phase"}, "fft", False),
        (many(64, 16, 64, lefts=64), {"limits": None}, "fft", False),
    ],
)
def test_what_finds_them(problem, how, name, by_kernels):
    defaults = {"dtypes": ("float32", "float32"), "normalization": "zncc", "engine": "auto", "options": None}
    arguments = {**defaults, "subpixel": "gaussian", "limits": H200, **how}
    decision, found = decide_shifts(problem, arguments.pop("dtypes"), arguments.pop("normalization"), **arguments)
    assert decision.name.startswith(name)
    assert found == by_kernels


class FakeFinder:
    """Records by the definition, some of them marked as what fp16 cannot decide, with a wrong place."""

    def __init__(self, problem, normalize, marked):
        self.problem, self.normalize, self.marked = problem, normalize, marked

    def find(self, lefts, rights, rights_per_left):
        assert rights_per_left == self.problem.rights_per_left
        records = records_by_definition(lefts, rights, self.problem, self.normalize, 12)
        records[self.marked, 0] = -1 - 3
        return SimpleNamespace(get=lambda: records), None


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    "problem",
    [
        Problem((15, 16), (14, 17), (-5, -6), (10, 14), lefts=3, rights=2, rights_per_left=2),
        Problem((15, 16), (14, 17), (-5, -6), (10, 14), lefts=2, rights=6, rights_per_left=3),
    ],
)
def test_what_kernels_leave_open_is_found_by_planes(rng, monkeypatch, problem, normalize):
    lefts = rng.normal(size=(problem.lefts, *problem.left_shape))
    rights = rng.normal(size=(problem.rights, *problem.right_shape))
    finder = FakeFinder(problem, normalize, [1, 4])
    monkeypatch.setattr(pair_peaks, "_finder", lambda *_: finder)
    monkeypatch.setattr(pair_peaks, "current_device", lambda: 0)
    searched = []

    def planes_of(these, those):
        searched.append(np.broadcast_shapes(these.shape[:2], those.shape[:2]))
        how = {"normalization": "zncc" if normalize else "none", "min_overlap": 12 / (14 * 16)}
        window = ShiftWindow(-5, 4, -6, 7)
        if these.shape[0] == those.shape[0]:
            return xc.cross_correlate(these[:, 0], those, "n-to-mn", window, **how)
        return xc.cross_correlate(these[:, 0], those[0], "n-to-m", window, **how)

    found = peaks_by_kernels(
        planes_of, Decision("direct", "combined"), problem, lefts, rights,
        dtypes=("float64", "float64"), normalize=normalize, min_overlap_pixels=12, subpixel="gaussian",
    )  # fmt: skip
    assert searched == [(2, 1)]
    expected = peaks_by_planes(planes_of, problem, lefts, rights, "gaussian")
    np.testing.assert_array_equal(found.peak, expected.peak)
    for name in ("shift", "value", "ratio", "on_edge"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-7)
