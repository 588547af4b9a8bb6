"""What the judge of changed files sees: memory of one file, whatever others took before."""

import sys

import numpy as np
import pytest

from tests.fuzz import judge, targets


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by Linux alone")
@pytest.mark.parametrize(("size", "seen"), [(1 << 26, 6), (1 << 20, 0)])
def test_a_reader_that_takes_more_than_a_file_declares_is_seen(tmp_path, monkeypatch, size, seen):
    plain = targets.TARGETS["plain"]

    def read(path):
        return np.uint16(np.ones(size, np.uint8)[0] - 1) + plain.read(path)

    monkeypatch.setitem(targets.TARGETS, "plain", plain._replace(read=read))
    _, findings = judge.run("plain", 6, 0, tmp_path)
    assert [finding.what.startswith("took 6") for finding in findings] == [True] * seen
