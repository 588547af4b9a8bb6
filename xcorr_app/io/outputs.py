"""Which kind of file a stack is written as, what it is called, and the writer of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from xcorr_app.errors import ArgumentError
from xcorr_app.io.checksum import files_below
from xcorr_app.io.names import ZARR
from xcorr_app.io.ome_zarr.zarr_write import ZarrWriter
from xcorr_app.io.source import Meter, StackMetadata
from xcorr_app.io.writing.write import StackWriter
from xcorr_app.io.writing.written_planes import BYTES_WAITING

Writer: TypeAlias = StackWriter | ZarrWriter

ENDINGS = {"same": ".tif", "ome-tiff": ".ome.tif", "ome-zarr": ".ome.zarr"}
"""Of what is written, by format; ``same`` is OME-Zarr for what was read from that, and TIFF for all else."""


def output_ending(form: str, metadata: StackMetadata) -> str:
    """Ending of the name of what is written in a format."""
    return ENDINGS["ome-zarr" if form == "same" and metadata.zarr is not None else form]


def new_writer(
    path: Path,
    metadata: StackMetadata,
    *,
    compression: str | None = None,
    pyramid: int = 1,
    later: Callable[[Any], None] | None = None,
    meter: Meter | None = None,
    waiting: int = BYTES_WAITING,
    waited: Callable[[str, float], None] | None = None,
) -> Writer:
    """Return the writer of the kind that a name promises; `pyramid` levels are written into OME-Zarr alone.

    So many bytes of a TIFF file may be `waiting` to be written; for how long who writes `waited` then is told.
    """
    if path.suffix == ZARR:
        return ZarrWriter(path, metadata, compression=compression, pyramid=pyramid, later=later, meter=meter)
    if pyramid > 1:
        raise ArgumentError(f"{path}: pyramids are written into OME-Zarr: --format ome-zarr:N")
    how: Any = {"compression": compression, "later": later, "meter": meter, "waiting": waiting, "waited": waited}
    return StackWriter(path, metadata, **how)


def output_files(path: Path) -> list[Path]:
    """Files of an output: itself, or all that a folder holds."""
    return list(files_below(path)) if path.is_dir() else [path]
