"""Which filter a run applies: a named one with its numbers, or taps from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.filter.banks import FilterBank, parse_bank, read_taps
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering import named
from xcorr_app.filtering.taps import Filter


@dataclass(frozen=True)
class FilterChoice:
    """A filter and how it was written."""

    name: str
    """One of `FILTERS`."""
    argument: str
    """Numbers, axis or file, as written; empty where the filter has none."""
    taps: Filter | NDArray[np.float64] = field(repr=False, compare=False)
    """What :func:`xcorr_app.filtering.convolve.convolve` takes; for a bank, one of its filters."""
    file: Path | None = None
    """Where the taps were read from."""
    bank: FilterBank | None = field(default=None, repr=False, compare=False)
    """Many filters at once, where they were asked for."""

    @property
    def is_derivative(self) -> bool:
        """Whether the sum of the taps is zero by the filter's nature, so that results lie around zero."""
        return self.name in ("sobel", "laplacian", "log", "dog")

    @classmethod
    def parse(cls, name: str, argument: str) -> FilterChoice:
        """Make the filter `name` of its argument, as in ``("dog", "1,3")``; a file that it names is read here."""
        if name not in FILTERS:
            raise ArgumentError(f"unknown filter {name!r}: use one of {', '.join(FILTERS)}")
        if name == "taps":
            if not argument:
                raise ArgumentError("taps: the name of the file is empty")
            path = Path(argument)
            return cls(name, argument, read_taps(path), path)
        if name == "bank":
            bank = parse_bank(argument)
            return cls(name, argument, bank.filters[0], bank.file, bank)
        try:
            return cls(name, argument, _MAKERS[name](argument))
        except ArgumentError as error:
            raise ArgumentError(f"{name} {argument!r}: {error}") from None


def _numbers(text: str, form: str, kind: Callable[[str], Any] = float) -> list[Any]:
    """Read as many numbers, separated by commas, as one of the forms in ``A,B or C`` shows."""
    counts = {part.count(",") + 1 for part in form.split(" or ")}
    try:
        values = [kind(number) for number in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in counts:
        raise ArgumentError(f"write {form}{', whole numbers' if kind is int else ''}")
    return values


def _one_or_pair(text: str, form: str, kind: Callable[[str], Any] = float) -> Any:
    values = _numbers(text, form, kind)
    return values[0] if len(values) == 1 else tuple(values)


def _sobel(text: str) -> Filter:
    if text not in ("y", "x"):
        raise ArgumentError("write y (down the rows) or x (along the columns)")
    return named.sobel("y" if text == "y" else "x")


def _laplacian(text: str) -> Filter:
    if text:
        raise ArgumentError("it takes no argument")
    return named.laplacian()


_MAKERS: dict[str, Callable[[str], Filter]] = {
    "gaussian": lambda text: named.gaussian(_one_or_pair(text, "SIGMA or ROWS,COLUMNS")),
    "box": lambda text: named.box(_one_or_pair(text, "SIZE or ROWS,COLUMNS", int)),
    "sobel": _sobel,
    "laplacian": _laplacian,
    "log": lambda text: named.log(_one_or_pair(text, "SIGMA or ROWS,COLUMNS")),
    "dog": lambda text: named.dog(*_numbers(text, "SIGMA,SIGMA")),
    "unsharp": lambda text: named.unsharp(*_numbers(text, "SIGMA,AMOUNT")),
}

FILTERS = (*_MAKERS, "taps", "bank")
"""Names of filters: those with numbers, then ``taps`` for a file and ``bank`` for many at once."""
