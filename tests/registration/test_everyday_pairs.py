"""Pairs of pictures that everybody has, without noise and of 8 bits: nothing in them is taken for a camera's fault."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from xcorr_app import estimate_shifts

MARGIN = 20


@pytest.mark.parametrize("shift", [(0, 0), (7, 2), (0, 4), (12, -13)])
@pytest.mark.parametrize("name", ["camera", "page", "clock", "coins"])
def test_a_crop_of_a_picture_lies_where_it_was_cut_out(name, shift):
    picture = getattr(data, name)()
    height, width = picture.shape
    moved = picture[MARGIN + shift[0] : height - MARGIN + shift[0], MARGIN + shift[1] : width - MARGIN + shift[1]]
    found = estimate_shifts(np.stack([picture[MARGIN:-MARGIN, MARGIN:-MARGIN], moved]), "first", 30)
    np.testing.assert_allclose(found.shifts[1], shift, atol=0.05)
    assert found.trusted.all()
    assert not found.notes
