"""A result as a list of named numbers and words: every field of it, large arrays by a few sums."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

_WHOLE = 40
"""Numbers that are kept one by one; of larger arrays sums are."""
_SUMS = 4
_DIGITS = 7

RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""By how much a number may differ: processors and libraries round otherwise, faults are larger."""

Leaf = float | int | str | bool | None


def leaves(value: Any, name: str = "", leave_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, Leaf]]:
    """Every number and word, in the order of the fields; `leave_out` are names of fields that depend on the machine."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        for key, part in value.items():
            if str(key) not in leave_out:
                yield from leaves(part, f"{name}.{key}" if name else str(key), leave_out)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        yield from _array(value, name)
    elif isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        yield from leaves(value.item(), name, leave_out)
    elif isinstance(value, float):
        yield name, _number(value)
    elif value is None or isinstance(value, bool | int | str):
        yield name, value
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"{name}#", len(value)
        if len(value) and all(isinstance(part, int | float) for part in value):
            yield from _array(np.array(value), name)
        else:
            for index, part in enumerate(value):
                yield from leaves(part, f"{name}[{index}]", leave_out)
    elif isinstance(value, bytes):
        yield name, f"{len(value)} bytes {zlib.crc32(value):08x}"
    elif isinstance(value, slice | Path | np.dtype | frozenset | set | range):
        yield name, str(sorted(value) if isinstance(value, frozenset | set) else value)
    else:
        yield from leaves(vars(value), name, leave_out)


def _array(values: np.ndarray, name: str) -> Iterator[tuple[str, Leaf]]:
    yield f"{name}:", f"{values.dtype} {values.shape}"
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag])
    flat = values.astype(np.float64).ravel()
    if flat.size <= _WHOLE:
        for index, number in enumerate(flat.tolist()):
            yield f"{name}[{index}]", _number(number)
        return
    known = np.isfinite(flat)
    yield f"{name}.known", int(known.sum())
    flat = np.where(known, flat, 0.0)
    yield f"{name}.rms", _number(float(np.sqrt(np.mean(flat * flat))))
    place = np.arange(flat.size)
    for turn in range(_SUMS):
        # Weights that no symmetry of an image cancels: multiples of irrational numbers.
        weights = np.cos(place * (2.399963 + 0.7548777 * turn) + turn)
        weights[~known] *= 1.5  # where numbers are missing counts as well
        yield f"{name}.sum{turn}", _number(float((weights * (flat + ~known)).mean()))


def _number(value: float) -> Leaf:
    if not math.isfinite(value):
        return str(value)
    return float(f"{value:.{_DIGITS}g}")


def differences(found: Mapping[str, Leaf], kept: Mapping[str, Leaf]) -> list[str]:
    """One line for every field that differs."""
    lines = [f"{name}: {found[name]!r} is new" for name in found.keys() - kept.keys()]
    lines += [f"{name}: {kept[name]!r} is missing" for name in kept.keys() - found.keys()]
    for name in found.keys() & kept.keys():
        one, other = found[name], kept[name]
        if not _same(one, other, _scale(name, kept)):
            lines.append(f"{name}: {one!r}, not {other!r}")
    return sorted(lines)


def _scale(name: str, kept: Mapping[str, Leaf]) -> float:
    """What a sum is compared with: the numbers that it is of."""
    size = kept.get(f"{name.rpartition('.')[0]}.rms", 0.0) if ".sum" in name else 0.0
    return size if isinstance(size, float) else 0.0


def _same(one: Leaf, other: Leaf, scale: float) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, float | int):
        return one == other
    if not isinstance(other, float | int):
        return False
    return abs(one - other) <= ABSOLUTE * (scale or 1.0) + (0.0 if scale else RELATIVE * abs(other))
