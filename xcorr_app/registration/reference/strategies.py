"""The references that frames can be measured against, and the passes that each takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.light.even_light import EvenlyLitFrames, LitImage
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.references import FixedImage
from xcorr_app.registration.reference.neighbours import against_neighbours
from xcorr_app.registration.reference.reference_names import parse_reference
from xcorr_app.registration.reference.template import Outcome, against_template, instead
from xcorr_app.registration.stack.frames import Chunk
from xcorr_app.registration.stack.preparation import NoUsableFrameError, Reference, prepare


def measured_against(
    measurement: Measurement, reference: str | int | Array, verified: NDArray[np.bool_], begin: int = 0
) -> Outcome:
    """Measure all frames against what is asked for, in as many passes as it takes; `verified` ones also by other means.

    A template is begun with frame `begin`, or the next one that can be.
    """
    frames, settings = measurement.frames, measurement.settings
    if isinstance(reference, (int, np.integer)) and not isinstance(reference, bool):
        return _numbered(measurement, int(reference), verified)
    if not isinstance(reference, str):
        return _image(measurement, reference, verified)
    name, number = parse_reference(reference)
    everything = range(frames.count)
    try:
        if name in ("first", "last"):
            return _one_frame(measurement, name, everything if name == "first" else everything[::-1], verified)
        if name not in ("mean", "template"):
            return against_neighbours(measurement, name, number, verified)
        found = against_template(measurement, begin, verified, from_mean=name == "mean")
        if found is not None:
            return found
        measured, described, notes = _one_frame(measurement, "only", everything, verified)
        return measured, described, (*notes, f"There is no other usable frame to take the {name} of.")
    except NoUsableFrameError as error:
        nothing = FixedImage(measurement.xp.zeros(settings.measured_shape(frames.shape)))
        return measurement.run(nothing, verified), "none", (str(error),)


def _one_frame(measurement: Measurement, wanted: str, candidates: range, verified: NDArray[np.bool_]) -> Outcome:
    number, image = measurement.prepared.first_usable(candidates)
    reference: Reference = FixedImage(image)
    if isinstance(measurement.frames, EvenlyLitFrames) and measurement.settings.contrast.sigma is None:
        reference = LitImage(image, number, measurement.frames, measurement.settings)
    measured = measurement.run(reference, verified)
    return measured, f"{wanted} frame ({number})", instead(candidates[0], number)


def _numbered(measurement: Measurement, number: int, verified: NDArray[np.bool_]) -> Outcome:
    count = measurement.frames.count
    if not -count <= number < count:
        raise ArgumentError(f"reference frame {number} does not exist: the stack has frames 0 to {count - 1}")
    number %= count
    try:
        return _one_frame(measurement, "", range(number, number + 1), verified)[0], f"frame {number}", ()
    except NoUsableFrameError:
        raise ArgumentError(f"frame {number} cannot be the reference: it is unreadable or flat") from None


def _image(measurement: Measurement, image: Array, verified: NDArray[np.bool_]) -> Outcome:
    shape = measurement.frames.shape
    if array_namespace(image) is not measurement.xp:
        raise ArgumentError("the reference image must be the same kind of array as the stack")
    working_dtype(image)
    if image.shape != shape:
        raise ShapeError(f"the reference image has shape {image.shape}, frames have {shape}: they must be equal")
    prepared = prepare(Chunk(0, image[None], {}), measurement.settings)
    if not prepared.usable[0]:
        raise ArgumentError("the reference image has the same value everywhere, or no finite value")
    return measurement.run(FixedImage(prepared.frames[0]), verified), "image", ()
