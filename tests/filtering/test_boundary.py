"""Padding against the padding of NumPy, which names the same modes differently."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from tests.filtering.oracle import NUMPY_NAMES
from xcorr_app.filtering.boundary import MODES, Mode, padded, source_indices

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


def test_a_constant_outside_is_cval() -> None:
    whole = padded(np.ones((2, 2), np.uint8), (1, 0), (0, 2), "constant", 0.25, np.float64)
    assert whole.tolist() == [[0.25] * 4, [1, 1, 0.25, 0.25], [1, 1, 0.25, 0.25]]


@pytest.mark.parametrize("mode", [*BORROWING, "constant"])
def test_no_pixel_is_left_as_the_memory_was(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "empty", lambda shape, dtype: np.full(shape, np.nan, dtype))
    for shape in [(1, 1), (1, 5), (6, 4)]:
        for rows, columns in [((0, 0), (0, 0)), ((2, 0), (0, 3)), ((0, 9), (9, 0)), ((4, 4), (11, 11))]:
            assert np.isfinite(padded(np.ones(shape), rows, columns, mode, 2.0, np.float64)).all()


def test_valid_adds_nothing_and_copies() -> None:
    frame = np.ones((2, 3))
    whole = padded(frame, (1, 1), (1, 1), "valid", 0.0, np.float64)
    assert whole.shape == (2, 3)
    assert not np.may_share_memory(whole, frame)


def test_every_mode_is_listed() -> None:
    assert set(MODES) == {*BORROWING, "constant", "valid"} == set(get_args(Mode))
