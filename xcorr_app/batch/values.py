"""Values that are written in a form of their own, and how their text is read; nothing here imports what computes."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.batch import choices
from xcorr_app.batch.option import OneOf, Text, Within
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.registration.settings import Roi

_MOVING = "moving:"
_KERNELS_WITH_OPTIONS = ("exchange", "blocking", "im2win")


def _path(text: str) -> Path:
    if not text:
        # pathlib takes an empty name for the current folder, which is not what an unset shell variable means.
        raise ArgumentError(f"{text!r} is empty; name a file or a folder (. is the current one)")
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
    ends = [part.partition(":")[::2] for part in text.split(",") if ":" in part]
    if len(ends) != 2 or text.count(",") != 1 or not all(end == "" or end.isdecimal() for part in ends for end in part):
        raise ArgumentError(f"{text!r}: write rows and columns as Y0:Y1,X0:X1, counted from 0")
    if any(stop and int(stop) <= int(start or 0) for start, stop in ends):
        raise ArgumentError(f"{text!r} is empty: write rows and columns from the first to one beyond the last")
    rows, columns = (slice(int(start) if start else None, int(stop) if stop else None) for start, stop in ends)
    return rows, columns


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
        f"{text!r} is neither {', '.join(choices.REFERENCES)}, pairs:K, nor a frame number, nor an existing file; "
        "median is template or mean now, rolling:N is pairs:N"
    )


_NUMBER = "N"
"""Stands for any whole number among names."""


def _names(form: str, limits: str, **numbers: tuple[Within, ...]) -> Text:
    """One of some names; numbers may follow a name after a colon, parted by commas, within these `limits` in words."""

    def read(text: str) -> str:
        name, colon, rest = text.partition(":")
        known = numbers.get((_NUMBER if name.isdecimal() else name).replace("-", "_"))
        given = rest.split(",") if colon else []
        if known is None or len(given) > len(known) or not all(map(_fits, known, given)):
            raise ArgumentError(f"{text!r}: use {form}; {limits}")
        return text

    return Text(form, read)


def _fits(within: Within, text: str) -> bool:
    try:
        return within.holds((int if within.whole else float)(text))
    except ValueError:
        return False


@dataclass(frozen=True)
class MovingMask:
    """An image of the pixels that count, which belongs to the reference and moves with the scene."""

    file: Path

    def __str__(self) -> str:
        return f"{_MOVING}{self.file}"


def _mask(text: str) -> str | Path | MovingMask:
    if text.startswith(_MOVING):
        # Workers of a cluster have another folder; links stay.
        return MovingMask(Path(os.path.abspath(text.removeprefix(_MOVING))))  # noqa: PTH100
    if os.path.exists(text):  # noqa: PTH110 - unlike Path.exists, takes names that are too long
        return Path(text)
    from xcorr_app.registration.masked.rules import Masks

    Masks.of(text)
    return text


def _channels(text: str) -> int | str | tuple[int, ...]:
    if text in ("sum", "R", "G", "B", "gray"):
        return text
    if not all(number.isdecimal() and len(number) < 6 for number in text.split(",")):
        raise ArgumentError(
            f"{text!r}: give the number of a channel, counted from 0, several such as 0,2, sum, or R, G, B or gray"
        )
    numbers = tuple(int(number) for number in text.split(","))
    return numbers if len(numbers) > 1 else numbers[0]


def _by(module: str, name: str) -> Callable[[str], Any]:
    """A reader that is imported when it is first needed."""

    def read(text: str) -> Any:
        return attrgetter(name)(importlib.import_module(f"xcorr_app.{module}"))(text)

    return read


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ArgumentError(f"{text!r}: give a size such as 500MB or 2GB")
    return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


def kernel_options(words: tuple[str, ...]) -> KernelOptions | None:
    """Options of the kernels of correlation, each written ``NAME=VALUE``; None where nothing is asked."""
    from xcorr_app.gpu.direct.options import KernelOptions

    options: KernelOptions = _from_words(KernelOptions, words, "correlation")
    return None if options.asks_nothing else options


def named_kernel(name: Any, words: tuple[str, ...]) -> Any:
    """A kernel of filters or mixing with its options, each written ``NAME=VALUE``; without any, its name alone."""
    if not words:
        return name
    from xcorr_app.gpu.im2win.options import Im2winOptions
    from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
    from xcorr_app.gpu.stencil.exchange import ExchangeOptions

    kinds = dict(zip(_KERNELS_WITH_OPTIONS, (ExchangeOptions, BlockingOptions, Im2winOptions), strict=True))
    if name not in kinds:
        raise ArgumentError(f"kernel {name!r} has no options; {', '.join(kinds)} have")
    return _from_words(kinds[name], words, f"kernel {name!r}")


def _from_words(kind: Callable[..., Any], words: tuple[str, ...], whose: str) -> Any:
    types: dict[str, Any] = {each.name: each.type for each in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    values = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.replace("-", "_")
        if name not in types or not equals:
            raise ArgumentError(f"kernel option {word!r}: {whose} has {', '.join(types)}; write NAME=VALUE")
        values[name] = _value(word, text, str(types[name]))
    return kind(**values)


def _value(word: str, text: str, kind: str) -> Any:
    try:
        return {"yes": True, "no": False}[text] if "bool" in kind else int(text) if "int" in kind else text
    except (KeyError, ValueError):
        wanted = "yes or no" if "bool" in kind else "a whole number"
        raise ArgumentError(f"kernel option {word!r}: write {wanted} after the equals sign") from None


def names_of(known: tuple[str, ...]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Read some of the `known` names, each of them once."""

    def read(names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in known]:
            raise ArgumentError(f"unknown format {unknown[0]!r}: use {', '.join(known)}")
        return tuple(dict.fromkeys(names))

    return read


