"""What the judge of changed files sees: time and memory of one file, whatever others took before."""

import sys

import numpy as np
import pytest

from tests.fuzz import judge, targets


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by Linux alone")
@pytest.mark.parametrize("size", [1 << 26, 1 << 20])
def test_a_reader_that_takes_more_than_a_file_declares_is_seen(tmp_path, monkeypatch, size):
    plain = targets.TARGETS["plain"]

    def read(path):
        room = np.ones(size, np.uint8)
        return plain.read(path) + np.uint16(room[0] - 1)

    monkeypatch.setitem(targets.TARGETS, "plain", plain._replace(read=read))
    outcomes, findings = judge.run("plain", 6, 0, tmp_path)
    assert outcomes.total() == 6
    seen = [finding.what for finding in findings]
    if size < judge.SLACK:
        assert seen == []
    else:
        assert len(seen) == 6
        assert all(what.startswith("took 6") and "declares" in what for what in seen)
