"""One frame, or an image of the user's, that all frames are compared with as it is stored."""

from __future__ import annotations

import numpy as np

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.stack.frames import Frames

SINGLE = ("first", "last")


def read_reference(frames: Frames, reference: str | int | Array, refusal: str) -> tuple[Array, int | None, str]:
    """Image (Y, X), its number among the frames, None of an image that is none of them, and what it is in words.

    `refusal` is what is said of the name of another one.
    """
    if isinstance(reference, str):
        if reference not in SINGLE:
            raise ArgumentError(refusal)
        number = 0 if reference == "first" else frames.count - 1
    elif isinstance(reference, (int, np.integer)):
        number = int(reference)
        if not -frames.count <= number < frames.count:
            raise ArgumentError(f"reference frame {number} does not exist: there are {frames.count}")
        number %= frames.count
    else:
        if reference.shape != frames.shape:
            raise ShapeError(f"reference has shape {reference.shape}: the frames are {frames.shape}")
        return reference, None, "an image"
    chunk = frames.read(number, number + 1)
    if chunk.unreadable:
        raise ArgumentError(f"the reference, frame {number}, cannot be read: {chunk.unreadable[number]}")
    return chunk.frames[0], number, f"{reference if isinstance(reference, str) else 'frame'} ({number})"
