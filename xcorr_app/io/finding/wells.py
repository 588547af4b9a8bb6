"""The C of `well_C1`: row C of a plate where the names show it, else a channel."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from xcorr_app.io.finding.file_names import WELL, NamedFile, read_name
from xcorr_app.io.finding.natural_order import stem

_AFTER_WORD = re.compile(r"(?<![A-Za-z])well[-_ ]+C[0-9]", re.IGNORECASE)


def read_names(paths: Sequence[Path]) -> list[NamedFile]:
    """Read the names of files of one folder.

    C1 is a well where the word stands before it, or another row has the same name (`x_A1`, `x_C1`).
    """
    rows: dict[tuple[str, str], set[str]] = defaultdict(set)
    wells = [_wells(path) for path in paths]
    for of_name in wells:
        for row, around in of_name:
            rows[around].add(row)
    return [
        read_name(
            path,
            well=_AFTER_WORD.search(path.name) is not None
            or any(row == "C" and len(rows[around]) > 1 for row, around in of_name),
        )
        for path, of_name in zip(paths, wells, strict=True)
    ]


def may_be_wells(names: Sequence[NamedFile]) -> bool:
    """Whether names that number channels alone do so as a plate numbers the wells of row C: upper case, 1 to 24.

    ImageJ begins the names of split channels so, `C1-name`, which are no wells.
    """
    return all(
        set(name.at) == {"C"} and any(row == "C" and around[0] for row, around in _wells(name.path)) for name in names
    )


def _wells(path: Path) -> list[tuple[str, tuple[str, str]]]:
    """Rows of what may be wells in a name, and the name around each, its columns left out."""
    name = stem(path.name)
    return [(found[1], (name[: found.start()], name[found.end() :])) for found in WELL.finditer(name)]
