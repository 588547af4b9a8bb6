"""The matrix of a run of ``xcorr unmix``, and what its rows are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.filtering.spectra import condition_number, inverted_spectra
from xcorr_app.filtering.stains import stain_matrix
from xcorr_app.filtering.unmix import checked_matrix
from xcorr_app.io.mixing_matrix import read_matrix, read_spectra

_ILL_CONDITIONED = 100


class Mixing(NamedTuple):
    """A matrix."""

    matrix: np.ndarray
    names: tuple[str, ...]
    """Of the rows; empty where they are not known."""
    condition_number: float | None = None
    """Of the spectra that were given; None where there are none."""

    @property
    def notes(self) -> list[str]:
        """How far noise grows when spectra are separated."""
        if self.condition_number is None:
            return []
        advice = "; the dyes can hardly be told apart, expect noise" * (self.condition_number > _ILL_CONDITIONED)
        return [f"Condition number of the spectra: {self.condition_number:.3g}{advice}"]


def mixing_of(options: UnmixOptions) -> Mixing:
    """Read or look up the matrix."""
    if options.stain is not None:
        return Mixing(*stain_matrix(options.stain))
    if options.matrix is not None:
        table, file = read_matrix(options.matrix), options.matrix
    else:
        assert options.spectra is not None  # noqa: S101 - one of the three is given
        table, file = read_spectra(options.spectra), options.spectra
    try:
        if options.matrix is not None:
            return Mixing(checked_matrix(table.matrix), table.names)
        inverse = checked_matrix(inverted_spectra(table.matrix))
        return Mixing(inverse, table.names, condition_number(table.matrix))
    except ArgumentError as error:
        raise InputError(f"{file}: {error}") from error


def misfit(shape: tuple[int, ...], channels: int, options: UnmixOptions) -> str:
    """Say what a matrix of this shape needs in place of so many channels, and what may have been meant."""
    rows, columns = shape
    if options.stain:
        return f"stains {options.stain} needs {columns}"
    needs = f"{options.spectra or options.matrix} needs {columns}"
    if rows != channels:
        return needs
    if options.spectra:
        return f"{needs}; it fits when transposed: give one row per channel and one column per dye"
    return (
        f"{needs}; it fits when transposed: --matrix takes one row per channel of the result; spectra as measured, "
        "one column per dye, are for --spectra"
    )
