"""Values that are written in a form of their own, and how their text is read; nothing here imports what computes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.batch import choices
from xcorr_app.batch.option import OneOf, Text
from xcorr_app.correlation.engine_names import canonical_engine
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.registration.settings import Roi

_KERNELS_WITH_OPTIONS = ("exchange", "blocking", "im2win")


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


def _subpixel(text: str) -> str:
    """A method; ``dft`` may have the grid points per pixel after a colon."""
    name, colon, points = text.partition(":")
    known = name in choices.ALIGN_SUBPIXEL_METHODS
    if not known or (colon and not (name == "dft" and points.isdecimal() and 1 <= int(points) <= 10_000)):
        methods = ", ".join(choices.ALIGN_SUBPIXEL_METHODS)
        raise ArgumentError(f"{text!r}: use {methods}, or dft:N with 1 to 10000 grid points per pixel")
    return text


def _verify(text: str) -> str | int:
    if text in ("auto", "all", "none"):
        return text
    if text.isdecimal():
        return int(text)
    raise ArgumentError(f"{text!r}: use auto, all, none or a number of frames")


def _mask(text: str) -> str | Path:
    if os.path.exists(text):  # noqa: PTH110 - unlike Path.exists, takes names that are too long
        return Path(text)
    from xcorr_app.registration.masked.rules import Masks

    Masks.of(text)
    return text


def _channels(text: str) -> int | str | tuple[int, ...]:
    if text == "sum":
        return text
    if not all(number.isdecimal() and len(number) < 6 for number in text.split(",")):
        raise ArgumentError(f"{text!r}: give the number of a channel, counted from 0, several such as 0,2, or sum")
    numbers = tuple(int(number) for number in text.split(","))
    return numbers if len(numbers) > 1 else numbers[0]


def _channel(text: str) -> Any:
    from xcorr_app.io.single_channel import parse_channel

    return parse_channel(text)


def _prefilter(text: str) -> Any:
    from xcorr_app.registration.stack.prefilter import Prefilter

    return Prefilter.parse(text)


def _contrast(text: str) -> Any:
    from xcorr_app.registration.stack.contrast import Contrast

    return Contrast.parse(text)


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ArgumentError(f"{text!r}: give a size such as 500MB or 2GB")
    return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


def _cluster(text: str) -> str:
    from xcorr_app.cluster.connect import check_cluster

    check_cluster(text)
    return text


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
REFERENCE = Text("first|last|mean|median|template|previous|rolling:N|pairs:K|INDEX|FILE", _reference)
SUBPIXEL = Text("|".join(choices.ALIGN_SUBPIXEL_METHODS).replace("dft", "dft[:N]"), _subpixel)
VERIFY = Text("auto|all|none|N", _verify)
BACKGROUND = Text("median|FILE", lambda text: text if text == "median" else _path(text))
CHANNELS = Text("N[,N...]|sum", _channels)
MASK = Text("nonzero|finite|saturated|threshold:V|FILE", _mask)
CHANNEL = Text("R|G|B|gray|N", _channel)
PREFILTER = Text("NAME:ARGS", _prefilter)
CONTRAST = Text("none|auto|local:S", _contrast)
DEVICE = Text("auto|cpu|cuda[:N]", str)
CLUSTER = Text("local[:N]|gpus|ADDRESS|FILE.json", _cluster)
KERNEL_WORD = Text("NAME=VALUE", str)
ENGINE = OneOf(("auto", *choices.ENGINES), canonical_engine)
