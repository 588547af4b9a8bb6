"""Patches of a reference looked for in a chunk of frames on a device, and the fields that the trusted ones begin."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.field.launches import patch_match_launch, patch_trust_launch
from xcorr_app.gpu.runtime.binder import start

__all__ = ["RECORD", "PatchGrid", "SearchedPatches", "match_patches"]

RECORD = 5
"""Numbers of a patch: rows and columns of its shift, score, significance, whether it is good by itself."""


@dataclass(frozen=True, eq=False)
class PatchGrid:
    """Where patches lie, and what they are judged by; arrays of the device."""

    shape: tuple[int, int]
    """Patches along rows and columns."""
    smaller: int
    """Factor by which the images are made smaller in which they are looked for."""
    reach: int
    """Pixels of these images by which they may be off."""
    firsts: Any
    """(n, 2) of int32: first row and column in these images."""
    middles: Any
    """(n, 2) of float64, in pixels of the full size."""
    nodes: Any
    """(m, 2) of float64: the nodes of the fields."""
    lengths: Any
    """(2,) of float64: spacing of the patches, and standard deviation of the Gaussian of a field."""


@dataclass(frozen=True, eq=False)
class SearchedPatches:
    """Patches of one reference, or one set for each frame; arrays of the device."""

    values: Any
    """(n, side, side) of float32, less their means; or (T, n, side, side)."""
    power: Any
    """(n,) of float32, or (T, n): sums of their squares."""
    flat: Any
    """The same of int32: whether they hold nothing."""


def match_patches(
    images: Any, patches: SearchedPatches, grid: PatchGrid, limits: Any, per_cell: int, shifts: Any
) -> tuple[Any, Any, Any]:
    """Look for patches in images (T, Y, X) of float32, which are displaced by `shifts` (T, 2) in pixels of full size.

    `limits` and `per_cell` are the heights that chance reaches, see ``kernels/field/patch_match.cu``. Returns, on the
    device, the records (T, n, 5), whether they are trusted (T, n) and the fields (T, 2, m) through those that are.
    """
    cupy = importlib.import_module("cupy")
    frames, (height, width), count = len(images), images.shape[1:], len(grid.firsts)
    side = patches.values.shape[-1]
    launch = patch_match_launch(frames * count, side, 2 * (grid.reach + 1) + 1)
    assert launch is not None  # noqa: S101 - the caller asked before
    starts = np.rint(shifts / grid.smaller).astype(np.int32)
    offsets = cupy.asarray(np.ascontiguousarray(np.broadcast_to(starts[:, None], (frames, count, 2))))
    moved = cupy.asarray(np.ascontiguousarray(shifts, np.float64))
    records, trusted = cupy.empty((frames, count, RECORD)), cupy.empty((frames, count), np.uint8)
    fields = cupy.empty((frames, 2, len(grid.nodes)))

    def look() -> None:
        start(
            launch,
            (images, patches.values, patches.power, patches.flat, grid.firsts, offsets, limits, records),
            (height, width, count, int(patches.values.ndim == 4), len(limits) - 1, per_cell),
        )

    def judge(*, field: bool) -> None:
        places = grid.nodes if field else grid.middles
        arrays = (records, grid.middles, places, grid.lengths, moved, offsets, trusted, fields)
        numbers = (*grid.shape, len(places), grid.smaller, 2 * grid.reach)
        start(patch_trust_launch(frames, count, field=field), arrays, numbers)

    look()
    judge(field=False)
    look()  # the others, around where their neighbours are
    judge(field=True)
    return records, trusted, fields
