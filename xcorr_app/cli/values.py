"""Kinds of values that options take, and how their text is read; nothing here imports what computes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices
from xcorr_app.correlation.engine_names import canonical_engine
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from xcorr_app.registration.settings import Roi


class Value(click.ParamType):  # type: ignore[type-arg]  # older releases of click know no argument
    """An option value read by a function that raises `ArgumentError` or `ValueError`."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Show the name as it is written."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text; a value that is no text was made by us and is kept."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ArgumentError, ValueError) as error:
            self.fail(str(error), param, ctx)


class Engine(click.Choice):  # type: ignore[type-arg]  # older releases of click know no argument
    """The name of an engine of correlation; names of earlier releases are still taken."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the name, and return it as the table of engines has it."""
        return super().convert(canonical_engine(value), param, ctx)


def _path(text: str) -> Path:
    if not text:
        # pathlib takes an empty name for the current folder, which is not what an unset shell variable means.
        raise ArgumentError("is empty; name a file or a folder (. is the current one)")
    return Path(text)


def _max_shift(text: str) -> float | tuple[float, float]:
    numbers = text.split(",")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 2 or not all(0 <= value < 1e9 for value in values):
        raise ArgumentError(f"{text!r}: give pixels, or rows,columns, zero or more")
    return values[0] if len(values) == 1 else (values[0], values[1])


def _roi(text: str) -> Roi:
    parts = []
    for part in text.split(","):
        start, colon, stop = part.partition(":")
        if not colon or not all(end == "" or end.isdecimal() for end in (start, stop)):
            raise ArgumentError(f"{text!r}: write rows and columns as Y0:Y1,X0:X1, counted from 0")
        parts.append(slice(int(start) if start else None, int(stop) if stop else None))
    if len(parts) != 2:
        raise ArgumentError(f"{text!r}: write rows and columns as Y0:Y1,X0:X1, counted from 0")
    return parts[0], parts[1]


def _reference(text: str) -> str | int | Path:
    if text in choices.REFERENCES:
        return text
    if text.partition(":")[0] in choices.NUMBERED_REFERENCES:
        from xcorr_app.registration.reference.reference_names import parse_reference

        parse_reference(text)
        return text
    digits = text.removeprefix("-")
    if digits.isdecimal():
        return int(text)
    if os.path.exists(text):  # noqa: PTH110 - unlike Path.exists, takes names that are too long
        return Path(text)
    raise ArgumentError(
        f"{text!r} is neither {', '.join(choices.REFERENCES)}, rolling:N, pairs:K, nor a frame number, nor an existing "
        "file"
    )


def _verify(text: str) -> str | int:
    if text in ("auto", "all", "none"):
        return text
    if text.isdecimal():
        return int(text)
    raise ArgumentError(f"{text!r}: use auto, all, none or a number of frames")


def _mask(text: str) -> Any:
    if os.path.exists(text):  # noqa: PTH110 - unlike Path.exists, takes names that are too long
        return Path(text)
    from xcorr_app.registration.masked.rules import Masks

    Masks.of(text)
    return text


def _channels(text: str) -> tuple[int, tuple[int, ...] | None]:
    """Channel that is measured and shown, and the others; None: all."""
    if text == "sum":
        return 0, None
    if not all(number.isdecimal() and len(number) < 6 for number in text.split(",")):
        raise ArgumentError(f"{text!r}: give the number of a channel, counted from 0, several such as 0,2, or sum")
    numbers = [int(number) for number in text.split(",")]
    return numbers[0], tuple(numbers[1:])


def _channel(text: str) -> Any:
    from xcorr_app.io.single_channel import parse_channel

    return parse_channel(text)


def _prefilter(text: str) -> Any:
    from xcorr_app.registration.stack.prefilter import Prefilter

    return Prefilter.parse(text)


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ArgumentError(f"{text!r}: give a size such as 500MB or 2GB")
    return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


PATH = Value("PATH", _path)
SIZE = Value("SIZE", _size)
MAX_SHIFT = Value("PX | PXY,PXX", _max_shift)
ROI = Value("Y0:Y1,X0:X1", _roi)
REFERENCE = Value("first|last|mean|median|template|previous|rolling:N|pairs:K|INDEX|FILE", _reference)
VERIFY = Value("auto|all|none|N", _verify)
BACKGROUND = Value("median|FILE", lambda text: text if text == "median" else _path(text))
CHANNELS = Value("N[,N...]|sum", _channels)
MASK = Value("nonzero|finite|saturated|threshold:V|FILE", _mask)
CHANNEL = Value("R|G|B|gray|N", _channel)
PREFILTER = Value("NAME:ARGS", _prefilter)
