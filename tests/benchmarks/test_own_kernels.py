"""The product's own contenders: who takes part where, and how the records of peaks are read; without a device."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.correlation import own_kernels
from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data, random_data
from benchmarks.correlation.own_kernels import PEAK_ONLY, TENSOR_PEAK, TENSOR_PLANES, own_contenders
from benchmarks.harness.check import TOLERANCE, Expected
from tests.benchmarks.small_cases import PEAKS, PLANES, REGISTRATIONS
from tests.kernels.definition import plane_by_definition
from xcorr_app.gpu.direct.problem import Problem


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
    assert contenders[PEAK_ONLY] == "direct"


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
    assert finder.made == [{"normalize": case.task == "zncc-peak", "engine": "tensor" if tensor else "direct"}]
    shared = case.problem.lefts == 1 and (tensor or case.task == "zncc-peak")
    assert finder.tables_made == ([1] if shared else [])
    if tensor:
        assert attempt.remark() == f"1 of {case.problem.pairs} peaks left undecided"
    else:
        assert attempt.remark is None


@pytest.mark.parametrize("case", PLANES, ids=lambda case: case.name)
@pytest.mark.parametrize("group", ["tensor", ""])
@pytest.mark.parametrize("has", [True, False])
def test_planes_on_tensor_cores_in_fp16_where_that_is_looked_at(monkeypatch, case, group, has):
    monkeypatch.setattr(own_kernels, "has_tensor_cores", lambda: has)
    monkeypatch.setattr(own_kernels, "device_limits", lambda device: None)
    monkeypatch.setattr(own_kernels, "current_device", lambda: 0)
    found = {each.name: each for each in own_contenders(replace(case, group=group), quick=True)}
    assert found.keys() & TENSOR_PLANES.keys() == (
        {"tensor fp16x2", *(TENSOR_PLANES if group else ())} if has else set()
    )
    for name in found.keys() & TENSOR_PLANES.keys():
        assert found[name].tolerance == TENSOR_PLANES[name][1] < TOLERANCE


def test_single_fp16_is_right_by_its_tolerance_and_wrong_by_that_of_two():
    case = Case("64^2", Problem.full_plane((64, 64), (64, 64)))
    data = random_data(case, np)
    expected = Expected(case, data)
    exact = plane_by_definition(data.lefts[0], data.rights[0], case.problem.first_shift, case.problem.plane_shape)
    centres = data.lefts[0].mean(), data.rights[0].mean()
    halves = [m - c for m, c in zip((data.lefts[0], data.rights[0]), centres, strict=True)]
    residues = [part - part.astype(np.float16).astype(np.float32) for part in halves]
    window = case.problem.first_shift, case.problem.plane_shape
    lost = plane_by_definition(residues[0], halves[1], *window) + plane_by_definition(halves[0], residues[1], *window)
    (_, single), (_, double) = TENSOR_PLANES["tensor fp16"], TENSOR_PLANES["tensor fp16x2"]
    assert double < expected.error(0, exact - lost) < single
    assert expected.error(0, exact.astype(np.float32)) < double
