"""Builds of the kernels for the host are made once for a test session; which of their many cases run.

Of a test of more than `_FEW` cases the first runs on the host, a fortieth of the others, and each that shows a new
value of a parameter that has at most `_SHOWN`; ``make kernel-test`` runs them all.
"""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests import share
from tests.kernels.binding import forget, numpy_as_device
from tests.kernels.host_device import guards_are_whole
from tests.kernels.in_the_place_of_cupy import HostArrays, run_on_host

_FEW, _SHOWN = 1, 2
FOLDER = Path(__file__).parent


@pytest.fixture
def device(monkeypatch, host_builds):
    """NumPy in CuPy's place; names of the kernels that were started."""
    yield numpy_as_device(monkeypatch, host_builds)
    forget()


@pytest.fixture(params=["host", pytest.param("device", marks=pytest.mark.gpu)])
def kernels_of(request, monkeypatch):
    """Lets kernels that modules start run, by the host or on a device; returns what hands an array over to them.

    Callers named take such an array for one in device memory.
    """
    if request.param == "device":
        yield lambda *_, callers=(): request.getfixturevalue("cupy").asarray
        return

    def on_host(*modules, callers=()):
        run_on_host(monkeypatch, request.getfixturevalue("host_builds"), *modules)
        for caller in callers:
            monkeypatch.setattr(caller, "is_device_array", lambda _: True)
        return np.asarray

    HostArrays.made.clear()
    yield on_host
    assert all(map(guards_are_whole, HostArrays.made))


def pytest_collection_modifyitems(config, items):
    """Leave out some cases of tests with many."""
    if share.everything() or any("::" in argument for argument in config.args):
        return
    here = [item for item in items if item.path.is_relative_to(FOLDER)]
    here = [item for item in here if {"host_builds", "kernels_of"} & set(item.fixturenames)]
    on_host = [item for item in here if hasattr(item, "callspec") and not item.get_closest_marker("gpu")]
    cases = Counter((item.path, item.originalname) for item in on_host)
    of_parameters = defaultdict(set)
    for item in on_host:
        for name, value in item.callspec.params.items():
            of_parameters[item.path, item.originalname, name].add(repr(value))
    shown, begun, left_out = defaultdict(set), set(), set()
    for item in on_host:
        test = item.path, item.originalname
        values = {(name, repr(value)) for name, value in item.callspec.params.items()}
        values = {value for value in values if len(of_parameters[*test, value[0]]) <= _SHOWN}
        if test in begun and cases[test] > _FEW and values <= shown[test] and not share.holds(item.name, 40):
            left_out.add(item)
        else:
            shown[test] |= values
            begun.add(test)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
