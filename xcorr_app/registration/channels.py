"""Shifts of one stack from several of its channels: each is measured, and trusted ones are averaged by their errors.

Where a shift's errors are normal, the mean weighted by their inverse squares is the most likely shift, as the highest
place of the channels' correlation planes would be, added by the same weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration import quality
from xcorr_app.registration.results.results import ShiftResult

_ONE_FRAME = re.compile(r"frame \(?(?P<number>\d+)\)?$")
"""How references are described, of templates as well, by whose shifts one frame has none."""
_APART, _SIGMAS = 0.25, 5.0
"""Channels disagree where they are farther apart than this many pixels, and than so many of their standard errors."""
_EXACT = 1e-4
"""Smallest standard error, in pixels, that is believed: a frame against itself has none."""


def combined(results: Sequence[ShiftResult], names: Sequence[str]) -> ShiftResult:
    """Make one result of those of several channels, whose names are given.

    A frame that no channel trusts has the shift and the flags of the one with the highest score. Where trusted channels
    disagree it is flagged ``inconsistent``. Checks by the FFT are those of the first channel.
    """
    if len(results) == 1:
        return results[0]
    results = [results[0], *(_from_the_same_frame(other, results[0]) for other in results[1:])]
    trusted = np.stack([result.trusted for result in results])
    shifts = np.stack([result.shifts for result in results])
    sigma = np.maximum(np.stack([np.nan_to_num(result.sigma, nan=np.inf, posinf=np.inf) for result in results]), _EXACT)
    weights = np.where(trusted[:, :, None], 1 / sigma**2, 0.0)
    # Standard errors may be unknown; then trusted channels count alike.
    weights = np.where((weights.sum(axis=0) > 0)[None], weights, trusted[:, :, None].astype(float))
    total = weights.sum(axis=0)
    known = total > 0
    mean = (weights * np.nan_to_num(shifts)).sum(axis=0) / np.where(known, total, 1.0)
    best = np.argmax([np.nan_to_num(result.score, nan=-np.inf) for result in results], axis=0)
    frames = np.arange(shifts.shape[1])

    def of_best(name: str) -> Any:
        return np.stack([getattr(result, name) for result in results])[best, frames]

    disagree = _disagree(shifts, sigma, trusted)
    flags = tuple(
        _flags([result.flags[t] for result in results], int(best[t]), bool(trusted[:, t].any()), bool(disagree[t]))
        for t in frames
    )
    first = results[0]
    note = f"Measured on {len(results)} channels ({', '.join(names)}), averaged by their standard errors."
    placed = np.where(known, mean, shifts[best, frames])
    return replace(
        first,
        shifts=placed,
        fft_shifts=placed + (first.fft_shifts - first.shifts),
        sigma=np.where(known, np.sqrt(1 / np.where(known, total, 1.0)), of_best("sigma")),
        score=of_best("score"),
        peak_ratio=of_best("peak_ratio"),
        significance=of_best("significance"),
        wrong=of_best("wrong"),
        non_finite=np.stack([result.non_finite for result in results]).max(axis=0),
        flags=flags,
        notes=tuple(dict.fromkeys([note, *(note for result in results for note in result.notes)])),
        unreadable={
            t: reason for result in results for t, reason in result.unreadable.items() if not trusted[:, t].any()
        },
    )


def _from_the_same_frame(result: ShiftResult, first: ShiftResult) -> ShiftResult:
    """Shifts onto the frame that the first channel was compared with, where a channel did not show that one."""
    both = result.trusted & first.trusted
    ours, theirs = (_ONE_FRAME.search(each.reference) for each in (result, first))
    if ours is None or theirs is None or int(ours["number"]) == int(theirs["number"]) or not both.any():
        return result
    apart = np.median((first.shifts - result.shifts)[both], axis=0)
    return replace(result, shifts=result.shifts + apart, fft_shifts=result.fft_shifts + apart)


def _disagree(shifts: NDArray[np.float64], sigma: NDArray[np.float64], trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(T,) whether two trusted channels are too far apart."""
    found = np.zeros(shifts.shape[1], dtype=bool)
    for i in range(len(shifts)):
        for j in range(i):
            both = trusted[i] & trusted[j]
            distance = np.abs(np.nan_to_num(shifts[i]) - np.nan_to_num(shifts[j]))
            error = np.hypot(sigma[i], sigma[j])
            found |= both & (distance > np.maximum(_APART, _SIGMAS * error)).any(axis=1)
    return found


def _flags(of_channels: list[tuple[str, ...]], best: int, trusted: bool, disagree: bool) -> tuple[str, ...]:
    if not trusted:
        return of_channels[best]
    remarks = dict.fromkeys(word for flags in of_channels if quality.is_trusted(flags) for word in flags)
    return (*((quality.INCONSISTENT,) if disagree else ()), *remarks)
