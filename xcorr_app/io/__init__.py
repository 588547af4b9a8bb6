"""Files and arrays: finding, checking, reading and writing stacks of images."""

from xcorr_app.io.cached_planes import HeldSource, MemoryBudget
from xcorr_app.io.checksum import Checksums
from xcorr_app.io.declared import Limits
from xcorr_app.io.finding.discover import discover
from xcorr_app.io.finding.scan import scan_file
from xcorr_app.io.opened import opened
from xcorr_app.io.series import Discovery, Failure, SeriesSpec, Source
from xcorr_app.io.source import PIXEL_TYPES, StackMetadata
from xcorr_app.io.stack import Stack, read_stack, write_stack
from xcorr_app.io.writing.atomic import atomic_path, atomic_write_bytes, atomic_write_text, make_folder, remove_partials
from xcorr_app.io.writing.write import StackWriter

__all__ = [
    "PIXEL_TYPES",
    "Checksums",
    "Discovery",
    "Failure",
    "HeldSource",
    "Limits",
    "MemoryBudget",
    "SeriesSpec",
    "Source",
    "Stack",
    "StackMetadata",
    "StackWriter",
    "atomic_path",
    "atomic_write_bytes",
    "atomic_write_text",
    "discover",
    "make_folder",
    "opened",
    "read_stack",
    "remove_partials",
    "scan_file",
    "write_stack",
]
