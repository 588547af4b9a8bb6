"""What was found before is found again: every field of calls of the library."""

from __future__ import annotations

import pytest

from tests.golden import arguments, library
from tests.golden.records import check, on_any_processor

CASES = on_any_processor(library.cases() | arguments.cases())


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_found_again(name):
    check(name, CASES[name])
