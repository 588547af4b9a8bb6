"""Pictures gathered while a stack is moved, against their definition in float64."""

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app.batch.align.projections import Projections
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


@pytest.mark.parametrize("mode", ["constant", "nearest"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "float32", "float64"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
def test_pictures_are_the_definition(xp, dtype, mode):
    before = (60 + 20 * drifting(np.zeros((7, 2)), SHAPE) + np.arange(7)[:, None, None]).astype(dtype)
    if dtype[0] == "f":
        before[3, 10:13, 10:13], before[1, 0, 0] = np.nan, np.inf
        before[2, [0, -1], 20] = np.nan  # with `nearest` beyond what was moved there as well
    after = shift_frames(before, SHIFTS, mode=mode)[0]
    gathered = Projections(SHAPE, SHIFTS, [1, 4])
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        gathered.add(list(range(start, stop)), xp.asarray(before[start:stop]), xp.asarray(after[start:stop]))
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
