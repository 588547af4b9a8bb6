"""Which filter a run applies: a named one with its numbers, taps from a file, or a bank as ``--bank`` names it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch import choices
from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.filtering import banks, named
from xcorr_app.filtering.taps import Filter
from xcorr_app.io.images.npy import read_numbers
from xcorr_app.io.matrices import read_matrix

TEXT_SUFFIXES = (".csv", ".txt")
_MAX_BYTES_OF_TAPS = 2**26
"""Some eight million taps: more is a picture, named by mistake."""


def read_taps(path: Path) -> NDArray[np.float64]:
    """Read the taps of a filter, (rows, columns), from ``.npy``, ``.csv`` or ``.txt``.

    An array with one axis is a row of taps. Texts are read as :func:`xcorr_app.io.matrices.read_matrix` does.
    """
    suffix = path.suffix.lower()
    if suffix not in (".npy", *TEXT_SUFFIXES):
        raise InputError(f"{path}: taps are read from .npy, {' or '.join(TEXT_SUFFIXES)}; save them as one of these")
    if suffix == ".npy":
        taps = read_numbers(path, (1, 2), "taps are a rectangle of real numbers", _MAX_BYTES_OF_TAPS)
        return _finite(path, taps.reshape(-1, taps.shape[-1]))
    table = read_matrix(path)
    if table.names:
        raise InputError(f"{path}: rows begin with something that is no number: {table.names[0][:60]}")
    return _finite(path, table.matrix)


def _finite(path: Path, taps: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(taps).all():
        raise InputError(f"{path}: holds NaN or infinite values; filters are finite numbers")
    return taps


HIGHEST_FREQUENCY = 0.25
"""Cycles a pixel of the finest waves of ``gabor``; every further scale has them longer by sqrt(2)."""
_MAX_BYTES = 2**30
"""Of a file, so that a picture named by mistake is not taken for a bank."""


class FilterBank(NamedTuple):
    """Filters of one shape, and what each of them is."""

    filters: NDArray[np.float64]
    """(number, rows, columns)."""
    names: tuple[str, ...]
    """One a filter, short, for the channels of the result."""


def parse_bank(text: str) -> FilterBank:
    """Make the bank that ``NAME`` or ``NAME:NUMBERS`` stands for, or read the one in a ``.npy`` file."""
    if _is_file(text):
        path = Path(text)
        form = "a bank is numbers of shape (filters, rows, columns)"
        return _numbered(path.stem, _finite(path, read_numbers(path, (3,), form, _MAX_BYTES)))
    name, colon, numbers = text.partition(":")
    if name not in BANKS:
        raise ArgumentError(f"bank {text!r} is not known: write {', '.join(choices.BANKS)} or FILE.npy")
    try:
        if colon and ":" not in BANKS[name]:
            raise ArgumentError("it takes no numbers")
        return _BANK_MAKERS[name](numbers)
    except ValueError as error:
        reason = f": {error}" if isinstance(error, ArgumentError) else ""
        raise ArgumentError(f"bank {text!r}: write {BANKS[name]}{reason}") from None


def _is_file(bank: str) -> bool:
    return bank.lower().endswith(".npy")


def _numbered(name: str, filters: NDArray[np.float64]) -> FilterBank:
    return FilterBank(filters, tuple(f"{name} {number}" for number in range(len(filters))))


def _gabor(numbers: str) -> FilterBank:
    orientations, scales = map(int, numbers.split(","))
    if not (1 <= orientations <= 64 and 1 <= scales <= 9):
        raise ArgumentError("1 to 64 orientations, 1 to 9 scales")
    frequencies = [HIGHEST_FREQUENCY / math.sqrt(2) ** scale for scale in range(scales)]
    names = [
        f"gabor {wave} {1 / frequency:.3g} px {180 * step / orientations:.4g} deg"
        for frequency in frequencies
        for step in range(orientations)
        for wave in ("cos", "sin")
    ]
    return FilterBank(banks.gabor(frequencies, orientations), tuple(names))


def _derivatives(numbers: str) -> FilterBank:
    sigmas = [float(number) for number in numbers.split(",")]
    if not all(sigma <= 100 for sigma in sigmas):
        raise ArgumentError("sigmas up to 100 px")
    names = [f"d{along} sigma {sigma:g}" for sigma in sigmas for along in ("x", "y", "xx", "xy", "yy")]
    return FilterBank(banks.gaussian_derivatives(sigmas), tuple(names))


def _schmid(_: str) -> FilterBank:
    return FilterBank(banks.schmid(), tuple(f"schmid {sigma} {cycles}" for sigma, cycles in banks.SCHMID_SCALES))


_BANK_MAKERS: dict[str, Callable[[str], FilterBank]] = {
    "gabor": _gabor,
    "derivatives": _derivatives,
    "schmid": _schmid,
    "leung-malik": lambda _: _numbered("leung-malik", banks.leung_malik()),
}
BANKS = {form.partition(":")[0]: form for form in choices.BANKS}
"""How every bank is written."""


@dataclass(frozen=True)
class FilterChoice:
    """A filter and how it was written."""

    name: str
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
    def parse(cls, name: str, argument: str) -> Self:
        """Make the filter `name` of its argument, as in ``("dog", "1,3")``; a file that it names is read here."""
        if name == "taps":
            if not argument:
                raise ArgumentError("taps: the name of the file is empty")
            path = Path(argument)
            return cls(name, read_taps(path), path)
        if name == "bank":
            bank = parse_bank(argument)
            return cls(name, bank.filters[0], Path(argument) if _is_file(argument) else None, bank)
        try:
            return cls(name, _MAKERS[name](argument))
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


_MAKERS: dict[str, Callable[[Any], Filter]] = {
    "gaussian": lambda text: named.gaussian(_one_or_pair(text, "SIGMA or ROWS,COLUMNS")),
    "box": lambda text: named.box(_one_or_pair(text, "SIZE or ROWS,COLUMNS", int)),
    "sobel": named.sobel,
    "laplacian": lambda _: named.laplacian(),
    "log": lambda text: named.log(_one_or_pair(text, "SIGMA or ROWS,COLUMNS")),
    "dog": lambda text: named.dog(*_numbers(text, "SIGMA,SIGMA")),
    "unsharp": lambda text: named.unsharp(*_numbers(text, "SIGMA,AMOUNT")),
}
