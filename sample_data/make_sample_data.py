"""Make the sample stacks and the table of their true shifts.

Run ``python sample_data/make_sample_data.py [FOLDER]``; the default folder is the one this script lies in. Everything
is drawn from fixed seeds. A scene is a sum of smooth functions on a plane larger than the frame, evaluated at displaced
coordinates: sub-pixel drift costs no interpolation, new content comes in at the edges and nothing is periodic.

``truth.csv`` has the columns ``stack,frame,dy,dx``: rows and columns, in pixels, to add to a frame to land on frame 0.
"""

from __future__ import annotations

import csv
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tifffile

FloatArray = npt.NDArray[np.float64]

MOVIE_SHAPE = (60, 160, 176)
PAGES_SHAPE = (12, 128, 144)
PIXEL_SIZE_UM = 0.325
TIME_INCREMENT_S = 2.0
CAMERA_OFFSET = 100.0
BORDER = 40.0  # pixels of scene around the frame, more than any drift and any cell's radius
MEAN_DECIMALS = 3  # rounds away what processors compute differently before photons are drawn


@dataclass(frozen=True)
class Cell:
    """One cell: an uneven ellipse with membrane, nucleus, nucleoli and vesicles; lengths in pixels."""

    centre: FloatArray
    radii: FloatArray
    angle: float
    lobes: float
    nucleus: FloatArray
    spots: FloatArray  # (n, 4): row and column from the centre, radius, brightness
    brightness: float
    wobble: FloatArray  # (2, 3): amplitude, period in frames and phase of the row and the column

    def draw(self, image: FloatArray, drift: FloatArray, frame: int) -> None:
        """Add the cell to ``image``, displaced by ``drift`` and its own small movement."""
        amplitude, period, phase = self.wobble.T
        row, column = self.centre + drift + amplitude * np.sin(2 * np.pi * frame / period + phase)
        reach = int(self.radii.max() * 1.3) + 10
        top, left = max(0, int(row) - reach), max(0, int(column) - reach)
        part = image[top : max(0, int(row) + reach), left : max(0, int(column) + reach)]
        y = np.arange(part.shape[0])[:, None] + (top - row)
        x = np.arange(part.shape[1])[None, :] + (left - column)
        along = (y * np.cos(self.angle) + x * np.sin(self.angle)) / self.radii[0]
        across = (x * np.cos(self.angle) - y * np.sin(self.angle)) / self.radii[1]
        outline = 1.0 + 0.08 * np.cos(3.0 * np.arctan2(across, along) + self.lobes)
        depth = (1.0 - np.hypot(along, across) / outline) * self.radii.min()  # pixels inside the membrane
        light = 0.25 / (1.0 + np.exp(-depth / 0.9)) + 0.55 * np.exp(-0.5 * (depth / 1.3) ** 2)
        nucleus_y, nucleus_x, nucleus_radius = self.nucleus
        from_nucleus = np.hypot(y - nucleus_y, (x - nucleus_x) * 1.15)
        light += 0.6 / (1.0 + np.exp(-(nucleus_radius - from_nucleus) / 0.8))
        for spot_y, spot_x, radius, brightness in self.spots:
            light += brightness * np.exp(-0.5 * ((y - spot_y) ** 2 + (x - spot_x) ** 2) / radius**2)
        part += self.brightness * light


def make_cells(random: np.random.Generator) -> list[Cell]:
    """Scatter cells over the frame and its border, none closer than 27 px to another."""
    low, high = np.full(2, -BORDER), np.array(MOVIE_SHAPE[1:]) + BORDER
    centres: list[FloatArray] = []
    for candidate in random.uniform(low, high, (2000, 2)):
        if all(np.hypot(*(candidate - other)) > 27.0 for other in centres):
            centres.append(candidate)
    cells = []
    for centre in centres:
        radii = random.uniform(9.5, 14.0, 2)
        nucleoli = np.column_stack(
            [random.uniform(-3.0, 3.0, (3, 2)), random.uniform(1.2, 1.8, 3), random.uniform(0.3, 0.6, 3)]
        )
        vesicles = np.column_stack(
            [random.uniform(-8.0, 8.0, (5, 2)), random.uniform(1.1, 1.5, 5), random.uniform(0.2, 0.7, 5)]
        )
        cells.append(
            Cell(
                centre=centre,
                radii=radii,
                angle=random.uniform(0.0, np.pi),
                lobes=random.uniform(0.0, 2 * np.pi),
                nucleus=np.append(random.uniform(-1.5, 1.5, 2), random.uniform(4.5, 6.5)),
                spots=np.vstack([nucleoli, vesicles]),
                brightness=random.uniform(160.0, 320.0),
                wobble=np.column_stack(
                    [random.uniform(0.0, 0.2, 2), random.uniform(15.0, 45.0, 2), random.uniform(0, 2 * np.pi, 2)]
                ),
            )
        )
    return cells