PATH = Text("PATH", _path)
SIZE = Text("SIZE", _size)
MAX_SHIFT = Text("PX|PXY,PXX", _max_shift)
ROI = Text("Y0:Y1,X0:X1", _roi)
REFERENCE = Text("first|last|mean|template|previous|pairs:K|INDEX|FILE", _reference)
_PIXELS = Within(0, 1e9, above=True, whole=False)
SUBPIXEL = _names(
    "|".join(choices.ALIGN_SUBPIXEL_METHODS).replace("dft", "dft[:N]"),
    "N is 1 to 10000 grid points per pixel",
    **dict.fromkeys(choices.ALIGN_SUBPIXEL_METHODS, ()) | {"dft": (Within(1, 10_000),)},
)
MOTION = _names(
    "|".join(choices.MOTIONS) + "[:PX[,PX]]",
    "a patch has 16 pixels or more",
    **dict.fromkeys(choices.MOTIONS, ()) | {"patches": (Within(16), _PIXELS)},
)
DOUBTFUL = _names(f"{'|'.join(choices.DOUBTFUL)}[:PX]", "PX is above 0", **dict.fromkeys(choices.DOUBTFUL, (_PIXELS,)))
VERIFY = _names("auto|all|none|N[:PX]", "PX is above 0", auto=(_PIXELS,), all=(_PIXELS,), N=(_PIXELS,), none=())
FORMAT = _names("same|ome-tiff|ome-zarr[:N]", "N is 1 to 12 levels", same=(), ome_tiff=(), ome_zarr=(Within(1, 12),))
BACKGROUND = Text("median|FILE", lambda text: text if text == "median" else _path(text))
CHANNELS = Text("N[,N...]|sum|R|G|B|gray", _channels)
MASK = Text("nonzero|finite|saturated|threshold:V|FILE|moving:FILE", _mask)
CHANNEL = Text("R|G|B|gray|N", _by("io.finding.scan", "parse_channel"))
PREFILTER = Text("NAME:ARGS", _by("registration.stack.prefilter", "Prefilter.parse"))
CONTRAST = Text("none|auto|local:S", _by("registration.stack.prefilter", "Contrast.parse"))
DEVICE = Text("auto|cpu|cuda[:N]", str)
CLUSTER = Text("local[:N]|gpus|ADDRESS|FILE.json", _by("cluster.connect", "known_cluster"))
KERNEL_WORD = Text("NAME=VALUE", str)
ENGINE = OneOf(("auto", *choices.ENGINES))
