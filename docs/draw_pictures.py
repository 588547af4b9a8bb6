"""Draws the pictures of the README and of "How it decides" from the sample data: ``python docs/draw_pictures.py``.

Nothing but the library itself and Pillow is needed; ``docs/report.png`` is a photograph of the report of that movie.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

import xcorr_app as xc

DOCS = Path(__file__).resolve().parent
MOVIE = DOCS.parent / "sample_data" / "drifting_cells" / "drifting_cells.ome.tif"
ZOOM = 2
GAP = 8


def grey(images: NDArray[Any]) -> NDArray[np.uint8]:
    """All images on one scale of grey, from the 1st to the 99.8th percentile."""
    low, high = np.percentile(images, (1, 99.8))
    return (255 * np.clip((images - low) / (high - low), 0, 1)).astype(np.uint8)


def side_by_side(*images: NDArray[Any], zoom: int = ZOOM) -> NDArray[np.uint8]:
    """Images in a row, each on its own scale, with white between."""
    enlarged = [np.kron(grey(image), np.ones((zoom, zoom), np.uint8)) for image in images]
    white = np.full((enlarged[0].shape[0], GAP), 255, np.uint8)
    return np.hstack([part for image in enlarged for part in (white, image)][1:])


def movie() -> tuple[NDArray[Any], NDArray[Any]]:
    """The sample movie as it is, and aligned."""
    before = xc.read_stack(MOVIE).data.reshape(60, 160, 176)
    result = xc.estimate_shifts(before, max_shift=12, verify="none")
    return before, xc.apply_shifts(before, result.applied())


def animation_frames() -> list[Image.Image]:
    """Every third frame: the movie as it is at the left, aligned at the right, with a cross that stands still."""
    before, after = (grey(stack[::3]) for stack in movie())
    frames = []
    for left, right in zip(before, after, strict=True):
        picture = Image.fromarray(side_by_side(left, right)).convert("RGB")
        draw = ImageDraw.Draw(picture)
        for start in (0, left.shape[1] * ZOOM + GAP):
            x, y = start + left.shape[1] * ZOOM // 2, left.shape[0] * ZOOM // 2
            draw.line((x - 12, y, x + 12, y), fill=(230, 159, 0))
            draw.line((x, y - 12, x, y + 12), fill=(230, 159, 0))
        frames.append(picture)
    return frames


def normalisation() -> Image.Image:
    """Scene, the scene moved by (5, -7) in other light, both with an offset; sums and scores, peaks ringed."""
    scene = movie()[0][0] + 300.0
    light = 0.4 + 1.6 * np.arange(scene.shape[1]) / scene.shape[1]
    moved = np.roll(scene, (5, -7), axis=(0, 1)) * light
    planes = [
        xc.cross_correlate(moved, scene, form="one-to-one", max_shift=20, normalization=name)
        for name in ("none", "zncc")
    ]
    width = scene.shape[1]
    parts = [scene, moved] + [
        np.asarray(Image.fromarray(grey(plane)).resize((width, scene.shape[0]), 0)) for plane in planes
    ]
    picture = Image.fromarray(side_by_side(*parts)).convert("RGB")
    draw = ImageDraw.Draw(picture)
    for number, plane in enumerate(planes, start=2):
        row, column = np.unravel_index(np.nanargmax(plane), plane.shape)
        x = number * (width * ZOOM + GAP) + (column + 0.5) / plane.shape[1] * width * ZOOM
        y = (row + 0.5) / plane.shape[0] * scene.shape[0] * ZOOM
        draw.ellipse((x - 9, y - 9, x + 9, y + 9), outline=(230, 159, 0), width=3)
    return picture


def means() -> Image.Image:
    """Mean over all frames before and after: the detail that registration gives back."""
    return Image.fromarray(side_by_side(*(stack.mean(axis=0) for stack in movie())))


def main() -> None:
    """Write every picture beside this script."""
    first, *others = animation_frames()
    first.save(DOCS / "drift.webp", save_all=True, append_images=others, duration=160, loop=0, quality=55, method=4)
    normalisation().save(DOCS / "normalisation.png", optimize=True)
    means().save(DOCS / "means.png", optimize=True)


if __name__ == "__main__":
    main()
