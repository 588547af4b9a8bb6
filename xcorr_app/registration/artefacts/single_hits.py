"""Pixels hit in one frame alone: cosmic rays, spikes of a detector, found in each frame and replaced for measuring.

Where a scene is sparse, a few of them per frame outshine it, and frames are laid on each other by chance. A hit is a
pixel far above all eight around it, which know nothing of it: no optics draws that. Points of a scene that is not
resolved look alike, but come again where the scene has moved to: the pairs of two frames' points then have one
displacement in common, which those of hits have not (Hough's vote for a shift). Tracks of several pixels are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.artefacts.defects import alone, brightest, mean_of_four
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.stack.frames import Chunk, Frames, FramesOver

_LOOKED_AT = 6
_LARGEST_SHARE = 5e-4
"""Of the pixels of a frame; more than that are no hits but photons, or a scene."""
_SMALLEST = 16
"""Rows and columns below which nothing is looked for."""
_FEWEST = 8
"""Points of two frames, beyond the first of each pair, below which nothing is known of what they have in common."""
_PEAKS = 5
"""Times as many are the highest points of a frame, alone or not, with which those of another are compared."""
_IN_COMMON = 0.3
"""Share of the points that one displacement may put on those."""


@dataclass(frozen=True)
class HitFreeFrames(FramesOver):
    """Frames in which every pixel that was hit is the mean of the four beside it."""

    number: float
    """Hits in a frame, as a rule."""

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and repair copies of them."""
        chunk = self.source.read(start, stop)
        frames = chunk.frames.copy()
        hit = alone(chunk.frames)
        t, y, x = hit.nonzero()
        frames[t, y, x] = mean_of_four(chunk.frames, (t, y, x), ~hit)
        return replace(chunk, frames=frames)

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            f"Single pixels that are hit in one frame alone (cosmic rays, spikes; about {self.number:.0f} a frame) "
            "were replaced by their neighbours for measuring."
        )


def without_hits(frames: Frames) -> Frames | HitFreeFrames:
    """Frames as they are, or repaired where pixels are hit in one frame alone."""
    if frames.count < 2 or min(frames.shape) < _SMALLEST:
        return frames
    points: list[NDArray[np.intp]] = []
    images: list[Array] = []
    for number in spread(np.arange(frames.count), _LOOKED_AT).tolist():
        chunk = frames.read(number, number + 1)
        if chunk.unreadable:
            continue
        found = np.argwhere(to_host(alone(chunk.frames)[0]))
        # The first frame tells as a rule.
        if (not points and not len(found)) or len(found) > _LARGEST_SHARE * frames.shape[0] * frames.shape[1]:
            return frames
        points.append(found)
        images.append(chunk.frames[0])
    paired = [(i, i + 1) for i in range(len(points) - 1) if len(points[i]) and len(points[i + 1])]
    number = sum(min(len(points[i]), len(points[j])) - 1 for i, j in paired)
    if number < _FEWEST:
        return frames
    # A point that lies on one pixel here may lie on two there.
    peaks = {j: brightest(images[j], _PEAKS * len(points[j])) for _, j in paired}
    common = sum(_in_common(points[i], peaks[j]) - 1 for i, j in paired)
    number = sum(len(points[i]) - 1 for i, _ in paired)
    if number < _FEWEST or common > _IN_COMMON * number:
        return frames
    return HitFreeFrames(frames, float(np.median([len(each) for each in points])))


def _in_common(one: NDArray[np.intp], other: NDArray[np.intp]) -> int:
    """Points (n, 2) that the best displacement puts on others (m, 2), to a pixel."""
    moves = (other[None] - one[:, None]).reshape(-1, 2)
    moves -= moves.min(axis=0) - 1
    votes = np.zeros(moves.max(axis=0) + 2, dtype=np.intp)
    np.add.at(votes, tuple(moves.T), 1)
    rows = votes[:-2] + votes[1:-1] + votes[2:]
    return int((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]).max())
