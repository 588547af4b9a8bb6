"""What was found before is found again: by calls of the library, runs of the program, and in folders of files.

A difference is a fault, or a change that was meant: `make golden` then writes the records anew.
"""

import pytest

from tests.golden.records import differences, every_case, found, kept

CASES = every_case()


@pytest.mark.parametrize("name", CASES)
def test_what_was_found_is_found_again(name):
    if name == "align-zarr":
        pytest.importorskip("zarr")
    assert list(differences(found(CASES[name]), kept()[name])) == []


def test_a_difference_that_a_user_sees_is_told():
    record = {"shifts": [[1.5, 2.0]], "sigma": [0.01], "flags": [["flat"]], "files": ["a.tif"]}
    assert list(differences(record, {**record, "shifts": [[1.5001, 2]], "sigma": [0.01005]})) == []
    for name, other in {"shifts": [[1.501, 2.0]], "sigma": [0.02], "flags": [[]], "files": []}.items():
        assert len(list(differences(record, {**record, name: other}))) == 1
