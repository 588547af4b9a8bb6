"""Kernels that say all of frames by their peaks, run on the host, against array operations."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.correlation import plain
from tests.kernels.correlation_definition import planes_by_definition
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.kernels.test_correlation_on_host import tables_of_pairs
from xcorr_app.correlation import peaks
from xcorr_app.correlation.normalize import ZNCC, min_overlap_pixels
from xcorr_app.correlation.peaks import find_peaks
from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.subpixel import FLAT, MIN_LOGARITHM, quadratic_terms, refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks import frame_peaks, noise_sums, rated_peak, tile_scatter
from xcorr_app.gpu.peaks.around_peak import SIDE, around_peak_launch
from xcorr_app.gpu.peaks.common_overlap import common_overlap_launch
from xcorr_app.gpu.peaks.frame_peaks import OfReferences, Rules
from xcorr_app.gpu.peaks.rated_peak import RATED_RECORD, RatedPeaks, _ties, rated_peak_launch
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.registration.measuring.match import Planes, find_rated_peaks
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes, Tiles
from xcorr_app.registration.standard_error.significance import Spread, rated, strides_of
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES, MIN_TILES, peak_shapes

NO = (None,) * 3


def on_host(folder, planes, scores, box, tied, zero=None, *, fisher, rate=True):
    """What `rate_peaks` does on a device."""
    count, height, width = planes.shape
    shape = box[0].stop - box[0].start, box[1].stop - box[1].start
    records = guarded(np.full((count, RATED_RECORD), np.nan))
    workspace = guarded(np.full(planes.shape, np.nan))
    of_planes = np.zeros((count, 2), np.int32) if tied is None else tied.astype(np.int32)
    numbers = (height, width, (scores.shape[1] - height) // 2, box[0].start, box[1].start, *shape)
    arrays = guarded(planes), guarded(scores), guarded(of_planes), workspace, records
    launch = rated_peak_launch(count, fisher=fisher, rate=rate)
    run_kernel(folder, launch, arrays, (*numbers, *strides_of(shape), *_ties(tied, zero)))
    assert guards_are_whole(records)
    assert guards_are_whole(workspace)
    found = RatedPeaks.of(records)
    spreads = [Spread(m[:, 0], m[:, 1], m[:, 2:].T, found.samples) for m in np.moveaxis(found.medians, 1, 0)]
    return found, rated(shape, (found.value, spreads[0]), (found.transformed, spreads[1]) if fisher else None)


def same(found, rating, expected):
    for name in ("row", "column", "climbs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("value", "rival", "around", "near"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(rating.z, expected.rating.z, rtol=1e-9)
    np.testing.assert_allclose(rating.false_alarm, expected.rating.false_alarm, rtol=1e-6, atol=1e-300)


def random_planes(rng, shape):
    planes = np.clip(rng.normal(scale=0.2, size=shape), -1, 1)
    planes[0, 3:, 4] = np.nan
    planes[1] = np.round(planes[1], 1)  # many equal values
    planes[2] = np.nan
    planes[3, 0] = 0.99  # climbs beyond the box
    return planes


@pytest.mark.parametrize("shape", [(14, 19), (37, 37), (103, 29)])
@pytest.mark.parametrize("fisher", [True, False])
def test_peaks_and_what_they_are_rated_by(host_builds, rng, shape, fisher):
    planes = random_planes(rng, (5, *shape))
    box = slice(2, shape[0] - 2), slice(2, shape[1] - 2)
    tied = np.tile([shape[0] // 2, shape[1] // 2], (5, 1))
    planes[4, *tied[4]] = planes[4].max()
    expected = find_rated_peaks(Planes(planes, planes, planes, *NO), box, tied, plain=fisher)
    found, rating = on_host(host_builds, planes, planes, box, tied, fisher=fisher)
    same(found, rating, expected)
    assert (found.row[4], found.column[4]) == tuple(tied[4])


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (5, 6), (14, 17)])
@pytest.mark.parametrize("zero", [None, (2, 3), (30, -7)])
def test_peaks_among_equal_values(host_builds, monkeypatch, rng, shape, zero):
    """What `find_peaks` finds of device arrays, as it finds it of the host's, plane by plane."""
    run_on_host(monkeypatch, host_builds, rated_peak)
    for _ in range(5):
        planes = rng.integers(-3, 4, (5, *shape)) + 0.5 * rng.integers(0, 2, (5, *shape))
        planes[rng.random(planes.shape) < 0.2] = np.nan
        begin = [int(rng.integers(0, size)) for size in shape]
        search = tuple(slice(a, int(rng.integers(a, size)) + 1) for a, size in zip(begin, shape, strict=True))
        expected = find_peaks(planes, search, zero)
        with monkeypatch.context() as patch:
            patch.setattr(peaks, "is_device_array", lambda _: True)
            found = find_peaks(planes, search, zero)
        known = np.isfinite(expected.value)
        np.testing.assert_array_equal(found.value, expected.value)
        for name in ("row", "column", "rival"):
            np.testing.assert_array_equal(getattr(found, name)[known], getattr(expected, name)[known], name)


