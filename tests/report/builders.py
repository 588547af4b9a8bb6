"""Small records to build reports from."""

import dataclasses
import math
from typing import Any

import numpy as np

from xcorr_app.registration.assessment import Assessment, BeforeAfter
from xcorr_app.report.records import FrameRow, Pictures, RunReport, StackReport

NAN = math.nan


def row(frame: int = 0, **changes: Any) -> FrameRow:
    plain = FrameRow(
        frame=frame,
        source="cells.tif",
        page=frame,
        dy=0.5 * frame,
        dx=-0.25 * frame,
        score=0.95,
        peak_ratio=2.5,
        fft_dy=0.5 * frame,
        fft_dx=-0.25 * frame + 0.001,
        difference=0.001,
        flags=(),
        sigma_y=0.01,
        sigma_x=0.02,
        applied_dy=0.0,
        applied_dx=0.0,
    )
    changed = dataclasses.replace(plain, **changes)
    applied = {"applied_dy": changed.dy, "applied_dx": changed.dx} | changes
    return dataclasses.replace(changed, **applied)


def unread(frame: int = 0, **changes: Any) -> FrameRow:
    """A frame of which nothing is known."""
    empty = {"dy": NAN, "dx": NAN, "score": NAN, "peak_ratio": NAN, "sigma_y": NAN, "sigma_x": NAN}
    empty |= {"applied_dy": 0.0, "applied_dx": 0.0}
    return row(frame, **empty, fft_dy=NAN, fft_dx=NAN, difference=NAN, flags=("unreadable",), **changes)


def pictures(shape: tuple[int, int] = (12, 16), flagged: tuple[int, ...] = ()) -> Pictures:
    random = np.random.default_rng(7)

    def image(*size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.random(size, dtype=np.float32)

    return Pictures(image(*shape), image(*shape), thumbnails={frame: image(*shape) for frame in flagged})


def preview(frames: int = 6, shape: tuple[int, int] = (12, 16)) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(8).integers(0, 256, (frames, 2, *shape), dtype=np.uint8)


def assessment(**changes: Any) -> Assessment:
    plain = Assessment(
        correlation=BeforeAfter(0.7, 0.9),
        crispness=BeforeAfter(0.1, 0.2),
        residual_shift=BeforeAfter(4.0, 0.05),
        registered_again=7,
        sampled=8,
        corrected=0.8,
    )
    return dataclasses.replace(plain, **changes)


def stack(name: str = "cells", rows: tuple[FrameRow, ...] | None = None, **changes: Any) -> StackReport:
    plain = StackReport(
        name=name,
        description="5 frames, 12 x 16, uint16",
        rows=tuple(row(frame) for frame in range(5)) if rows is None else rows,
        pictures=None,
        reference="first frame",
        max_shift=(8.0, 8.0),
        pixel_size=None,
        unit=None,
        tolerance=0.01,
        notes=(),
        failure=None,
    )
    return dataclasses.replace(plain, **changes)


def failed(name: str = "broken", reason: str = "ends inside page 3") -> StackReport:
    return stack(name, rows=(), description="unknown", failure=reason)


def run(*stacks: StackReport) -> RunReport:
    return RunReport("Registration of cells", (("Device", "CPU, 2 cores"), ("Engine", "fft")), stacks)
