"""Stacks of a drifting scene, written to a folder: many or few, one page a file, compressed, with channels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tifffile
from scipy.ndimage import gaussian_filter

from xcorr_app.io import StackMetadata, StackWriter

_DRIFT = 7
"""Pixels to either side; from frame to frame twice as many, within the window of the commands."""
_DISTINCT = 8
_POOL = 64
"""Different frames; a stack goes through them again and again, since making them takes longer than measuring."""


def frames_of(side: int, seed: int) -> np.ndarray:
    """Noisy frames (n, side, side) of a scene, each moved by up to `_DRIFT` pixels, uint16."""
    rng = np.random.default_rng(seed)
    scene = gaussian_filter(rng.normal(size=(side + 2 * _DRIFT, side + 2 * _DRIFT)), 2)
    scene = (scene - scene.min()) / np.ptp(scene) * 3000 + 100
    pool = np.empty((_POOL, side, side), np.uint16)
    for frame in pool:
        y, x = rng.integers(0, 2 * _DRIFT, 2)
        frame[:] = scene[y : y + side, x : x + side] + rng.normal(scale=10, size=(side, side))
    return pool


def write_stacks(
    folder: Path, stacks: int, frames: int, side: int, *, compression: str | None = None, channels: int = 1
) -> int:
    """Write stacks of so many frames, a file each; of many, the later ones are further names of the first.

    Returns the number of planes. What is written is kept beside the folder, for another one with stacks of the same
    kind.
    """
    folder.mkdir(parents=True)
    pool = frames_of(side, 0)
    shape = (frames, channels, side, side) if channels > 1 else (frames, side, side)
    metadata = StackMetadata("TCYX" if channels > 1 else "TYX", shape, np.dtype(np.uint16))
    kept = folder.parent / f"stacks-{frames}-{channels}-{side}-{compression}"
    kept.mkdir(exist_ok=True)
    for number in range(stacks):
        # All are in the page cache as they are read; a disk need not hold so many.
        source = kept / f"{number % _DISTINCT}.tif"
        if source.exists():
            pass
        elif compression:  # by many threads: a writer of ours is asked by one
            frames_in_turn = (pool[(plane + number) % _POOL] for plane in range(frames * channels))
            tifffile.imwrite(
                source, frames_in_turn, shape=shape, dtype=np.uint16, photometric="minisblack",
                compression=compression, metadata={"axes": metadata.axes}, maxworkers=len(os.sched_getaffinity(0)),
            )  # fmt: skip
        else:
            with StackWriter(source, metadata) as writer:
                for plane in range(frames * channels):
                    writer.write(pool[(plane + number) % _POOL])
        os.link(source, folder / f"s{number:04d}.tif")
    return stacks * frames * channels


def write_pages(folder: Path, frames: int, side: int) -> int:
    """Write a series of single-page files; of many, the later ones are further names of the first."""
    folder.mkdir(parents=True)
    pool = frames_of(side, 0)
    metadata = StackMetadata("YX", (side, side), np.dtype(np.uint16))
    for number in range(frames):
        path = folder / f"t{number:05d}.tif"
        if number < _POOL:
            with StackWriter(path, metadata) as writer:
                writer.write(pool[number])
        else:
            os.link(folder / f"t{number % _POOL:05d}.tif", path)
    return frames