@pytest.mark.parametrize(("sums", "values"), [("float32",) * 2, ("float64",) * 2, ("float64", "float32")])
@pytest.mark.parametrize("batch", [(1, 3, 3), (2, 2, 1), (2, 3, 3)])
def test_scores_of_planes(host_builds, rng, sums, values, batch):
    lefts, rights, per_left = batch
    shapes, window = ((31, 37), (29, 40)), ShiftWindow(-6, 7, -9, 8)
    problem = Problem(*shapes, (window.dy_min, window.dx_min), window.shape, lefts, rights, per_left)
    images = [
        standardize(rng.normal(size=(n, *shape)).astype(np.float32), values).values
        for n, shape in zip((lefts, rights), shapes, strict=True)
    ]
    images[1][0, :, :20] = 0  # overlaps without variance
    planes = planes_by_definition(*(image.astype(np.float64) for image in images), problem).astype(sums)
    tables, sizes = tables_of_pairs(host_builds, *images, problem)
    launch = zncc_planes_launch(problem, sums, values)
    scores = guarded(np.full(planes.shape, np.nan))
    arrays = guarded(planes), *tables, scores
    numbers = (*problem.arguments(), *launch.extra, *sizes, min_overlap_pixels(*shapes, 0.4))
    run_kernel(host_builds, launch, arrays, numbers)
    assert guards_are_whole(scores)
    zncc = ZNCC(*shapes, window, 0.4, np)
    of_left, of_right = zncc.left(images[0]), zncc.right(images[1])
    for pair in range(problem.pairs):
        i, j = pair // per_left, pair % rights
        expected = zncc(planes[pair], *(tuple(a[k] for a in side) for side, k in ((of_left, i), (of_right, j))))
        np.testing.assert_allclose(scores[pair], expected, atol=2e-6)
        assert np.isfinite(expected).any()


SMALL, SMALL_WINDOW = (43, 39), ShiftWindow(-14, 13, -12, 15)
SMALL_PEAKS = np.array([(0, 0), (5, -3), (-4, 7), (-13, 14), (6, 0)])


