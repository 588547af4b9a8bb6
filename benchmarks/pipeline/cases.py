"""The commands that are timed, and the stacks that each works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.pipeline.data import write_pages, write_stacks

_ALIGN = ("align", "--max-shift", "16")


@dataclass(frozen=True)
class Size:
    """How much is worked on."""

    stacks: int
    frames: int
    side: int


@dataclass(frozen=True)
class Case:
    """One command.

    Attributes
    ----------
    name
        What the table calls it.
    command
        Its words, without input and output.
    make
        Writes the input of a size into a folder, and returns how many frames (or planes) it has.
    bound
        What of the raw rates bounds it: ``read``, ``write`` or ``decode``.
    """

    name: str
    command: tuple[str, ...]
    make: Callable[[Path, Size], int]
    bound: str


def _stacks(folder: Path, size: Size) -> int:
    return write_stacks(folder, size.stacks, size.frames, size.side)


def _small(folder: Path, size: Size) -> int:
    return write_stacks(folder, size.stacks * size.frames // 10, 10, size.side)


def cases(at: Path) -> tuple[Case, ...]:
    """Every case; small files that commands need are written to the folder `at`."""
    taps, matrix = at / "taps.csv", at / "matrix.csv"
    rng = np.random.default_rng(0)
    np.savetxt(taps, rng.normal(size=(7, 7)), delimiter=",")
    np.savetxt(matrix, np.eye(4) * 1.5 - 0.1, delimiter=",")
    measured = (*_ALIGN, "--no-apply", "--verify", "none")
    return (
        Case(
            "start: one stack of ten frames",
            _ALIGN,
            lambda folder, size: write_stacks(folder, 1, 10, size.side),
            "read",
        ),
        Case("measured", measured, _stacks, "read"),
        Case("measured, no report", (*measured, "--report", "none"), _stacks, "read"),
        Case("checked", (*_ALIGN, "--no-apply", "--report", "none"), _stacks, "read"),
        Case("default", _ALIGN, _stacks, "write"),
        Case("default, quick report", (*_ALIGN, "--report", "quick"), _stacks, "write"),
        Case("unchecked, no report", (*_ALIGN, "--verify", "none", "--report", "none"), _stacks, "write"),
        Case("template", (*measured, "--reference", "template", "--report", "none"), _stacks, "read"),
        Case(
            "deflated input",
            (*measured, "--report", "none"),
            lambda folder, size: write_stacks(folder, size.stacks, size.frames, size.side, compression="zlib"),
            "decode",
        ),
        Case(
            "one long stack",
            (*measured, "--report", "none"),
            lambda folder, size: write_stacks(folder, 1, size.stacks * size.frames, size.side),
            "read",
        ),
        Case("stacks of ten", (*measured, "--report", "none"), _small, "read"),
        Case("stacks of ten, six processes", (*measured, "--report", "none", "--cluster", "local:6"), _small, "read"),
        Case(
            "single pages",
            (*measured, "--report", "none"),
            lambda folder, size: write_pages(folder, size.stacks * size.frames, size.side),
            "read",
        ),
        Case("filter --gaussian 2", ("filter", "--gaussian", "2"), _stacks, "write"),
        Case("filter --taps 7x7", ("filter", "--taps", str(taps)), _stacks, "write"),
        Case(
            "unmix, 4 channels",
            ("unmix", "--matrix", str(matrix)),
            lambda folder, size: write_stacks(folder, size.stacks, size.frames // 4, size.side, channels=4),
            "write",
        ),
    )
