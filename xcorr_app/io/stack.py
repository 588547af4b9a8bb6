"""Whole stacks in memory: the short way in and out for scripts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.io.declared import Limits
from xcorr_app.io.finding.scan import Channel, scan_for
from xcorr_app.io.source import PIXEL_TYPES, StackMetadata, plane_positions
from xcorr_app.io.writing.write import StackWriter

_DEFAULT_AXES = {2: "YX", 3: "TYX"}


@dataclass(frozen=True, eq=False)
class Stack:
    """A stack in memory: `data` has the axes and the shape that `metadata` names."""

    data: np.ndarray
    metadata: StackMetadata


def read_stack(path: Path | str, *, limits: Limits | None = None, channel: Channel | None = None) -> Stack:
    """Read one TIFF, PNG, BMP, JPEG or ``.npy`` file.

    Parameters
    ----------
    path
        A file; its kind is told by its content.
    limits
        On pixels of a plane and number of planes; checked before memory is taken.
    channel
        ``"R"``, ``"G"``, ``"B"`` or ``"gray"`` (ITU-R BT.601) of colour images, or the number of a channel; all
        channels without it, and colour images are refused.

    Returns
    -------
    Stack
        Array in the file's own order of axes, without axes of size one, native byte order.

    Raises
    ------
    InputError
        When the file is missing or not something to measure (colour, unusual pixels).
    DamagedFileError
        When it holds less than it declares, or a page cannot be decoded.
    LimitError
        When it declares more than the limits allow.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from xcorr_app.io import read_stack, write_stack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_stack(folder + "/noise.tif", np.zeros((4, 8, 9), np.uint16))
    ...     read_stack(folder + "/noise.tif").metadata.axes
    'TYX'
    """
    file = scan_for(channel)(Path(path), limits or Limits())
    metadata = file.metadata
    data = np.empty(metadata.shape, metadata.dtype)
    for plane, at in zip(data.reshape(-1, *metadata.shape[-2:]), plane_positions(metadata), strict=True):
        plane[...] = file.read(file.page_at(at["t"], at["z"], at["c"]))
    return Stack(data, metadata)


def write_stack(path: Path | str, data: np.ndarray, metadata: StackMetadata | None = None) -> None:
    """Write an array as a TIFF file, whole or not at all; an existing file is replaced.

    Parameters
    ----------
    path
        File name; the folder must exist.
    data
        (Y, X), (T, Y, X), or any shape that `metadata` names.
    metadata
        As `read_stack` gave it, or made for the purpose; decides between OME-TIFF, ImageJ and plain TIFF, which is
        what there is without it. A file that is called ``.ome.tif`` is OME-TIFF.

    Raises
    ------
    ArgumentError
        When array and metadata do not agree, or the type of pixel is not one that is written.
    OutputError
        When the file cannot be written; nothing is left behind then.
    """
    if metadata is None:
        axes = _DEFAULT_AXES.get(data.ndim)
        if axes is None or data.dtype.name not in PIXEL_TYPES or 0 in data.shape:
            raise ArgumentError(
                f"{path}: an array of shape {data.shape} and type {data.dtype} needs metadata; without it, (Y, X) or "
                f"(T, Y, X) of {', '.join(PIXEL_TYPES)} are written"
            )
        metadata = StackMetadata(axes, data.shape, data.dtype.newbyteorder("="))
    if (data.shape, data.dtype.newbyteorder("=")) != (metadata.shape, metadata.dtype):
        raise ShapeError(
            f"{path}: the array is {data.shape} {data.dtype}, its metadata say {metadata.shape} {metadata.dtype}"
        )
    with StackWriter(path, metadata) as writer:
        for position in np.ndindex(*metadata.shape[:-2]):
            writer.write(data[position])
