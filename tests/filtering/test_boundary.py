"""Padding against the padding of NumPy, which names the same modes differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.filtering.oracle import NUMPY_NAMES
from xcorr_app.filtering.boundary import Mode, padded, source_indices

BORROWING: tuple[Any, ...] = ("reflect", "nearest", "mirror", "wrap")


@pytest.mark.parametrize("mode", BORROWING)
@pytest.mark.parametrize("length", [1, 2, 3, 7])
@pytest.mark.parametrize("margins", [(0, 0), (1, 2), (5, 0), (19, 23)])
def test_positions_outside_take_the_pixel_numpy_takes(mode: Mode, length: int, margins: tuple[int, int]) -> None:
    expected = np.pad(np.arange(length), margins, mode=NUMPY_NAMES[mode])
    np.testing.assert_array_equal(source_indices(length, *margins, mode), expected)


@pytest.mark.parametrize("mode", BORROWING)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (6, 9)])
def test_a_frame_is_continued_on_all_sides(mode: Mode, shape: tuple[int, int], rng: np.random.Generator) -> None:
    frame = rng.integers(0, 255, shape, dtype=np.uint8)
    expected = np.pad(frame, ((3, 12), (10, 2)), mode=NUMPY_NAMES[mode]).astype(np.float32)
    np.testing.assert_array_equal(padded(frame, (3, 12), (10, 2), mode, 0.0, np.float32), expected)


def test_valid_adds_nothing_and_copies() -> None:
    frame = np.ones((2, 3))
    whole = padded(frame, (1, 1), (1, 1), "valid", 0.0, np.float64)
    assert whole.shape == (2, 3)
    assert not np.may_share_memory(whole, frame)
