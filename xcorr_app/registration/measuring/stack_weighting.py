"""One weighting of frequencies for a whole stack, from a few of its frames and what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.weighting import LAGS, QUIET, WEIGHED_FRAMES, autocorrelations, weighting_kernel
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.measuring.references import FixedImage, Reference
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.preparation import AT_ONCE, PreparedFrames, prepare


class StackWeighting:
    """Remembers the autocorrelations of frames from one run to the next."""

    def __init__(self, frames: Frames, prepared: PreparedFrames, settings: Settings, xp: Any) -> None:
        self._frames, self._prepared, self._settings, self._xp = frames, prepared, settings, xp
        self._autocorrelation: dict[tuple[int, ...], NDArray[np.float64] | None] = {}
        self._last: tuple[Array, NDArray[np.float64]] | None = None
        """The last image that was no frame, and its autocorrelation."""

    def kernel(self, reference: Reference, quiet: float = QUIET) -> NDArray[np.float64] | None:
        """Weighting of frequencies for the whole stack, from a few of its frames and what they are compared with.

        None where less than the share `quiet` of their variance is noise.
        """
        shape = self._settings.measured_shape(self._frames.shape)
        if self._settings.weighting == "none" or self._settings.normalization != "zncc" or min(shape) <= 2 * LAGS:
            return None
        numbers = spread(np.arange(self._frames.count), WEIGHED_FRAMES[reference.is_stored]).tolist()
        image = reference.image[None] if isinstance(reference, FixedImage) else None
        own, right = self._autocorrelations(image, tuple(numbers))
        if right is None:
            return None
        if own is not None:
            return weighting_kernel(own, right, quiet=quiet)
        left = []
        # Means without one of the frames are all alike.
        for number in numbers if reference.is_stored else numbers[:1]:
            prepared = prepare(self._frames.read(number, number + 1), self._settings)
            if prepared.usable[0]:
                left.append(autocorrelations(reference.images(number, prepared)[:1])[0])
        if not left:
            return None
        return weighting_kernel(np.median(left, axis=0), right, left_is_white=reference.is_stored, quiet=quiet)

    def _autocorrelations(
        self, image: Array | None, numbers: tuple[int, ...]
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Of an image (1, h, w), and the median of these frames, kept for the next run; None where none is usable."""
        own = None
        if numbers not in self._autocorrelation:
            found: list[NDArray[np.float64]] = []
            many = len(numbers) > AT_ONCE
            for i in range(0, len(numbers), AT_ONCE):
                usable = self._prepared.usable(numbers[i : i + AT_ONCE])
                # Every step costs as much time as a small image, so that this one takes its place among the frames.
                beside = image is not None and bool(usable) and usable[0].dtype == image.dtype and not many
                if beside:
                    usable.append(image)
                if usable:
                    found.extend(autocorrelations(self._xp.concatenate(usable), many=many))
                if beside:
                    own = found.pop()
            self._autocorrelation[numbers] = np.median(found, axis=0) if found else None
        right = self._autocorrelation[numbers]
        if own is None and image is not None and right is not None:
            # Of the same image it is asked again by what is fitted; a device would be waited for.
            known = self._xp is np and self._last is not None and np.array_equal(self._last[0], image)
            own = self._last[1] if known and self._last is not None else autocorrelations(image)[0]
        self._last = None if image is None or own is None else (image, own)
        return own, right
