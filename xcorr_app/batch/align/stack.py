"""One stack: measured, tabulated, moved, pictured."""

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from xcorr_app.batch.align.frames import (
    SourceFrames,
    check_correction,
    corrected,
    correction_of,
    frames_along,
    reference_of,
    settled,
)
from xcorr_app.batch.align.motions import Registration, measured_by_motion, measured_by_patches
from xcorr_app.batch.align.moving import MovingResult, move_stack
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.projections import Projections
from xcorr_app.errors import InputError
from xcorr_app.io import SeriesSpec, Source, make_folder
from xcorr_app.io.outputs import output_ending
from xcorr_app.io.source import runs_of
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import StackResult, Work
from xcorr_app.registration.assessment import Assessment, assessment_of
from xcorr_app.registration.channels import combined
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.parts.masks import two_motions
from xcorr_app.registration.parts.tile_agreement import DIFFERS
from xcorr_app.registration.quality import is_trusted
from xcorr_app.registration.reference.reference_names import reference_frame
from xcorr_app.registration.results.frame_table import rows_of, shifts_csv
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.solver.basis import PATCHES, is_more_than_a_shift
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.needs import check_memory
from xcorr_app.report.records import FrameRow, StackReport
from xcorr_app.report.summary import count

_BECAME = {
    "interpolate": "moved by what is expected to be least wrong, of what was measured and the shift interpolated "
    "between the frames around",
    "apply": "moved by the shift interpolated between measured ones",
    "leave": "left in place",
    "drop": "dropped from the written stack, which holds frames {kept}",
}
_NOTHING_KEPT = (
    "{name}: none of its {frames} frames has a shift that can be trusted, and --doubtful drop leaves nothing to write; "
    "look at the flags with --no-apply, or use --doubtful interpolate"
)


def align_stack(
    spec: SeriesSpec, work: Work[AlignOptions], resources: StackResources, frames: SourceFrames
) -> StackResult:
    """Measure one series of frames, move them into its folder and tell of it."""
    options, folder = work.options, work.out / spec.name
    check_correction(options, frames)
    with resources.step("measure"):
        measured = _WAYS.get(options.model, measured_by_motion)(frames, options, resources)
    # Table, report, resumed report and moved stack all hold to the same rounded numbers: who applies the table
    # to the input gets the output, and a rounding error of 1e-8 px does not push an edge row out of the frame.
    rows = tuple(rows_of(measured.result, options.policy, frames.origins()))
    make_folder(folder)
    files = {"shifts.csv": shifts_csv(rows).encode()} | (measured.warped.files if measured.warped else {})
    moved, projections, assessment, target = _moved(spec, options, folder, frames, measured, rows, resources)
    for name, content in files.items():
        resources.write_bytes(folder / name, content)
    result = measured.result
    notes = [*spec.notes, *_notes(frames, result, options), *resources.notes, *moved.notes]
    notes += _notes_on_moving(rows, options, moved)
    report = _report(spec.name, options, frames, measured, rows, assessment, tuple(notes))
    facts = {
        "frames": frames.count,
        "engine": result.engine,
        "reference": report.reference,
        "assessment": assessment.as_record(),
        "closure_px": _closure(result),
        "clipped_pixels": moved.clipped,
        "moving": moved.decision and moved.decision.as_record(),
        "non_finite_pixels": int(result.non_finite.sum()),
        "unreadable": {str(frame): reason for frame, reason in result.unreadable.items()},
    }
    outputs = [folder / name for name in files] + ([] if target is None else [target])
    return StackResult(facts, outputs, report, projections)


def measured_by_shifts(frames: SourceFrames, options: AlignOptions, resources: StackResources) -> Registration:
    """Measure shifts: of the channels that are named, together."""
    settings, xp = options.settings, frames.xp
    if xp is np:
        window = settings.window(frames.shape)
        check_memory(settings.measured_shape(frames.shape), window, verified=options.verified != "none")
    correction = correction_of(options, frames.frames)

    def estimated(own: SourceFrames, frames: Frames) -> ShiftResult:
        how: Any = {"xp": xp, "verify": options.verified, "progress": resources.progress}
        return estimate_from(corrected(frames, correction), reference_of(options, own), settings, **how)

    first = estimated(frames, settled(frames.frames))
    others = [frames_along(frames.source, frames.axis, c, xp) for c in other_channels(options, frames)]
    results = [first, *(estimated(other, resources.on_device(other, xp)) for other in others)]
    names = frames.source.metadata.channel_names
    labels = [names[c] if c < len(names) else str(c) for c in (each.channel for each in (frames, *others))]
    return Registration(combined(results, labels), correction)


