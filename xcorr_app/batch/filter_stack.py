"""One stack: every plane filtered and written, a few planes at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.filter_options import FilterOptions
from xcorr_app.batch.series import plane_positions
from xcorr_app.batch.stack import Stopwatch
from xcorr_app.errors import DamagedFileError, InputError, ShapeError
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.io import SeriesSpec, StackMetadata, StackWriter, make_folder
from xcorr_app.registration.passes import Pass, Progress


def filter_stack(spec: SeriesSpec, options: FilterOptions, target: Path, progress: Progress | None) -> dict[str, Any]:
    """Filter all planes of a series of images into the file `target`, whose folder is made.

    A plane that cannot be read is written as zeros and named in the result; the others are filtered.

    Parameters
    ----------
    spec : SeriesSpec
    options : FilterOptions
    target : Path
    progress : callable or None

    Returns
    -------
    dict
        Counts and times for ``run.json``, as plain values.

    Raises
    ------
    InputError
        If the series, or every plane of it, cannot be read.
    ArgumentError, DataTypeError, ShapeError
        If the filter does not fit the images.
    OutputError
        If the file cannot be written.
    """
    watch = Stopwatch()
    unreadable: dict[str, str] = {}
    clipped = non_finite = 0
    with spec.open() as source:
        positions = plane_positions(source.metadata)
        metadata = written_metadata(source.metadata, options)
        how: Any = {name: getattr(options, name) for name in ("mode", "cval", "dtype", "engine")}

        def job(start: int, stop: int) -> tuple[NDArray[Any], int, dict[int, str]]:
            before = np.zeros((stop - start, *source.metadata.shape[-2:]), source.metadata.dtype)
            damaged: dict[int, str] = {}
            for i, position in enumerate(positions[start:stop]):
                try:
                    before[i] = source.plane(**position)
                except InputError as error:
                    damaged[start + i] = str(error)
            after, count = filter_frames(before, options.choice.taps, **how)
            for plane in damaged:
                after[plane - start] = 0
            return after, count, damaged

        make_folder(target.parent)
        with watch.stage("filter"), StackWriter(target, metadata) as writer:
            rows, columns = source.metadata.shape[-2:]
            walk = Pass(len(positions), rows * columns, on_device=False, progress=progress)
            for after, count, damaged in walk.over("filter", job):
                clipped += count
                if after.dtype.kind == "f":
                    non_finite += after.size - int(np.count_nonzero(np.isfinite(after)))
                unreadable |= {str(plane): reason for plane, reason in damaged.items()}
                if len(unreadable) == len(positions):
                    raise DamagedFileError(next(iter(unreadable.values())))
                for plane in after:
                    writer.write(plane)
    return {
        "seconds": watch.seconds,
        "planes": len(positions),
        "shape": list(metadata.shape),
        "axes": metadata.axes,
        "dtype": metadata.dtype.name,
        "clipped_pixels": clipped,
        "non_finite_pixels": non_finite,
        "unreadable": unreadable,
    }


def written_metadata(metadata: StackMetadata, options: FilterOptions) -> StackMetadata:
    """Metadata of the filtered stack: what was read, but for the size of planes and the type of pixels.

    Raises
    ------
    ShapeError
        If mode ``valid`` leaves nothing of a plane.
    """
    if options.mode == "valid":
        rows, columns = (
            size - taps + 1 for size, taps in zip(metadata.shape[-2:], options.choice.taps.shape, strict=True)
        )
        if rows < 1 or columns < 1:
            raise ShapeError(
                f"planes of {metadata.shape[-2]} x {metadata.shape[-1]} are smaller than the filter of "
                f"{' x '.join(map(str, options.choice.taps.shape))}: nothing is left with --mode valid"
            )
        metadata = metadata.with_plane_shape(rows, columns)
    if options.dtype == "same" or metadata.dtype.name == options.dtype:
        return metadata
    tags = metadata.tiff
    if tags is not None and tags.colormap is not None:
        # A palette is indexed by integers; other values of grey have none.
        tags = replace(tags, photometric=1, colormap=None)
    return replace(metadata, dtype=np.dtype(options.dtype), tiff=tags)
