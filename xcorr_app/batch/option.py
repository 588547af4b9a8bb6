"""An option of a command, declared once.

From the fields of a command's dataclass come click's options, ``--help``, what ``run.json`` records and ``--resume``
compares, the keywords of Python and the table in the documentation. Nothing here imports what computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from xcorr_app.errors import ArgumentError

GROUPS = (
    "Filters",
    "Mixing",
    "Results",
    "Measuring",
    "Details",
    "Correction of frames",
    "Checks",
    "Run",
    "Engines and kernels",
    "What is printed",
)
"""Headings of help, in their order."""
Role = Literal["result", "run", "terminal"]
"""What an option decides: the results; how they are come by, which are the same; what the command line shows."""


class Text(NamedTuple):
    """A value that is written in a form of its own."""

    form: str
    read: Callable[[str], Any]
    """Raises ArgumentError or ValueError; of a text that it has returned, it returns the same."""


class OneOf(NamedTuple):
    """One of some names."""

    names: tuple[str, ...]


class Within(NamedTuple):
    """A number of a range."""

    low: Any = None
    high: Any = None
    above: bool = False
    """Whether `low` itself is too low."""
    below: bool = False
    whole: bool = True

    def holds(self, value: Any) -> bool:
        """Whether a value is such a number."""
        if isinstance(value, bool) or not hasattr(value, "__index__" if self.whole else "__float__"):
            return False
        low_enough = self.high is None or (value < self.high if self.below else value <= self.high)
        return low_enough and (self.low is None or (value > self.low if self.above else value >= self.low))

    def __str__(self) -> str:
        low = "" if self.low is None else f"{'above ' if self.above else ''}{self.low:g}"
        if self.high is None:
            return low if self.above else f"{low} or more"
        return f"{low} to {'less than ' if self.below else ''}{self.high:g}"


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name, type and default."""

    text: str
    """What it does."""
    kind: Any = str
    """`Text`, `OneOf`, `Within`, or a type."""
    flags: tuple[str, ...] = ()
    """On the command line; without a long one, the name of the field with hyphens is it."""
    group: str = "Details"
    brief: bool = False
    """Whether ``--help`` shows it, not ``--help-all`` alone."""
    unit: str = ""
    """What a default of None means, in words."""
    required: bool = False
    argument: bool = False
    """Whether it stands on the command line without a name."""
    gather: Callable[[tuple[Any, ...]], Any] | None = None
    """Makes one value of those of an option that may be given several times."""
    role: Role = "result"
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values that another option must have; else this one is not used, and is refused."""
    excludes: tuple[str, ...] = ()
    """Options beside which it makes no sense."""

    def flag(self, name: str) -> str:
        """What a user types."""
        return next((flag for flag in self.flags if flag.startswith("--")), f"--{name.replace('_', '-')}")


def option(default: Any, text: str, kind: Any = str, **more: Any) -> Any:
    """Declare a field of a command's dataclass: see `Option`."""
    return field(default=default, kw_only=True, metadata={"option": Option(text, kind, **more)})


def flag(text: str, *, on: bool = False, **more: Any) -> Any:
    """Declare a field that is either so or not so."""
    return option(on, text, bool, **more)


def options_of(kind: type[CommandOptions]) -> Iterator[tuple[Field[Any], Option]]:
    """Every option of a command, in the order of help: what is required, its own, what it shares with others."""
    known = [each for each in fields(kind) if "option" in each.metadata]
    names = [name for of in kind.__mro__ for name in vars(of).get("__annotations__", ())]
    ranked = sorted(known, key=lambda each: (not each.metadata["option"].required, names.index(each.name)))
    return ((each, each.metadata["option"]) for each in ranked)


