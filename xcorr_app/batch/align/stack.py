"""One stack: measured, tabulated, moved, pictured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.align.frames import SourceFrames, choose_axis
from xcorr_app.batch.align.moving import Moved, move_stack
from xcorr_app.batch.align.no_pictures import NoPictures
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.projections import Projections
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import SeriesSpec, Source, make_folder, scan_file
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.results import ShiftResult
from xcorr_app.report.records import FrameRow, StackReport
from xcorr_app.report.summary import count
from xcorr_app.report.table import parse_shifts_csv, shifts_csv

_BECAME = {
    "interpolate": "moved by what lies between the shifts of trusted neighbours in time",
    "apply": "moved by what lies between measured shifts",
    "leave": "left in place",
}


def align_stack(
    spec: SeriesSpec, options: AlignOptions, device: Device, folder: Path, resources: StackResources
) -> tuple[StackReport, list[Path], dict[str, Any]]:
    """Align one series of frames into `folder`; returns its report, the files begun, and facts for ``run.json``."""
    progress = resources.progress
    with resources.open(spec.open()) as source:
        axis = choose_axis(source, options.axis)
        frames = SourceFrames(source, axis, options.align_channel, device.xp)
        reference = reference_of(options, frames)
        with resources.step("measure"), resources.on_device(frames, device.xp) as measured:
            result = estimate_from(
                measured, reference, options.settings, xp=device.xp, verify=options.verify, progress=progress
            )
        # Table, report, resumed report and moved stack all hold to the same rounded numbers: who applies the table
        # to the input gets the output, and a rounding error of 1e-8 px does not push an edge row out of the frame.
        table = shifts_csv(_rows(frames, result, options.doubtful))
        rows = parse_shifts_csv(table)
        moves = np.array([(row.applied_dy, row.applied_dx) for row in rows])
        make_folder(folder)
        outputs = [folder / "shifts.csv"]
        resources.write_text(outputs[0], table)
        target = folder / f"{spec.name}_aligned.tif" if options.apply else None
        full = options.report == "full"
        projections = (
            NoPictures()
            if not full
            else Projections(frames.count, frames.shape, [row.frame for row in rows if row.flags])
        )
        moved = Moved(0, None)
        if full or target is not None:
            with resources.step("move"):
                moved = move_stack(
                    frames, moves, options, target, result.unreadable, projections, progress, resources.writer
                )
        if target is not None:
            outputs.append(target)
        notes = [
            *_notes(frames, result, options),
            *resources.notes,
            *moved.notes,
            *_notes_on_moving(rows, options, moved),
        ]
        report = StackReport(
            name=spec.name,
            description=_description(source, frames),
            rows=rows,
            pictures=projections.pictures(),
            reference=_described_reference(options, result),
            max_shift=(float(result.window.dy_max), float(result.window.dx_max)),
            pixel_size=source.metadata.pixel_size,
            unit=source.metadata.unit,
            tolerance=options.settings.tolerance,
            notes=tuple(notes),
            failure=None,
            is_quick=options.report == "quick",
        )
    facts = {
        "frames": frames.count,
        "engine": result.engine,
        "reference": report.reference,
        "clipped_pixels": moved.clipped,
        "non_finite_pixels": int(result.non_finite.sum()),
        "unreadable": {str(frame): reason for frame, reason in result.unreadable.items()},
    }
    return report, outputs, facts


def reference_of(options: AlignOptions, frames: SourceFrames) -> str | int | Array:
    """Reference as the measurement takes it; a file is read here."""
    if not isinstance(options.reference, Path):
        return options.reference
    image = scan_file(options.reference, options.limits)
    sizes = image.metadata.sizes
    if sizes["T"] * sizes["Z"] > 1:
        raise InputError(f"{options.reference}: holds {sizes['T'] * sizes['Z']} images; a reference is a single one")
    channel = options.align_channel if sizes["C"] > 1 else 0
    if channel >= sizes["C"]:
        raise InputError(f"{options.reference}: has {sizes['C']} channels; --align-channel {channel} does not exist")
    plane = image.read(image.page_at(0, 0, channel))
    if plane.shape != frames.shape:
        raise InputError(
            f"{options.reference}: is {plane.shape[0]} x {plane.shape[1]}, the frames are "
            f"{frames.shape[0]} x {frames.shape[1]}; the reference must have the size of a frame"
        )
    return frames.xp.asarray(plane)


def _rows(frames: SourceFrames, result: ShiftResult, doubtful: str) -> Iterator[FrameRow]:
    applied = result.applied(doubtful)
    for t, (dy, dx) in enumerate(result.shifts.tolist()):
        source, page = frames.origin(t)
        verified = bool(np.isfinite(result.fft_shifts[t]).all())
        yield FrameRow(
            frame=t,
            source=source,
            page=page,
            dy=dy,
            dx=dx,
            score=float(result.score[t]),
            peak_ratio=float(result.peak_ratio[t]),
            fft_dy=float(result.fft_shifts[t, 0]) if verified else None,
            fft_dx=float(result.fft_shifts[t, 1]) if verified else None,
            difference=float(result.difference[t]) if verified else None,
            flags=result.flags[t],
            sigma_y=float(result.sigma[t, 0]),
            sigma_x=float(result.sigma[t, 1]),
            applied_dy=float(applied[t, 0]),
            applied_dx=float(applied[t, 1]),
        )


def _description(source: Source, frames: SourceFrames) -> str:
    sizes = source.sizes
    parts = [f"{frames.count} frames" if frames.count != 1 else "1 frame", f"{sizes['Y']} x {sizes['X']}"]
    parts += [f"{sizes[axis]} {word}" for axis, word in (("C", "channels"),) if sizes[axis] > 1]
    if frames.averaged > 1:
        parts.append(f"{frames.averaged} {'Z planes' if frames.axis == 'T' else 'time points'}")
    return ", ".join([*parts, str(source.metadata.dtype)])


def _described_reference(options: AlignOptions, result: ShiftResult) -> str:
    return f"file {options.reference.name}" if isinstance(options.reference, Path) else result.reference


def _notes(frames: SourceFrames, result: ShiftResult, options: AlignOptions) -> Iterator[str]:
    if options.settings.max_shift is None:
        window = result.window
        yield (
            f"Shifts up to {window.dy_max} rows and {window.dx_max} columns were searched (the default, a quarter of "
            "the measured part on each axis; --max-shift changes it)."
        )
    elif np.any(np.ceil(options.settings.max_shift) > [result.window.dy_max, result.window.dx_max]):
        yield "The window of shifts is larger than the measured part; it was cut to what overlaps at all."
    yield from result.notes
    if frames.averaged > 1:
        across = "Z planes" if frames.axis == "T" else "time points"
        yield f"Measured on the mean of {frames.averaged} {across}; all of them are moved alike."
    if replaced := int(result.non_finite.sum()):
        yield f"{replaced} NaN or infinite pixels were replaced by the mean of their frame for measuring only."
    for frame, reason in list(result.unreadable.items())[:5]:
        yield f"Frame {frame} is unreadable: {reason}."


def _notes_on_moving(rows: Sequence[FrameRow], options: AlignOptions, moved: Moved) -> Iterator[str]:
    if not options.apply:
        return
    if replaced := [row for row in rows if not row.as_measured]:
        moves = any(row.applied_dy or row.applied_dx for row in replaced)
        became = _BECAME[options.doubtful] if moves else "left in place"
        yield f"{count(len(replaced), 'frame')} without a shift to trust: {became} (--doubtful {options.doubtful})."
    if moved.clipped:
        yield f"{moved.clipped} interpolated pixels did not fit the data type and were clipped to its range."
    if moved.area is not None:
        height, width = moved.area
        yield f"Cropped to rows {height.start}:{height.stop} and columns {width.start}:{width.stop}."
