"""Windows of several images looked for together: as one by one, on the host and as a device does it."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from xcorr_app.registration.field.window_match import Search, Windows, match_windows


@pytest.fixture
def searches():
    rng = np.random.default_rng(0)
    first = gaussian_filter(rng.normal(size=(90, 101)), 2).astype(np.float32)
    images = [
        np.roll(first, (k, -k), (0, 1)) + 0.01 * rng.normal(size=first.shape).astype(np.float32) for k in (0, 1, 2)
    ]
    place = np.stack(np.meshgrid([0, 20, 58], [0, 30, 69], indexing="ij"), axis=2).reshape(-1, 2)
    one, other = (Windows(image, place, 32, 3) for image in (first, images[0]))
    some = np.array([1, 4, 8])
    return [
        Search(one, images[0], np.zeros((9, 2), np.intp)),
        Search(other, images[1], np.tile([1, -1], (9, 1))),
        Search(one, images[2], np.tile([1, -2], (3, 1)), some),
    ]


def test_together_as_one_by_one(searches):
    together, done = match_windows(searches), 0
    for each in searches:
        alone = match_windows([each])
        part = slice(done, done + len(each.offset))
        done = part.stop
        for name, values in vars(alone).items():
            np.testing.assert_array_equal(getattr(together, name)[part], values)
    np.testing.assert_allclose(np.median(together.shift[-3:], axis=0), [2, -2], atol=0.1)
