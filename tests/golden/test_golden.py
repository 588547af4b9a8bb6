"""What was found before is found again: every field of every call on small series of every kind.

A difference is either a fault, or a change that was meant: then ``python -m tests.golden NAME`` writes it anew.
"""

from __future__ import annotations

import pytest

from tests.golden.leaves import differences
from tests.golden.records import every_case, found, kept

CASES = every_case()


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_found_again(name):
    assert not differences(found(CASES[name]), kept(name))
