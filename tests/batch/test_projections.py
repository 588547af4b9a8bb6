"""Pictures gathered while a stack is moved, against their definition in float64."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app.batch.align import projections
from xcorr_app.batch.align.moving import _is_shown
from xcorr_app.batch.align.projections import Projections
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.moving.interpolation import inside

SHAPE = (41, 53)
SHIFTS = np.array([[0, 0], [2.5, -1], [-3, 4.25], [20, 0], [0.3, 0.3], [100, 0], [1, 1]])


def covered(values):
    """NaN in place of what each frame does not cover."""
    out = np.full(values.shape, np.nan)
    for frame, image, (dy, dx) in zip(out, values, SHIFTS, strict=True):
        part = slice(*inside(SHAPE[0], dy)), slice(*inside(SHAPE[1], dx))
        frame[part] = image[part]
    return np.where(np.isfinite(out), out, np.nan)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "float32", "float64"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
def test_pictures_are_the_definition(xp, dtype, mode, apart):
    before = (60 + 20 * drifting(np.zeros((7, 2)), SHAPE) + np.arange(7)[:, None, None]).astype(dtype)
    if dtype[0] == "f":
        before[3, 10:13, 10:13], before[1, 0, 0] = np.nan, np.inf
        before[2, [0, -1], 20] = np.nan  # with `nearest` beyond what was moved there as well
    after = shift_frames(before, SHIFTS, mode=mode)[0]
    gathered = Projections(SHAPE, SHIFTS, [1, 4])
    blocks = []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        those = gathered.begun() if apart else None
        gathered.add(list(range(start, stop)), xp.asarray(before[start:stop]), xp.asarray(after[start:stop]), those)
        blocks.append(those)
    if apart:
        whole, *rest = (pickle.loads(pickle.dumps(gathered.end(block, to_join=True))) for block in blocks)  # noqa: S301
        for block in rest:
            whole.join(block)
        gathered.take(whole, xp)
    found = gathered.pictures()
    was = np.where(np.isfinite(before.astype(float)), before, np.nan)
    for one, (mean, deviation) in (
        (was, (found.mean_before, found.std_before)),
        (covered(after), (found.mean_after, found.std_after)),
    ):
        np.testing.assert_allclose(mean, np.nanmean(one, axis=0), rtol=1e-5)
        np.testing.assert_allclose(deviation, np.nanstd(one, axis=0), rtol=1e-3, atol=1e-3)
    band = slice(18, 23)
    np.testing.assert_allclose(found.kymograph_before, before[:, band].mean(axis=1, dtype=float), rtol=1e-5)
    whole = [i for i, (dy, _) in enumerate(SHIFTS) if inside(41, dy)[0] <= 18 and inside(41, dy)[1] >= 23]
    assert whole == [0, 1, 2, 4, 6]  # in the fourth the band is covered in part
    assert np.isnan(found.kymograph_after[[3, 5]]).all()
    for i in whole:
        columns = slice(*inside(53, SHIFTS[i, 1]))
        expected = after[i, band, columns].mean(axis=0, dtype=float)
        np.testing.assert_allclose(found.kymograph_after[i, columns], expected, rtol=1e-5)
    assert sorted(found.thumbnails) == [1, 4]
    assert found.preview is not None
    assert found.preview.shape == (7, 2, *SHAPE)
    assert (found.preview[5, 1] == 0).all()


def test_steady_bright_pixels_have_no_deviation(xp):
    """float32 sums of squares of 60000 would be off by more than the noise of 1 that is to be seen."""
    rng = np.random.default_rng(3)
    stack = np.rint(rng.normal(100, 1, (200, 16, 16)))
    stack[:, :, 8:] += 60_000
    stack = xp.asarray(stack.astype(np.uint16))
    gathered = Projections((16, 16), np.zeros((200, 2)), [])
    for start in range(0, 200, 8):
        gathered.add(list(range(start, start + 8)), stack[start : start + 8], stack[start : start + 8])
    assert np.abs(gathered.pictures().std_before - 1.04).max() < 0.3


def test_pixels_that_never_change_have_a_deviation_of_nothing(xp):
    """Where the first frame has no value, rounding may leave less than nothing."""
    scene = np.random.default_rng(4).uniform(0.1, 1, (16, 16)).astype(np.float32)
    stack = np.repeat(scene[None], 7, axis=0)
    shifts = np.zeros((7, 2))
    shifts[0, 0] = 8
    after = stack.copy()
    after[0, :8] = 0
    gathered = Projections((16, 16), shifts, [])
    gathered.add(list(range(7)), xp.asarray(stack), xp.asarray(after))
    np.testing.assert_allclose(gathered.pictures().std_after, 0, atol=2e-3)


@pytest.mark.parametrize(("axis", "across"), [("T", "z"), ("Z", "t")])
def test_the_middle_of_averaged_planes_is_shown(axis, across):
    """Of the channel that is measured; the outermost planes of a volume are its dullest."""
    frames = SimpleNamespace(axis=axis, channel=1, averaged=5)
    positions = [{axis.lower(): 3, across: number, "c": channel} for number in range(5) for channel in range(2)]
    assert [p for p in positions if _is_shown(frames, p)] == [{axis.lower(): 3, across: 2, "c": 1}]


def test_a_long_stack_is_previewed_in_a_few_frames():
    stack = np.zeros((300, 8, 9), dtype=np.uint8)
    gathered = Projections((8, 9), np.zeros((300, 2)), list(range(300)))
    gathered.add(list(range(300)), stack, stack)
    found = gathered.pictures()
    assert found.preview is not None
    assert len(found.preview) == 24
    assert sorted(found.thumbnails) == list(range(24))


def test_sums_of_integers_are_those_of_the_same_numbers_as_floats():
    random = np.random.default_rng(11)
    before = random.integers(0, 65536, (7, 41, 53)).astype(np.uint16)
    shifts = random.uniform(-5, 5, (7, 2))
    after, _ = shift_frames(before, shifts)
    found = []
    for kind in (np.uint16, np.float64):
        sums = Projections(before.shape[1:], shifts, [2])
        for start in (0, 3, 6):
            part = slice(start, start + 3)
            sums.add(range(start, min(start + 3, 7)), before[part].astype(kind), after[part].astype(kind))
        found.append(sums.pictures())
    for name in ("mean_before", "mean_after", "std_before", "std_after", "kymograph_before", "kymograph_after"):
        np.testing.assert_allclose(*(getattr(pictures, name) for pictures in found), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(41, 53), (225, 300), (700, 449)])
def test_frames_of_the_preview_are_as_small_on_a_device(dtype, shape):
    rng = np.random.default_rng(0)
    images = rng.normal(100, 30, (4, *shape)).astype(dtype)
    if dtype[0] == "f":
        images[1, 3:40, 5:30], images[2, 0, 0] = np.nan, np.inf
        images[3] *= 1e36
    extents = np.array([[0, shape[0], 0, shape[1]], [2, 30, 7, 41], [0, 0, 0, 0], [40, 41, 0, 53]])
    step = projections.block_side(max(shape), projections.PREVIEW_SIDE)
    for part in (None, extents):
        found = projections._small_on_device(images, part, step)
        np.testing.assert_allclose(found, projections._small(images, part), rtol=1e-6)


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_no_frame_is_added_twice_where_memory_runs_out(monkeypatch, fails_at):
    """The sums of pixels have a chunk by then, the others not: it is added to what was there before, on the host."""
    rng = np.random.default_rng(8)
    shifts = rng.uniform(-2, 2, (12, 2))
    frames = rng.normal(100, 9, (12, *SHAPE)).astype(np.float32)
    moved = shift_frames(frames, shifts)[0]

    def gathered(failing):
        found = Projections(SHAPE, shifts, [1, 4])
        calls, add = [], projections.AssessmentSums.add

        def runs_out(sums, before, after):
            add(sums, before, after)
            calls.append(len(before))
            if len(calls) == failing + 1:
                raise DeviceMemoryError("none is left")

        monkeypatch.setattr(projections.AssessmentSums, "add", runs_out)
        for start in range(0, 12, 4):
            found.add(list(range(start, start + 4)), frames[start : start + 4], moved[start : start + 4])
        monkeypatch.setattr(projections.AssessmentSums, "add", add)
        return found.pictures()

    monkeypatch.setattr(projections, "is_device_array", lambda array: isinstance(array, np.ndarray))
    monkeypatch.setattr(projections, "bytes_within_limit", lambda: 1 << 34)
    monkeypatch.setattr(projections, "release_unused", lambda: None)
    # As frames of a device, of which no flag says that they are on the host.
    monkeypatch.setattr(projections.Gathered, "to_host", lambda _: None)
    expected, found = gathered(99), gathered(fails_at)
    for name in ("mean_before", "std_before", "mean_after", "std_after", "kymograph_before", "kymograph_after"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(found.preview, expected.preview)