_WAYS = {"translation": measured_by_shifts, PATCHES: measured_by_patches}
"""How a motion is measured; the others are motions of whole frames."""


def _moved(
    spec: SeriesSpec,
    options: AlignOptions,
    folder: Path,
    frames: SourceFrames,
    measured: Registration,
    rows: Sequence[FrameRow],
    resources: StackResources,
) -> tuple[MovingResult, Projections | None, Assessment, Path | None]:
    """Move the frames, as far as that is wanted, and assess what came of it; what was gathered; the file written."""
    result, warped = measured.result, measured.warped
    moves = np.array([(row.applied_dy, row.applied_dx) for row in rows])
    if options.apply and not np.isfinite(moves).any():
        raise InputError(_NOTHING_KEPT.format(name=spec.name, frames=frames.count))
    ending = output_ending(options.format.partition(":")[0], frames.source.metadata)
    target = folder / f"{spec.name}_aligned{ending}" if options.apply else None
    covers, defects, warps = moves, result.defects, None
    if warped is not None:
        covers, defects = np.where(np.isfinite(moves), 0.0, np.nan), None
        warps = warped.warp, warped.back or warped.warp
    flagged, settings = [row.frame for row in rows if row.is_flagged], options.settings
    projections = None
    if options.report == "full":
        masks = settings.masks if result.counted is None else Masks.of(result.counted)
        projections = Projections(frames.shape, covers, flagged, settings.roi, defects, masks, warps)
    moved = MovingResult(0, None, None)
    if projections is not None or target is not None:
        with resources.step("move"):
            moved = move_stack(
                frames,
                moves,
                options,
                target,
                resources,
                unreadable=result.unreadable,
                projections=projections,
                warp=None if warped is None else warped.warp,
                correction=measured.correction if options.correct else None,
            )
    resources.close()
    with resources.step("assess"):
        assessment = assessment_of(None if projections is None else projections.sums, settings, frames.shape, result)
        if projections is not None:
            projections.finish()
    return moved, projections, assessment, target


def _report(
    name: str,
    options: AlignOptions,
    frames: SourceFrames,
    measured: Registration,
    rows: tuple[FrameRow, ...],
    assessment: Assessment,
    notes: tuple[str, ...],
) -> StackReport:
    source, result, warped = frames.source, measured.result, measured.warped
    return StackReport(
        name=name,
        description=_description(source, frames),
        rows=rows,
        assessment=assessment,
        reference=_described_reference(options, result, frames),
        max_shift=(float(result.window.dy_max), float(result.window.dx_max)),
        pixel_size=source.metadata.pixel_size,
        unit=source.metadata.unit,
        tolerance=options.settings.tolerance,
        notes=notes,
        interval=_interval(source, frames.axis),
        tiles=_tiles(result),
        bends=None if warped is None else warped.bends,
        is_quick=options.report == "quick",
        left_out=result.left_out,
        reference_frame=reference_frame(options.reference, result.reference),
        sigma_limit=options.settings.sigma_limit(result.shifts[result.trusted]),
        turns=None if warped is None else warped.turns,
    )


def other_channels(options: AlignOptions, frames: SourceFrames) -> list[int]:
    """Channels that are measured beside the first."""
    if options.more_channels is None:
        return [channel for channel in range(frames.source.sizes["C"]) if channel != frames.channel]
    return [channel for channel in dict.fromkeys(options.more_channels) if channel != frames.channel]


def _tiles(result: ShiftResult) -> tuple[tuple[float, ...], ...] | None:
    """Share of the frames in which each tile differs; None where the frames move as one."""
    if not two_motions(result.tiles):
        return None
    compared = np.isfinite(result.tiles).sum(axis=0)
    share = (result.tiles == DIFFERS).sum(axis=0) / np.where(compared > 0, compared, np.nan)
    return tuple(tuple(round(value, 3) for value in row) for row in share.tolist())


def _description(source: Source, frames: SourceFrames) -> str:
    sizes = source.sizes
    parts = [f"{frames.count} frames" if frames.count != 1 else "1 frame", f"{sizes['Y']} x {sizes['X']}"]
    parts += [f"{sizes[axis]} {word}" for axis, word in (("C", "channels"),) if sizes[axis] > 1]
    if frames.averaged > 1:
        parts.append(f"{frames.averaged} {'Z planes' if frames.axis == 'T' else 'time points'}")
    return ", ".join([*parts, str(source.metadata.dtype)])