@pytest.mark.parametrize("radius", [1, 7])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "float64"])
def test_scores_over_one_overlap(host_builds, rng, radius, each, dtype):
    count = len(SMALL_PEAKS)
    lefts = rng.normal(size=(count if each else 1, *SMALL)).astype("float64" if dtype == "float64" else "float32")
    rights = rng.normal(size=(count, *SMALL))
    rights = (1000 + 90 * rights).astype(dtype) if dtype == "uint16" else rights.astype(dtype)
    rights[1, :, :12] = rights[1, 0, 0]
    planes = np.stack(
        [plain.zncc(lefts[k if each else 0].astype(float), rights[k].astype(float), SMALL_WINDOW) for k in range(count)]
    )
    row, column = (SMALL_PEAKS - (SMALL_WINDOW.dy_min, SMALL_WINDOW.dx_min)).T
    padded = np.pad(planes, ((0, 0), (radius, radius), (radius, radius)), constant_values=np.nan)
    side = 2 * radius + 1
    around = np.stack([padded[k, row[k] : row[k] + side, column[k] : column[k] + side] for k in range(count)])
    zncc = ZNCC(SMALL, SMALL, SMALL_WINDOW, 0.01, np)
    overlaps = zncc.left(lefts), zncc.right(rights - rights.mean(axis=(1, 2), keepdims=True))
    images = lefts, rights - rights.mean(axis=(1, 2), keepdims=True)
    expected = zncc.on_common_overlap(around, images, overlaps, SMALL_PEAKS, (row, column))

    problem = Problem(
        SMALL,
        SMALL,
        (SMALL_WINDOW.dy_min, SMALL_WINDOW.dx_min),
        SMALL_WINDOW.shape,
        len(lefts),
        count,
        count // len(lefts),
    )
    tables, sizes = tables_of_pairs(host_builds, lefts, rights, problem)
    launch = common_overlap_launch(count, side, str(lefts.dtype), dtype)
    scores = guarded(np.full(around.shape, 77.0))
    places = guarded(SMALL_PEAKS.astype(np.int32))
    arrays = guarded(around), guarded(lefts), guarded(rights), places, *tables, scores
    run_kernel(host_builds, launch, arrays, (*problem.arguments(), *sizes, 1))
    assert guards_are_whole(scores)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-5)
    assert np.nanmax(np.abs(expected - around)) > 0.01


