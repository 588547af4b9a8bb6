"""Changed files of every kind: read as the sound one, refused, or told apart by nothing. ``make fuzz`` takes more."""

import os

import pytest

from tests.fuzz import commands
from tests.fuzz.judge import run
from tests.fuzz.targets import TARGETS

COUNT = int(os.environ.get("XCORR_FUZZ", "40"))
"""Files of each kind, the same in every run."""


@pytest.mark.parametrize("name", TARGETS)
def test_changed_files(tmp_path, name):
    outcomes, findings = run(name, COUNT, 0, tmp_path)
    assert findings == []
    assert outcomes.total() == COUNT


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_commands_on_changed_files(tmp_path, name):
    outcomes, findings = commands.run(name, max(4, COUNT // 100), 0, tmp_path)
    assert findings == []
    assert outcomes[0] + outcomes[1] > 0  # the first file, which is sound
