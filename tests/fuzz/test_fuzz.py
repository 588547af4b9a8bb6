"""Changed files of every kind: read as the sound one, refused, or told apart by nothing. ``make fuzz`` takes more."""

import os

import pytest

from tests import share
from tests.fuzz import commands
from tests.fuzz.judge import run
from tests.fuzz.targets import TARGETS

COUNT = int(os.environ.get("XCORR_FUZZ", "150"))
"""Files of each kind, other ones with each commit."""


@pytest.mark.parametrize("name", TARGETS)
def test_changed_files(tmp_path, name):
    outcomes, findings = run(name, COUNT, share.number(), tmp_path)
    assert findings == []
    assert outcomes.total() == COUNT


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_commands_on_changed_files(tmp_path, name):
    outcomes, findings = commands.run(name, max(4, COUNT // 100), share.number(), tmp_path)
    assert findings == []
    assert outcomes[0] + outcomes[1] > 0  # the first file, which is sound