def random_drift(random: np.random.Generator, frames: int, farthest: float) -> FloatArray:
    """(frames, 2) displacement of the content in pixels: a smooth random walk from 0 to ``farthest`` at most."""
    steps = random.normal(size=(frames + 8, 2))
    smooth = np.stack([np.convolve(s, np.hanning(11)[1:-1], mode="valid") for s in steps.T], axis=1)
    walk = np.vstack([np.zeros((1, 2)), np.cumsum(smooth, axis=0)])[:frames]
    jitter = random.normal(0.0, 0.01, (frames, 2))
    walk = walk / np.abs(walk).max() + jitter - jitter[0]
    return np.round(walk * farthest / np.abs(walk).max(), 4)


def drifting_cells() -> tuple[npt.NDArray[np.uint16], FloatArray]:
    """Make the movie (T, Y, X), with bleaching, flicker and noise, and the displacement (T, 2) of its content."""
    random = np.random.default_rng(20240117)
    cells = make_cells(random)
    frames, height, width = MOVIE_SHAPE
    drift = random_drift(random, frames, 8.0)
    lamp = 1.0 + 0.02 * random.normal(size=frames)
    movie = np.empty(MOVIE_SHAPE, dtype=np.uint16)
    for t in range(frames):
        image = np.full((height, width), 12.0)
        for cell in cells:
            cell.draw(image, drift[t], t)
        photons = random.poisson(np.round(image * lamp[t] * np.exp(-t / 140.0), MEAN_DECIMALS))
        counts = photons + random.normal(CAMERA_OFFSET, 2.0, image.shape)
        movie[t] = np.clip(np.rint(counts), 0, 65535)
    return movie, drift


def single_pages() -> tuple[npt.NDArray[np.uint8], FloatArray]:
    """Make a speckle series (T, Y, X) and the displacement (T, 2) of its content."""
    random = np.random.default_rng(20240118)
    frames, height, width = PAGES_SHAPE
    drift = random_drift(random, frames, 5.0)
    rows, columns = random.uniform(-20, height + 20, 2600), random.uniform(-20, width + 20, 2600)
    brightness, radius = random.uniform(15.0, 70.0, 2600), random.uniform(1.2, 2.2, 2600)
    pages = np.empty(PAGES_SHAPE, dtype=np.uint8)
    for t in range(frames):
        down = np.exp(-0.5 * ((np.arange(height)[:, None] - rows - drift[t, 0]) / radius) ** 2)
        across = np.exp(-0.5 * ((np.arange(width)[:, None] - columns - drift[t, 1]) / radius) ** 2)
        image = 15.0 + np.round((down * brightness) @ across.T, MEAN_DECIMALS)
        pages[t] = np.clip(np.rint(image + random.normal(0.0, 2.0, image.shape)), 0, 255)
    return pages, drift


def write_movie(path: Path, movie: npt.NDArray[np.uint16]) -> None:
    """Write an OME-TIFF with axes, pixel size, time increment and channel name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Newer releases of tifffile name the kind of file where older ones have a switch for each.
    kind = {"kind": "ome"} if "kind" in inspect.signature(tifffile.TiffWriter).parameters else {"ome": True}
    metadata = {
        "axes": "TYX",
        "Name": "drifting cells",
        "UUID": "urn:uuid:7a1f0c52-0000-4000-8000-64726966746d",  # fixed, so that the file does not change
        "PhysicalSizeX": PIXEL_SIZE_UM,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": PIXEL_SIZE_UM,
        "PhysicalSizeYUnit": "µm",
        "TimeIncrement": TIME_INCREMENT_S,
        "TimeIncrementUnit": "s",
        "Channel": {"Name": ["membrane-GFP"]},
    }
    with tifffile.TiffWriter(path, **kind) as writer:
        writer.write(movie, photometric="minisblack", compression="zlib", predictor=True, metadata=metadata)


def write_truth(path: Path, drifts: dict[str, FloatArray]) -> None:
    """Write the registration shift, the negative of the displacement, of every frame of every stack."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["stack", "frame", "dy", "dx"])
        for stack, drift in drifts.items():
            for frame, (dy, dx) in enumerate(0.0 - drift):
                table.writerow([stack, frame, f"{dy:.4f}", f"{dx:.4f}"])


def main(folder: Path) -> None:
    """Write both stacks and the table into ``folder``."""
    movie, movie_drift = drifting_cells()
    write_movie(folder / "drifting_cells" / "drifting_cells.ome.tif", movie)
    pages, pages_drift = single_pages()
    series = folder / "single_pages"
    series.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pages, start=1):
        # Unpadded numbers on purpose: the alphabet puts frame_10 before frame_2.
        tifffile.imwrite(
            series / f"frame_{number}.tif", page, photometric="minisblack", compression="zlib", metadata=None
        )
    write_truth(folder / "truth.csv", {"drifting_cells": movie_drift, "single_pages": pages_drift})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
