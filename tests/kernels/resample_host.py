"""The callers of the family's kernels with NumPy in CuPy's place: launches run the kernels' own source on the host."""

from tests.kernels import binding
from tests.kernels.binding import bind_to_host
from xcorr_app.gpu.resample import run, warping
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.registration.moving import device_moving


def numpy_as_device(monkeypatch, folder):
    """Stand in for a device until the test ends; returns the list that names of kernels are added to."""
    names = []
    forget()
    bind_to_host(monkeypatch, folder, names)
    monkeypatch.setattr(run, "address_of", lambda array: array.ctypes.data)
    for caller in (run, device_moving, warping):
        monkeypatch.setattr(caller, "current_device", lambda: 0)
    for caller in (run, device_moving, warping):
        monkeypatch.setattr(caller, "device_limits", lambda _: DeviceLimits())
    return names


def forget():
    """Forget what was prepared for the stand-in."""
    binding.forget()
    run._prepared.cache_clear()
    warping._prepared.cache_clear()
