"""What was found before is found again: every field of files, folders and choices."""

from __future__ import annotations

import pytest

from tests.golden import choices, files, folders
from tests.golden.records import check, on_any_processor

CASES = on_any_processor(files.cases() | folders.cases() | choices.cases())


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_found_again(name):
    check(name, CASES[name])
