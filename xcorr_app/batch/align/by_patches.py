"""One stack whose parts move otherwise: measured by patches, and what its files say of that."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import BegunStack, SourceFrames
from xcorr_app.batch.align.measured import Measured, Warped, as_shifts, measured_by
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.field.field_image import PixelSize, ome_tiff
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.result_file import content_of
from xcorr_app.registration.patches.patches import patches_of
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.warp import ByFields
from xcorr_app.report.records import Bends

FILES = ("motion.npz", "patches.csv", "field.csv", "field.ome.tif")
"""In the folder of a stack's results; the last two on request."""
ENGINE = "patches"
_TOLD = (
    "Measured by patches; shifts are the means of each frame's field (see patches.csv for its size, motion.npz for the "
    "field)."
)


def measured_by_patches(begun: BegunStack, options: AlignOptions, resources: StackResources) -> Measured:
    """Measure the shifts of patches."""

    def tell(frames: SourceFrames, result: MotionResult) -> tuple[Warped, ShiftResult]:
        field = result.field
        assert field is not None  # noqa: S101 - patches always have one
        applied = field.applied(result.trusted, options.doubtful)
        # What is moved later by this file moves as this stack does.
        kept = replace(result, doubtful=options.doubtful)
        files = {"motion.npz": content_of(kept), "patches.csv": _frames_csv(frames, result, field).encode()}
        if "csv" in options.field_formats:
            files["field.csv"] = _field_csv(field, applied).encode()
        if "ome-tiff" in options.field_formats:
            metadata = frames.source.metadata
            files["field.ome.tif"] = _field_image(field, PixelSize.of(metadata.pixel_size, metadata.unit))
        warp = ByFields(applied, field.rows, field.columns)
        warped = Warped(warp, files, _seen_by_all(applied, frames.shape), _bends(field, result.trusted))
        return warped, as_shifts(result, ENGINE, _TOLD, settings.window(frames.shape))

    settings = options.settings
    measure = partial(patches_of, options=options.patches, max_sigma=settings.sure_sigma, max_shift=settings.max_shift)
    return measured_by(measure, tell, begun, options, resources)


def _frames_csv(frames: SourceFrames, result: MotionResult, field: Field) -> str:
    """A line for each frame: how much its parts differ from its mean shift, and how well they are known."""
    away = np.hypot(*np.moveaxis(_from_mean(field), 3, 0)).reshape(len(result.flags), -1)
    spread = field.sigma.reshape(len(away), -1)
    significance = field.significance.reshape(len(away), -1)
    trusted = field.trusted.reshape(len(away), -1).mean(axis=1)
    named: dict[str, NDArray[np.float64]] = {
        "score": result.score,
        "overlap": result.overlap,
        "trusted_patches": trusted,
        "rms_bend": np.sqrt((away**2).mean(axis=1)),
        "max_bend": away.max(axis=1),
        "median_sigma": np.median(spread, axis=1),
        "max_sigma": spread.max(axis=1),
        "median_significance": _median_known(significance),
    }
    rows = []
    for t, flags in enumerate(result.flags):
        numbers = [f"{values[t]:.6f}" if np.isfinite(values[t]) else "" for values in named.values()]
        rows.append([t, *frames.origin(t), *numbers, "|".join(flags)])
    return _csv(["frame", "source", "page", *named, "flags"], rows)


def _field_csv(field: Field, applied: NDArray[np.float64]) -> str:
    """A line for each node of each frame; row and column of a node are those of the reference."""
    rows: list[list[Any]] = []
    for t, (measured, moved) in enumerate(zip(field.shifts, applied, strict=True)):
        for i, row in enumerate(field.rows):
            for j, column in enumerate(field.columns):
                numbers = (*measured[i, j], *field.sigma[t, i, j], *moved[i, j])
                shown = [f"{value:.6f}" if np.isfinite(value) else "" for value in numbers]
                rows.append([t, f"{row:g}", f"{column:g}", *shown, int(field.trusted[t, i, j])])
    names = ("dy", "dx", "sigma_y", "sigma_x", "applied_dy", "applied_dx", "trusted")
    return _csv(["frame", "row", "column", *names], rows)


def _field_image(field: Field, size: PixelSize) -> bytes:
    """The same at the middles of the patches, which lie evenly: the nodes at the edges of the frame are left out."""
    rows, columns = (slice(1, -1) if nodes.size > 2 else slice(None) for nodes in (field.rows, field.columns))
    shifts, sigma = field.shifts[:, rows, columns], field.sigma[:, rows, columns]
    channels = {"dy": shifts[..., 0], "dx": shifts[..., 1], "sigma_y": sigma[..., 0], "sigma_x": sigma[..., 1]}
    channels["trusted"] = field.trusted[:, rows, columns].astype(np.float64)
    return ome_tiff(channels, field.rows[rows], field.columns[columns], size)


def _csv(head: list[str], rows: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace").decode("utf-8")


def _from_mean(field: Field) -> NDArray[np.float64]:
    """Shifts (T, gy, gx, 2) less the mean of their frame."""
    away: NDArray[np.float64] = field.shifts - field.shifts.mean(axis=(1, 2), keepdims=True)
    return away


def _median_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each row without its NaN; NaN where there is nothing else."""
    known = np.isfinite(values)
    return np.array([np.median(row[ok]) if ok.any() else np.nan for row, ok in zip(values, known, strict=True)])


def _bends(field: Field, trusted: NDArray[np.bool_]) -> Bends | None:
    """What the report draws; None where no frame is to be trusted."""
    if not trusted.any():
        return None
    away = _from_mean(field)
    size = np.hypot(away[..., 0], away[..., 1])
    most = int(np.where(trusted, np.square(size).mean(axis=(1, 2)), -1.0).argmax())
    return Bends(
        rows=tuple(field.rows.tolist()),
        columns=tuple(field.columns.tolist()),
        frame=most,
        arrows=tuple(tuple((float(dy), float(dx)) for dy, dx in line) for line in away[most].round(4)),
        size=tuple(map(tuple, np.median(size[trusted], axis=0).round(4).tolist())),
    )


def _seen_by_all(shifts: NDArray[np.float64], shape: tuple[int, int]) -> tuple[slice, slice]:
    """A part of the reference that every frame shows; the middle where there is none."""
    kept = shifts[np.isfinite(shifts).all(axis=(1, 2, 3))]
    parts = []
    for axis, size in enumerate(shape):
        along = kept[..., axis] if len(kept) else np.zeros(1)
        first, last = int(np.ceil(max(along.max(), 0.0))), size - int(np.ceil(max(-along.min(), 0.0)))
        parts.append(slice(first, last) if last - first > 1 else slice(size // 2, size // 2 + 1))
    return parts[0], parts[1]
