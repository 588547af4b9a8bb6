"""What was found before is found again: every field of runs of the program."""

from __future__ import annotations

import pytest

from tests.golden import commands
from tests.golden.records import check, on_any_processor

CASES = on_any_processor(commands.cases())


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_found_again(name):
    if name == "align-zarr":
        pytest.importorskip("zarr")
    check(name, CASES[name])
