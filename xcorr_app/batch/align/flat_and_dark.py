"""Images that frames are corrected by: read, and put before the measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.errors import InputError
from xcorr_app.io import read_stack
from xcorr_app.registration.correction import CorrectedFrames, Correction, correction_for
from xcorr_app.registration.stack.frames import Frames


def correction_of(options: AlignOptions, frames: Frames) -> Correction | None:
    """Correction of a stack; None where none was asked for."""
    if not options.corrects:
        return None
    background = options.background
    return correction_for(
        frames,
        _image(options.flat, options),
        _image(options.dark, options),
        _image(background, options) if isinstance(background, Path) else background,
    )


def corrected(frames: Frames, correction: Correction | None) -> Frames:
    """Frames as they are measured."""
    return frames if correction is None else CorrectedFrames(frames, correction)


def check_correction(options: AlignOptions, frames: SourceFrames) -> None:
    """Refuse to write corrected frames of several channels, of which the images show one."""
    if options.correct and frames.source.sizes["C"] > 1:
        raise InputError(f"{frames.source.paths[0]}: has several channels, and --correct images of one: use --channel")


def _image(path: Path | None, options: AlignOptions) -> NDArray[Any] | None:
    if path is None:
        return None
    stack = read_stack(path, limits=options.limits)
    if stack.data.ndim != 2:
        raise InputError(f"{path}: holds axes {stack.metadata.axes}; to correct by, give a single image")
    return stack.data