def _described_reference(options: AlignOptions, result: ShiftResult, frames: SourceFrames) -> str:
    if isinstance(options.reference, Path):
        return f"file {options.reference.name}"
    single = re.fullmatch(r".*frame \((\d+)\)", result.reference)
    if single is None:
        return result.reference
    name, page = frames.origin(int(single[1]))
    return f"{result.reference}, page {page} of {name}"


def _interval(source: Source, axis: str) -> tuple[float, str] | None:
    """Time or depth from one frame to the next, where the file says so."""
    known = source.metadata
    step, unit = (known.time_increment, known.time_unit) if axis == "T" else (known.z_step, known.z_unit)
    return (step, unit) if step and unit and 0 < step < np.inf else None


def _closure(result: ShiftResult) -> dict[str, float | int] | None:
    """By how much measurements contradict each other, for ``run.json``; None where nothing is known of that."""
    if result.closure is None or not np.isfinite(result.closure).any():
        return None
    known = np.flatnonzero(np.isfinite(result.closure))
    worst, last = int(known[result.closure[known].argmax()]), int(known[-1])
    found = {"median": float(np.median(result.closure[known])), "largest": float(result.closure[worst])}
    return {**found, "largest_at_frame": worst, "last": float(result.closure[last]), "last_frame": last}


def _notes(frames: SourceFrames, result: ShiftResult, options: AlignOptions) -> list[str]:
    """What a user should know of how frames were measured."""
    window, largest, length = result.window, options.settings.max_shift, options.settings.smooth_time
    whole = is_more_than_a_shift(options.model) and options.model != PATCHES
    cut = largest is not None and bool(np.any(np.ceil(largest) > [window.dy_max, window.dx_max]))
    channels, replaced = frames.source.sizes["C"], int(result.non_finite.sum())
    before = {
        f"--max-shift does not limit --motion {options.model}: shifts of up to half the frame are searched.": (
            whole and largest is not None
        ),
        f"Shifts up to {window.dy_max} rows and {window.dx_max} columns were searched (the default, a quarter of "
        "the measured part on each axis; --max-shift changes it).": not whole and largest is None,
        "The window of shifts is larger than the measured part; it was cut to what overlaps at all.": not whole and cut,
    }
    after = {
        f"Each frame was averaged with those around it for measuring (--smooth-time {length}).": length > 1,
        f"Measured on the mean of {frames.averaged} {'Z planes' if frames.axis == 'T' else 'time points'}; all of "
        "them are moved alike.": frames.averaged > 1,
        f"One frame, so there is nothing to align. The file says that its {channels} images are channels, which "
        "move together; if they are frames, let its header say so (ImageJ: Image > Properties; tifffile: "
        "metadata={'axes': 'TYX'}).": frames.count == 1 and channels > 1,
        f"{replaced} NaN or infinite pixels were replaced by the mean of their frame for measuring only.": replaced > 0,
    }
    unreadable = [f"Frame {frame} is unreadable: {reason}." for frame, reason in list(result.unreadable.items())[:5]]
    return [*_holding(before), *result.notes, *_holding(after), *unreadable]


def _holding(notes: dict[str, bool]) -> list[str]:
    """Those that hold."""
    return [note for note, holds in notes.items() if holds]


def _notes_on_moving(rows: Sequence[FrameRow], options: AlignOptions, moved: MovingResult) -> list[str]:
    """What a user should know of how frames were moved."""
    replaced = [row for row in rows if not row.as_measured]
    moves = any(row.is_moved or row.is_dropped for row in replaced)
    kept = runs_of([row.frame for row in rows if not row.is_dropped])
    became = _BECAME[options.policy].format(kept=kept) if moves else "left in place"
    which = shorten(runs_of([row.frame for row in replaced]), 60, placeholder=" ...")
    doubted = f"{count(len(replaced), 'frame')} without a shift that can be trusted ({which})"
    if not moves and any(is_trusted(row.flags) for row in replaced):
        doubted = "Most frames have no shift that can be trusted, so that none is moved: all"
    height, width = moved.area or (slice(0, 0), slice(0, 0))
    clipped = f"{moved.clipped} interpolated pixels did not fit the data type and were clipped to its range."
    notes = {
        f"{doubted}: {became} (--doubtful {options.policy}).": bool(replaced),
        clipped: moved.clipped > 0,
        f"Cropped to rows {height.start}:{height.stop} and columns {width.start}:{width.stop}.": moved.area is not None,
    }
    return _holding(notes) if options.apply else []
