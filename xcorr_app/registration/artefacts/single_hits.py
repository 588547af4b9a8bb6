"""Pixels hit in one frame alone: cosmic rays, spikes of a detector, found in each frame and replaced for measuring.

Where a scene is sparse, a few of them per frame outshine it, and frames are laid on each other by chance. A hit is a
pixel far above all eight around it, which know nothing of it: no optics draws that. Points of a scene that is not
resolved look alike, but come again where the scene has moved to: the pairs of two frames' points then have one
displacement in common, which those of hits have not (Hough's vote for a shift). Tracks of several pixels are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.artefacts.defects import alone, brightest, mean_of_four
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.stack.frames import Chunk, Frames, FramesOver

_LOOKED_AT, _MORE = 6, 24
"""Frames that tell as a rule, and where each holds few points."""
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
    few = _told_by(frames, _LOOKED_AT)
    return few if few is not None else _told_by(frames, _MORE) or frames


def _told_by(frames: Frames, looked_at: int) -> Frames | HitFreeFrames | None:
    """Frames as they are, or repaired, as so many of them tell; None where these hold too few points."""
    points: list[NDArray[np.intp]] = []
    images: list[Array] = []
    for number in spread(np.arange(frames.count), looked_at).tolist():
        chunk = frames.read(number, number + 1)
        if chunk.unreadable:
            continue
        found = np.argwhere(to_host(alone(chunk.frames)[0]))
        # The first frame tells as a rule.
        if (not points and not len(found)) or len(found) > _LARGEST_SHARE * frames.shape[0] * frames.shape[1]:
            return frames
        points.append(found)
        images.append(chunk.frames[0])
    # What stays on its pixel, as warm pixels do that stand out in some frames only, says nothing of hits.
    moved = [_not_in(one, other) for one, other in pairwise(points)]
    number = sum(
        min(len(some), len(_not_in(points[i + 1], points[i]))) - 1 for i, some in enumerate(moved) if len(some)
    )
    if number < _FEWEST:
        return None
    # A point that lies on one pixel here may lie on two there.
    paired = [i for i, some in enumerate(moved) if len(some) and len(points[i + 1])]
    peaks = {i: brightest(images[i + 1], _PEAKS * len(points[i + 1])) for i in paired}
    common = sum(_in_common(moved[i], peaks[i]) - 1 for i in paired)
    number = sum(len(moved[i]) - 1 for i in paired)
    if number < _FEWEST or common > _IN_COMMON * number:
        return frames
    return HitFreeFrames(frames, float(np.median([len(each) for each in points])))


def _not_in(one: NDArray[np.intp], other: NDArray[np.intp]) -> NDArray[np.intp]:
    """Points (n, 2) but for those that others (m, 2) are, too."""
    is_other = (one[:, None] == other).all(axis=2).any(axis=1)
    found: NDArray[np.intp] = one[~is_other]
    return found


def _in_common(one: NDArray[np.intp], other: NDArray[np.intp]) -> int:
    """Points (n, 2) that the best displacement puts on others (m, 2), to a pixel."""
    moves = (other[None] - one[:, None]).reshape(-1, 2)
    moves -= moves.min(axis=0) - 1
    votes = np.zeros(moves.max(axis=0) + 2, dtype=np.intp)
    np.add.at(votes, tuple(moves.T), 1)
    rows = votes[:-2] + votes[1:-1] + votes[2:]
    return int((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]).max())