def score_by_slices(left, right, dy, dx, fewest):
    """Of one shift, over its overlap cut out of both."""
    height, width = right.shape
    rows, columns = (
        slice(max(0, -dy), max(0, min(height, height - dy))),
        slice(max(0, -dx), max(0, min(width, width - dx))),
    )
    g = right[rows, columns]
    f = left[max(0, dy) :, max(0, dx) :][: g.shape[0], : g.shape[1]]
    if g.size < fewest or g.std() < 1e-9 or f.std() < 1e-9:
        return np.nan
    return np.corrcoef(f.ravel(), g.ravel())[0, 1]


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (37, 5), (9, 9), (9, 151), (33, 67), (21, 143)])
@pytest.mark.parametrize("one_left", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("warps", [4, 5, 16])
def test_scores_of_every_overlap(host_builds, rng, shape, one_left, share, warps):
    peaks = np.array([(0, 0), (-2, 1), (shape[0] - 1, -shape[1]), (4, -3), (-90, 90), (-1, 0)], np.int32)
    lefts = guarded(rng.normal(size=(1 if one_left else len(peaks), *shape)) + 0.5)
    rights = guarded(rng.normal(size=(len(peaks), *shape)) - 3)
    rights[5, :, : shape[1] // 2] = 0.1  # flat where the overlap is small
    scores = guarded(np.full((len(peaks), SIDE, SIDE), 7.0))
    launch, fewest = around_peak_launch(len(peaks), warps * 64), max(1, int(share * shape[0] * shape[1]))
    run_kernel(host_builds, launch, (lefts, rights, guarded(peaks), scores), (len(lefts), *shape, fewest))
    assert guards_are_whole(scores)
    for k, (dy, dx) in enumerate(peaks.tolist()):
        for i, j in np.ndindex(SIDE, SIDE):
            expected = score_by_slices(lefts[0 if one_left else k], rights[k], dy + i - 2, dx + j - 2, fewest)
            np.testing.assert_allclose(scores[k, i, j], expected, atol=1e-10)


NEAR = np.array([[0.5, 0.7, 0.5], [0.7, 1.0, 0.7], [0.5, 0.7, 0.5]])


@pytest.mark.parametrize("shape", [(61, 97), (233, 50)])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scatter_among_tiles(host_builds, monkeypatch, rng, shape, dtype, each, weighted):
    peaks = np.array([(0, 0), (-5, 13), (9, -2), (shape[0], 0), (30, -40)])
    kernel = None
    if weighted:
        kernel = np.outer(*(2 * [np.exp(-(np.arange(-12.0, 13) ** 2) / 9)]))
    count = len(peaks) if each else 1
    images = 3 * gaussian_filter(rng.normal(size=(count, *shape)), (0, 1, 1)).astype(np.float32)
    frames = np.stack([np.roll(images[k % count], -peak, (0, 1)) for k, peak in enumerate(peaks)])
    frames = 1000 + 90 * (frames + 0.5 * rng.normal(size=frames.shape))
    frames = (np.rint(frames) if dtype == "uint16" else frames - 1000).astype(dtype)
    tiles = Tiles.of(shape)
    if each:  # noise that lies between tiles: none varies by as much
        images[:, np.setdiff1d(np.arange(shape[0]), tiles.cut(np.arange(shape[0])[None, :, None])[0])] *= 5
    references = ReferenceSlopes(images, kernel, rng.uniform(0.05, 0.9, count))
    shifts = peaks + rng.uniform(-0.5, 0.5, peaks.shape)
    near = np.tile(NEAR, (len(peaks), 1, 1))
    rise = 1 - quadratic_terms(near)[:, 3] * ((shifts - peaks) ** 2).sum(axis=1)
    shapes, widening = peak_shapes(references, frames, peaks, shifts, near), references.few_tiles()[0][:, None, None]
    of_edges = shapes.hessian @ np.diag(AT_EDGES / np.array(shape)) ** 2 @ shapes.hessian
    expected = shapes.scatter / widening - of_edges
    inside = references.tiles.inside(peaks, shape).sum(axis=(1, 2))

    run_on_host(monkeypatch, host_builds, tile_scatter)
    of_reference = tuple(guarded(np.asarray(each)) for each in (references.factors, references.sums, references.noise))
    grid = references.tiles.grid
    offsets = np.column_stack([shifts - peaks, rise])
    scatter = tile_scatter.tile_scatter(guarded(frames), of_reference, grid, peaks, offsets, plain=not weighted)
    known = inside >= 6
    assert known.sum() >= 3
    np.testing.assert_allclose(scatter[known], expected[known], rtol=2e-3, atol=2e-4 * np.abs(expected[0]).max())
    assert np.isinf(scatter[inside == 0]).all()


SHAPE, WINDOW = (97, 83), (-20, -25, 41, 51)
ERROR = 1e-3
PEAKS = np.array([(0, 0), (-7, 13), (9, -2), (19, 0), (3, -25), (5, 5), (-1, 2), (2, 2), (4, -6), (-3, -3)])


def records_of(rng):
    """Peaks of every kind, the row of one marked as open."""
    y, x = np.mgrid[-2:3, -2:3]
    around = np.stack(
        [0.9 * np.exp(-((y - dy) ** 2) / 5 - (x - dx) ** 2 / 7) for dy, dx in rng.uniform(-0.4, 0.4, (len(PEAKS), 2))]
    )
    around[2] -= 0.7  # values without a logarithm
    around[3, 4:] = np.nan  # beyond the window
    around[5] = np.nan
    records = np.concatenate([PEAKS - WINDOW[:2], np.zeros((len(PEAKS), 2)), around.reshape(-1, 25)], axis=1)
    records[:, 2] = around[:, 2, 2]
    records[:, 3] = rng.uniform(0.1, 0.5, len(PEAKS))
    records[:3, 3] = -np.inf, records[1, 2] - ERROR, 0.05
    records[7, 3] = records[7, 2] / 1.1
    records[6, 0] = -1 - records[6, 0]
    return records


@pytest.mark.parametrize("fit", ["gaussian", "quadratic", "parabolic", "none"])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("each", [False, True])
def test_what_is_said_of_frames(host_builds, monkeypatch, rng, fit, dtype, each):
    count = len(PEAKS)
    frames = 1000 + 90 * rng.normal(size=(count, *SHAPE)).cumsum(axis=1) / 5
    frames = (np.rint(frames) if dtype == "uint16" else frames - 1000).astype(dtype)
    frames[9] = frames[9, 0, 0] if dtype == "uint16" else 0.5
    images = rng.normal(size=(count if each else 1, *SHAPE)).astype(np.float32)
    slopes = ReferenceSlopes(images, None, rng.uniform(0.3, 0.9, len(images)))
    records = records_of(rng)
    exact = frames.astype(np.float64)
    power = (exact * exact).sum(axis=(1, 2))
    tables = np.full((count, 2, 3, 2), np.nan)
    tables[:, -1, -1] = np.stack([exact.sum(axis=(1, 2)), power], axis=1)

    run_on_host(monkeypatch, host_builds, frame_peaks, tile_scatter, noise_sums)
    places, near = frame_peaks.peak_places(guarded(records), WINDOW[:2])
    np.testing.assert_array_equal(places, PEAKS)
    around = records[:, 4:].reshape(-1, 5, 5)
    np.testing.assert_array_equal(near, around[:, 1:4, 1:4])
    near[:] += rng.uniform(0, 0.01, near.shape)  # over one overlap they are others
    rules = Rules(1e-6, 1.1, ERROR, 2, 1e3, 1e-12, 1e12, MIN_LOGARITHM, FLAT, AT_EDGES, MIN_TILES)
    of_references = (guarded(np.asarray(part)) for part in (slopes.factors, slopes.sums, slopes.noise))
    written, finished = frame_peaks.frame_peaks(
        (guarded(records), places, near, guarded(tables)),
        frame_peaks.frame_noise(guarded(frames), 8),
        guarded(frames),
        guarded(frames),
        OfReferences(*of_references, slopes.tiles.grid),
        WINDOW,
        8,
        fit,
        rules,
    )
    found = finished()
    np.testing.assert_array_equal(written[:, 33], found.score)

    assert found.flat is None if dtype == "float32" else np.flatnonzero(found.flat).tolist() == [9]
    valid = np.isfinite(records[:, 2])
    offset, height = refine(near, fit, 100)
    np.testing.assert_array_equal(found.peak, PEAKS)
    np.testing.assert_array_equal(found.around, around)
    np.testing.assert_allclose(found.shift, np.where(valid[:, None], PEAKS + offset, np.nan), atol=1e-9)
    np.testing.assert_allclose(found.score, np.where(valid, np.clip(height, -1, 1), np.nan), atol=1e-12)
    rival = records[:, 3]
    ratio = np.where(valid, np.where(rival > 0, records[:, 2] / rival, np.inf), np.nan)
    np.testing.assert_allclose(found.ratio, ratio)
    # At the window's edge, a rival within the error, one at the ratio from which it counts, a mark, a flat frame.
    np.testing.assert_array_equal(np.flatnonzero(found.is_open), [1, 3, 4, 6, 7, 9])
    expected = signal_fraction(exact, exact.var(axis=(1, 2)))
    np.testing.assert_allclose(found.clean[:9], expected[:9], rtol=1e-6)

    shapes = peak_shapes(
        slopes, frames, PEAKS, np.where(valid[:, None], PEAKS + offset, np.nan), around[:, 1:4, 1:4], around
    )
    np.testing.assert_allclose(found.hessian, shapes.hessian, atol=1e-12)
    np.testing.assert_allclose(found.quartic, shapes.quartic, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.height, shapes.height)
    expected = shapes.scatter / slopes.few_tiles()[0][:, None, None]
    usable = valid & np.isfinite(expected).all(axis=(1, 2))
    assert usable.sum() >= 7
    scale = np.abs(expected[usable]).max()
    np.testing.assert_allclose(found.scatter[usable], expected[usable], rtol=2e-3, atol=2e-4 * scale)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_sums_tell_what_is_flat(rng, dtype):
    limits = np.iinfo(dtype)
    images = rng.integers(limits.min, limits.max, (40, 37, 51), endpoint=True).astype(dtype)
    for k in range(20):  # of every level, half of them but for one pixel that is one more or less
        images[k] = rng.integers(limits.min + 1, limits.max)
        images[k, k, k] = int(images[k, -1, -1]) + (k % 4 == 1) - (k % 4 == 3)
    images[20], images[21] = limits.min, limits.max
    exact = images.astype(np.float64)
    found = frame_peaks.flat_by_sums(exact.sum(axis=(1, 2)), (exact * exact).sum(axis=(1, 2)), 37 * 51, images.dtype)
    np.testing.assert_array_equal(found, (images == images[:, :1, :1]).all(axis=(1, 2)))
    assert found.sum() == 12
