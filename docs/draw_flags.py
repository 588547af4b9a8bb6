"""Draws the pictures of the page of flags: ``python docs/draw_flags.py``; each frame is flagged as its picture says.

Left the reference, in the middle the frame, right the scores of all shifts (bright is high), the peak ringed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

import xcorr_app as xc

FOLDER = Path(__file__).resolve().parent / "flags"
SIZE, REACH, GAP = 128, 16, 6
_RING = (230, 159, 0)

Stack = NDArray[np.float64]


def stacks() -> dict[str, tuple[Stack, dict[str, Any]]]:
    """A stack for each flag, whose last frame gets it, and how it is measured."""
    rng = np.random.default_rng(0)
    scene = gaussian_filter(rng.normal(size=(220, 220)), 2)
    scene /= scene.std()

    def seen(dy: int, dx: int) -> Stack:
        return scene[40 + dy : 40 + dy + SIZE, 40 + dx : 40 + dx + SIZE]

    good = [seen(0, 0), seen(1, -2), seen(3, 1), seen(2, 2)]
    row, column = np.mgrid[:SIZE, :SIZE]
    lattice = [np.cos(np.pi * (row + d) / 6) + np.cos(np.pi * (column + d) / 6) for d in (0, 1, 3, 4)]
    parts = np.concatenate([seen(5, -6)[:43], seen(-6, 5)[43:86], seen(2, 9)[86:]])
    hole = np.where((column - 40) ** 2 + (row - 60) ** 2 < 300, np.nan, seen(1, 1))
    over = seen(2, 3) / 2 + np.where(column > 70, 8 * gaussian_filter(rng.normal(size=(SIZE, SIZE)), 2), 0)
    blank = rng.normal(size=(SIZE, SIZE))
    return {
        "edge": (np.stack([*good, seen(8, 3)]), {"max_shift": 8}),
        "uncertain": (np.stack([*good, blank]), {}),
        "ambiguous": (np.stack(lattice) + rng.normal(0, 0.3, (4, SIZE, SIZE)), {}),
        "inconsistent": (np.stack([*good, parts]), {}),
        "flat": (np.stack([*good, np.full((SIZE, SIZE), 3.0)]), {}),
        "non-finite": (np.stack([*good, hole]), {}),
        "inherited": (np.stack([*good[:2], blank, seen(2, 2)]), {"reference": "previous"}),
        "low-score": (np.stack([*good, over]), {}),
    }


def flagged() -> dict[str, tuple[str, ...]]:
    """What the last frame of each stack is flagged with."""
    asked = {name: xc.estimate_shifts(stack, **{"max_shift": REACH} | how) for name, (stack, how) in stacks().items()}
    return {name: result.flags[-1] for name, result in asked.items()}


def grey(image: Stack) -> Image.Image:
    """An image on its own scale, from the 1st to the 99th percentile; what is no number is black."""
    low, high = np.nanpercentile(image, (1, 99))
    scaled = np.clip((image - low) / (high - low or 1), 0, 1)
    return Image.fromarray((255 * np.nan_to_num(scaled)).astype(np.uint8)).convert("RGB")


def picture(stack: Stack, max_shift: int = REACH, reference: str = "first") -> Image.Image:
    """Reference, frame, and their plane."""
    left, right = (np.nan_to_num(frame) for frame in (stack[-2 if reference == "previous" else 0], stack[-1]))
    plane = xc.cross_correlate(left, right, max_shift=max_shift) if np.ptp(right) else np.zeros((2 * REACH + 1,) * 2)
    sheet = Image.new("RGB", (3 * SIZE + 2 * GAP, SIZE), "white")
    scores = grey(np.nan_to_num(plane, nan=-1)).resize((SIZE, SIZE), Image.Resampling.NEAREST)
    for number, image in enumerate((grey(left), grey(stack[-1]), scores)):
        sheet.paste(image, (number * (SIZE + GAP), 0))
    if np.ptp(right):
        row, column = np.unravel_index(np.nanargmax(plane), plane.shape)
        y, x = (SIZE * (place + 0.5) / plane.shape[0] for place in (int(row), int(column)))
        x += 2 * (SIZE + GAP)
        ImageDraw.Draw(sheet).ellipse((x - 7, y - 7, x + 7, y + 7), outline=_RING, width=2)
    return sheet


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, flags in flagged().items():
        print(name, *flags)
    for name, (stack, how) in stacks().items():
        picture(stack, **how).save(FOLDER / f"{name}.webp", quality=60, method=6)
