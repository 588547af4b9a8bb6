"""Draws the gallery: ``python docs/draw_gallery.py DATA``; DATA has the folders of real series that the page names.

A picture is the mean of a series as it was recorded and as it is registered, or the difference of two of its frames
where they lie less than a pixel apart, both on one scale of grey. Pictures of the sample data and that of stains, from
scikit-image's own data, need no DATA.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.data import immunohistochemistry

import xcorr_app as xc

DOCS = Path(__file__).resolve().parent
SAMPLES = DOCS.parent / "sample_data"
SIDE, GAP = 320, 8


class Series(NamedTuple):
    """Files of a series, and how it is measured."""

    files: str
    how: dict[str, Any]
    """Keywords of `estimate_motion` where there is a model, else of `estimate_shifts`."""
    difference: bool = False
    """The last frame minus the first is shown, of the middle of the picture, in place of the mean."""


SERIES = {
    "cells": Series("drifting_cells/*.tif", {"max_shift": 12}),
    "pages": Series("single_pages/*.tif", {}),
    "speckle": Series("dice_pixel_shift/*.tif", {"max_shift": 20}),
    "turned": Series("dice_rotation20/*.tif", {"model": "rigid"}),
    "masked_1": Series("padfield_masked/*X75Y75.png", {"mask": "nonzero", "max_shift": 200}),
    "masked_2": Series("padfield_masked/*X-130Y130.png", {"mask": "nonzero", "max_shift": 200}),
    "masked_3": Series("padfield_masked/*X130Y130.png", {"mask": "nonzero", "max_shift": 200}),
    "contrast": Series("dic_sample5/*.tif", {}, difference=True),
    "mitosis": Series("mitosis_folder/*.tif", {}),
}


def movie(files: list[Path]) -> NDArray[Any]:
    """One stack, or a frame from each file in the order of their numbers."""
    order = sorted(files, key=lambda path: (len(path.stem), path.name) if path.stem[-1].isdecimal() else (0, path.name))
    frames = [xc.read_stack(path).data for path in order]
    return frames[0] if len(frames) == 1 else np.stack(frames)


def changes(stack: NDArray[Any]) -> NDArray[Any]:
    """The last frame minus the first, each brought to one mean and contrast; the middle of it, smoothed."""
    middle = tuple(slice((side - min(side, SIDE)) // 2, (side + min(side, SIDE)) // 2) for side in stack.shape[1:])
    first, last = ((frame - frame.mean()) / frame.std() for frame in (stack[0], stack[-1]))
    return np.asarray(gaussian_filter(last - first, 1.5)[middle])


def pair(series: Series, root: Path) -> tuple[Image.Image, str]:
    """Mean before and after, and in words what was found."""
    before = movie(list(root.glob(series.files))).astype(np.float32)
    measure = xc.estimate_motion if "model" in series.how else xc.estimate_shifts
    result: Any = measure(before, **series.how)
    after = result.apply(before) if "model" in series.how else xc.apply_shifts(before, result)
    shown = np.stack([changes(each) if series.difference else each.mean(axis=0) for each in (before, after)])
    low, high = np.percentile(shown[0], (1, 99.8))
    grey = (255 * np.clip((shown - low) / (high - low), 0, 1)).astype(np.uint8)
    height, width = grey.shape[1:]
    scale = SIDE / max(height, width)
    images = [Image.fromarray(each).resize((round(width * scale), round(height * scale))) for each in grey]
    sheet = Image.new("L", (2 * images[0].width + GAP, images[0].height), 255)
    for number, image in enumerate(images):
        sheet.paste(image, (number * (image.width + GAP), 0))
    return sheet, result.summary()


def stains() -> Image.Image:
    """A stained tissue and its brown stain alone, which is dark where there is much of it."""
    tissue = immunohistochemistry()
    brown = np.asarray(xc.unmix(tissue, xc.stain_matrix("hed").matrix, channel_axis=-1, from_log=True))[..., 2]
    low, high = np.percentile(brown, (1, 99.8))
    grey = (255 * (1 - np.clip((brown - low) / (high - low), 0, 1))).astype(np.uint8)
    sheet = Image.new("RGB", (2 * SIDE + GAP, SIDE), "white")
    for number, image in enumerate((Image.fromarray(tissue), Image.fromarray(grey))):
        sheet.paste(image.resize((SIDE, SIDE)), (number * (SIDE + GAP), 0))
    return sheet


if __name__ == "__main__":
    stains().save(DOCS / "gallery" / "stains.webp", quality=55, method=6)
    roots = [SAMPLES, *map(Path, sys.argv[1:])]
    for name, series in SERIES.items():
        for root in roots:
            if any(root.glob(series.files)):
                sheet, found = pair(series, root)
                sheet.save(DOCS / "gallery" / f"{name}.webp", quality=55, method=6)
                print(f"{name}: {found}")
