"""Which pixels of a stack cannot be the scene, whatever the shifts are: looked for before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.outlier_pixels import look
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.estimate_masked import takes_masks
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.measuring.measured import spread
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Frames, HeldFrames, SmoothedFrames, held_if_few
from xcorr_app.registration.weights.borders import SURE, in_borders, without_rims
from xcorr_app.registration.weights.defects import defects, hits
from xcorr_app.registration.weights.filling import DEVIATIONS, NOISE_OF_STEPS, FilledFrames, filled, stands_out
from xcorr_app.registration.weights.lines import MIN_SIDE, SAMPLE_STEPS, in_words, may_be_stuck, stuck_lines
from xcorr_app.registration.weights.overlay import MIN_SHARE, overlay

_SAMPLED_FRAMES, _GLANCED_FRAMES = 16, 3
"""Frames spread over the stack; and those that tell as a rule."""
_MIN_SIDE, _MIN_SIDE_OF_AREAS = 16, 32
"""Rows and columns below which nothing is looked for, and nothing that is drawn."""
_MASKED, _FILLED = 0.6, 0.7
"""Share of the picture that is drawn, beyond which the rest is measured by itself (at an SNR of 0.3 errors are twice
those of filled frames, at 10 they are 0.8 times); and where that cannot be, beyond which nothing is filled."""
_WHOLE: Roi = (slice(None), slice(None))
_DONE = "always at the same places, were replaced by their neighbours for measuring"


@dataclass(frozen=True)
class MeasuredStack:
    """A stack as it is measured."""

    frames: Frames
    reference: str | int | Array
    """What is drawn into frames, and their borders, are taken off an image, too."""
    notes: tuple[str, ...] = ()
    drawn: bool = False
    """Whether something is drawn into all frames."""
    masks: Masks | None = None
    """Pixels that count, where they are few."""
    inner: Roi | None = None
    """What is left of frames without borders along their rims; None where that is all, or a part was asked for."""
    defects: NDArray[np.intp] | None = None
    """(n, 2) row and column of hot and dead pixels; None where there are none."""


class Sample(NamedTuple):
    """What few frames tell: of most stacks, that there is nothing to find."""

    stands_out: bool = False
    """Whether a pixel of the first is far beyond those around it."""
    line_may_be_stuck: bool = False
    held: bool = False
    """Whether enough pixels have one value in all of them, or a row or column at the rim of one has."""


def weighted(frames: Frames, reference: str | int | Array, settings: Settings) -> MeasuredStack:
    """Fill what is drawn, borders, stuck lines and pixels, and single hits; average over time where asked for.

    Only the defects of a camera are looked for where `contrast` is not ``auto``.
    """
    found = MeasuredStack(frames, reference)
    # Differences of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        seen = glance(frames)
        if any(seen if settings.contrast.auto else seen[:2]):
            # Not by any(), for which CuPy compiles CUB, three seconds where its cache is empty.
            images = {n: image for n, image in _read(frames, _SAMPLED_FRAMES).items() if image.min() != image.max()}
            if len(images) > 1:
                found = _looked_at(found, images, seen, settings)
    length = settings.smooth_time
    return found if length == 1 else replace(found, frames=SmoothedFrames(found.frames, length))


def glance(frames: Frames) -> Sample:
    """Look at a few frames: where they show nothing, no others are looked at.

    A device looks at them by kernels of its own, which find the same.
    """
    images = (
        list(_read(frames, _GLANCED_FRAMES).values()) if frames.count > 1 and min(frames.shape) >= _MIN_SIDE else []
    )
    if not images:
        return Sample()
    lines, areas = (min(frames.shape) >= smallest for smallest in (MIN_SIDE, _MIN_SIDE_OF_AREAS))
    if isinstance(frames, ArrayFrames) and is_device_array(images[0]) and name_of(frames.dtype) in INPUT_TYPES:
        compared = tuple(images) if areas and len(images) == _GLANCED_FRAMES else ()
        said = look(images[0], DEVIATIONS * NOISE_OF_STEPS, SAMPLE_STEPS, compared)
        if said.varies:
            frames.vary.add(0)
        held = said.held is None or said.held > MIN_SHARE or said.even_edge
        return Sample(said.stands_out, lines and said.line_may_be_stuck, areas and held)
    return Sample(stands_out(images[0]), lines and all(map(may_be_stuck, images)), areas and _may_hold(images))


def _read(frames: Frames, count: int) -> dict[int, Array]:
    """At most so many frames (Y, X) by number, spread over a stack, and so are the first three and five of them."""
    numbers = spread(np.arange(frames.count), _SAMPLED_FRAMES)
    ordered = dict.fromkeys([*numbers[[0, -1, len(numbers) // 2, len(numbers) // 4, -len(numbers) // 4]], *numbers])
    chunks = {int(number): frames.read(int(number), int(number) + 1) for number in list(ordered)[:count]}
    return {number: chunk.frames[0] for number, chunk in chunks.items() if not chunk.unreadable}


def _may_hold(images: list[Array]) -> bool:
    """Whether images (h, w) hold enough of their pixels, or have an edge of one value."""
    xp, same = array_namespace(images[0]), images[0] == images[-1]
    for image in images[1:-1]:
        same &= image == images[0]
    edges = [edge == edge[0] for image in images for edge in (image[0], image[-1], image[:, 0], image[:, -1])]
    # One download: each costs a device's host as much as the frames take.
    return bool(to_host(xp.stack([same.mean() > MIN_SHARE, *(edge.all() for edge in edges)])).any())


def _looked_at(given: MeasuredStack, chosen: dict[int, Array], seen: Sample, settings: Settings) -> MeasuredStack:
    """Find out by the chosen frames (h, w), by number, what all hold that is no scene."""
    each = list(chosen.values())
    images = array_namespace(each[0]).stack(each)
    notes, reference, roi, borders, inner = list[str](), given.reference, settings.roi or _WHOLE, False, None
    hidden = np.zeros(images.shape[1:], dtype=bool)
    if settings.contrast.auto and seen.held:
        held = to_host(images)
        hidden[roi] = overlay(held[:, *roi])
        # Borders that stand still are drawn as other things are.
        borders = bool((in_borders(held, SURE) & ~hidden).any())
        if settings.roi is None:
            inner = without_rims(hidden | in_borders(held).any(axis=0) if borders else hidden)
    if drawn := bool(hidden.any()):
        notes.append(
            f"Left out of the measurement: {100 * hidden.mean():.1f} % of the picture, which is drawn into every frame "
            "and not seen by the camera (it holds the same values throughout: captions, a frame around the picture)."
        )
    masks = None
    if hidden.mean() > _MASKED and takes_masks(reference, settings):
        masks, inner = Masks.of(~hidden), None
    elif hidden.mean() > _FILLED:
        notes, hidden, drawn, inner = [], np.zeros_like(hidden), False, None
    if borders:
        notes.append(
            "Left out of the measurement: borders of a single value, which frames that were moved before are filled "
            "with."
        )
    still = FilledFrames(given.frames, hidden, borders)
    frames = held_if_few(still, images) if notes else given.frames
    if notes:
        images = frames.chunk.frames[list(chosen)] if isinstance(frames, HeldFrames) else still.filled(images)
        if not isinstance(reference, (str, int, np.integer)):
            reference = still.filled(reference[None])[0]
    if seen.line_may_be_stuck and (lines := stuck_lines(images)).any():
        notes.append(f"Stuck lines of the camera, {_DONE}: {in_words(lines)}.")
        images, hidden = filled(images, lines[None]), hidden | lines
    places, points = defects(images) if seen.stands_out else (np.zeros_like(hidden), [])
    if len(found := np.argwhere(places)):
        some = ", ".join(f"({y}, {x})" for y, x in found[:5])
        notes.append(f"{len(found)} hot or dead pixels, {_DONE}: row and column {some}{', ...' * (len(found) > 5)}.")
    if number := hits(images, points) if settings.contrast.auto else 0.0:
        notes.append(
            f"Single pixels that are hit in one frame alone (cosmic rays, spikes; about {number:.0f} a frame) "
            "were replaced by their neighbours for measuring."
        )
    if notes and (number or (places | (hidden ^ still.hidden)).any()):
        frames = held_if_few(FilledFrames(given.frames, hidden | places, borders, hits=number > 0), images)
    return MeasuredStack(frames, reference, tuple(notes), drawn, masks, inner, found if len(found) else None)