@dataclass(frozen=True)
class CommandOptions:
    """Options of a command, each read from text where it was written so, and checked.

    Raises
    ------
    ArgumentError
        A value is unknown or out of range, or an option is not used beside the others.
    """

    def __post_init__(self) -> None:
        given = {}
        for each, known in options_of(type(self)):
            value = _read(each.name, known, getattr(self, each.name))
            if isinstance(value, Path) and getattr(self, "cluster", None):
                value = Path(os.path.abspath(value))  # noqa: PTH100 - workers have another folder, links stay
            object.__setattr__(self, each.name, value)
            # An array, such as a mask, is no default, and would be compared pixel by pixel.
            if each.default is not MISSING and (value != _read(each.name, known, each.default)) is not False:
                given[each.name] = known
        for name, known in given.items():
            self._refuse_ignored(name, known, given)

    def _refuse_ignored(self, name: str, known: Option, given: Mapping[str, Option]) -> None:
        own = known.flag(name)
        for other, values in known.needs.items():
            if getattr(self, other, values[0]) not in values:
                flag = f"--{other.replace('_', '-')}"
                words = [flag if value is True else f"{flag} {value}" for value in values if value is not None]
                raise ArgumentError(f"{own} goes with {' or '.join(words)}: it is not used here; leave it out")
        for other in known.excludes:
            if other in given:
                raise ArgumentError(f"{own} and {given[other].flag(other)} exclude each other: give one of them")

    @classmethod
    def keywords(cls) -> tuple[str, ...]:
        """Names of the options that Python takes, too."""
        return tuple(each.name for each, known in options_of(cls) if known.role != "terminal")

    @classmethod
    def of_keywords(cls, given: Mapping[str, Any]) -> Any:
        """Make options of the keywords of a call."""
        if unknown := sorted(set(given) - set(cls.keywords())):
            known = ", ".join(sorted(cls.keywords()))
            raise ArgumentError(f"unknown option {', '.join(unknown)}: the options are {known}")
        return cls(**given)

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        recorded = (each.name for each, known in options_of(type(self)) if known.role == "result")
        return {name: _plain(getattr(self, name)) for name in recorded}

    @cached_property
    def words(self) -> list[str]:
        """What a command line says to ask for the same results: the options that are not as they are by default."""
        found: list[str] = []
        for each, known in options_of(type(self)):
            value = getattr(self, each.name)
            is_default = (value != _read(each.name, known, each.default)) is False  # arrays compare pixel by pixel
            if known.role != "result" or known.argument or is_default:
                continue
            flag = known.flag(each.name)
            found += [f"--{'' if value else 'no-'}{flag[2:]}"] if isinstance(value, bool) else [flag, _written(value)]
        return found

    def files(self) -> dict[str, tuple[Path, ...]]:
        """Files that are named and decide the results, by their names in ``run.json``."""
        named = (each.name for each, known in options_of(type(self)) if known.role == "result")
        given = {name: getattr(self, name) for name in named}
        paths = {name: getattr(value, "file", value) for name, value in given.items()}
        return {f"{name}_file": (path,) for name, path in paths.items() if isinstance(path, Path)}


def _read(name: str, known: Option, value: Any) -> Any:
    """A value as the program has it."""
    if known.gather is not None and isinstance(value, (tuple, list)):
        return known.gather(tuple(value))
    match known.kind:
        case Text() if isinstance(value, str):
            try:
                return known.kind.read(value)
            except ValueError as error:
                raise ArgumentError(f"{known.flag(name)} {error}") from error
        case OneOf() if value is not None:
            if value not in known.kind.names:
                raise ArgumentError(f"unknown {name} {value!r}: use {', '.join(known.kind.names)}")
        case Within() if value is not None and not known.kind.holds(value):
            raise ArgumentError(f"{name} is {value!r}: use {'a whole number, ' * known.kind.whole}{known.kind}")
    return value


def _written(value: Any) -> str:
    if isinstance(value, slice):
        return ":".join("" if end is None else str(end) for end in (value.start, value.stop))
    if isinstance(value, (tuple, list)):
        return ",".join(map(_written, value))
    return f"{value:.15g}" if isinstance(value, float) else "FILE" if hasattr(value, "dtype") else str(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, slice):
        return [value.start, value.stop]
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if is_dataclass(value) and "__str__" not in vars(type(value)):
        return asdict(value)  # type: ignore[arg-type]  # no class
    return str(value)
