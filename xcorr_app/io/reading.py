"""Several planes of a stack read at once, those of one file together."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, cast

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.opened import is_of_system
from xcorr_app.io.series import FilesSource, UnusableFile
from xcorr_app.io.tiff.tiff import TiffImage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xcorr_app.io.checksum import Checksums
    from xcorr_app.io.source import ImageFile, ReadsTogether, Source


def read_planes(
    source: Source, positions: Sequence[dict[str, int]], out: np.ndarray, checksums: Checksums | None = None
) -> dict[int, InputError]:
    """Read planes at positions (t, z, c) into `out`, one entry each; those that cannot be read become zeros.

    Returns their errors by number in `positions`; `checksums` are told of the bytes of TIFF files that are read. Raises
    InputError where the system is at fault: a stack that went on without such a plane would be recorded as finished.
    """
    errors: dict[int, InputError] = {}
    if not isinstance(source, FilesSource):
        for i, position in enumerate(positions):
            try:
                out[i] = source.plane(**position)
            except InputError as error:
                out[i], errors[i] = 0, _of_file(error)
        return errors
    places = [source.page_of(**position) for position in positions]
    start = 0
    for _, group in groupby(places, lambda place: id(place[0])):
        of_one = list(group)
        stop = start + len(of_one)
        found = _read_file(of_one[0][0], [page for _, page in of_one], out[start:stop], checksums)
        errors |= {start + i: error for i, error in found.items()}
        start = stop
    return errors


def is_plain(source: Source) -> bool:
    """Whether planes are read as they are stored, from one file: a few threads are as fast as many.

    Planes that must be decoded, and those of many files, are read the faster the more do.
    """
    source = getattr(source, "source", source)  # that of a `HeldSource`
    if not isinstance(source, FilesSource) or len(source.paths) > 1:
        return False
    file, _ = source.page_of(0, 0, 0)
    return isinstance(file, TiffImage) and bool((file.data_offsets >= 0).all())


def _read_file(
    file: ImageFile | UnusableFile, pages: list[int], out: np.ndarray, checksums: Checksums | None
) -> dict[int, InputError]:
    """Read pages of one file: together, and where that fails one by one, so that only damaged ones are lost."""
    checksum = None if checksums is None else checksums.of(file.path)
    together: ReadsTogether | None = getattr(file, "read_into", None) and cast("ReadsTogether", file)
    if together is not None:
        try:
            together.read_into(pages, out, checksum)
        except InputError as error:
            if len(pages) == 1:
                out[0] = 0
                return {0: _of_file(error)}
        else:
            return {}
    errors: dict[int, InputError] = {}
    for i, page in enumerate(pages):
        try:
            out[i] = file.read(page)
        except InputError as error:
            out[i], errors[i] = 0, _of_file(error)
    return errors


def _of_file(error: InputError) -> InputError:
    """Return an error that says that a file is damaged or missing; raise one of the system, which may pass."""
    if is_of_system(error):
        raise error
    return error
