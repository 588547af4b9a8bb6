"""The product's own contenders: who takes part where, and how the records of peaks are read; without a device."""

import numpy as np
import pytest

from tests.bench.small_cases import PEAKS, REGISTRATIONS
from xcorr_app.bench import own_kernels
from xcorr_app.bench.data import Data, random_data
from xcorr_app.bench.own_kernels import PEAK_ONLY, TENSOR_PEAK, own_contenders


class Records(np.ndarray):
    """Records that are brought to the host as those of a device are."""

    def get(self):
        return np.asarray(self)


class Finder:
    """Finds the peak of pair i at row i, column 2; leaves the last undecided."""

    def __init__(self, window, **options):
        self.made.append(options)

    def left_tables(self, lefts):
        self.tables_made.append(lefts.shape[0])
        return "tables"

    def find(self, lefts, rights, rights_per_left, tables):
        assert tables == ("tables" if self.tables_made else None)
        records = np.full((rights.shape[0], 29), 2.0)
        records[:, 0] = np.arange(rights.shape[0])
        records[-1, 0] = -1 - records[-1, 0]
        return records.view(Records), None


@pytest.fixture
def finder(monkeypatch):
    monkeypatch.setattr(own_kernels, "PeakFinder", Finder)
    monkeypatch.setattr(Finder, "made", [], raising=False)
    monkeypatch.setattr(Finder, "tables_made", [], raising=False)
    return Finder


@pytest.mark.parametrize("case", [*PEAKS, *REGISTRATIONS], ids=lambda case: case.name)
@pytest.mark.parametrize("has", [True, False])
def test_tensor_cores_take_part_where_there_are_any(monkeypatch, case, has):
    monkeypatch.setattr(own_kernels, "has_tensor_cores", lambda: has)
    contenders = {contender.name: contender.choice for contender in own_contenders(case, quick=True)}
    assert contenders.get(TENSOR_PEAK) == ("tensor" if has else None)
    assert contenders[PEAK_ONLY] == "warp-shuffle"


@pytest.mark.parametrize("case", [*PEAKS, *REGISTRATIONS], ids=lambda case: case.name)
@pytest.mark.parametrize("name", [PEAK_ONLY, TENSOR_PEAK])
def test_places_of_peaks_are_read_those_left_undecided_too(monkeypatch, finder, case, name):
    monkeypatch.setattr(own_kernels, "has_tensor_cores", lambda: True)
    data: Data = random_data(case, np)
    contender = next(each for each in own_contenders(case, quick=True) if each.name == name)
    (attempt,) = contender.attempts(case, data)
    records = attempt.run()
    width, pairs = case.problem.plane_shape[1], range(case.problem.pairs)
    assert [attempt.read(records, pair) for pair in pairs] == [pair * width + 2 for pair in pairs]
    tensor = name == TENSOR_PEAK
    assert finder.made == [{"normalize": case.task == "zncc-peak", "tensor": tensor}]
    shared = case.problem.lefts == 1 and (tensor or case.task == "zncc-peak")
    assert finder.tables_made == ([1] if shared else [])
    if tensor:
        assert attempt.remark() == f"1 of {case.problem.pairs} peaks left undecided"
    else:
        assert attempt.remark is None
