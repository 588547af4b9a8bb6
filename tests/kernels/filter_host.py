"""The caller of the filter kernels with NumPy in CuPy's place: launches run the kernels' own source on the host."""

from tests.kernels import binding
from tests.kernels.binding import bind_to_host
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import reuse_run, separable_run


def numpy_as_device(monkeypatch, folder):
    """Stand in for a device until the test ends; returns the list that names of kernels are added to."""
    names = []
    forget()
    bind_to_host(monkeypatch, folder, names)
    monkeypatch.setattr(reuse_run, "_address", lambda images: images.ctypes.data // 16 * 16)
    for caller in (reuse_run, separable_run):
        monkeypatch.setattr(caller, "current_device", lambda: 0)
        monkeypatch.setattr(caller, "device_limits", lambda _: DeviceLimits())
    return names


def forget():
    """Forget what was prepared for the stand-in."""
    binding.forget()
    reuse_run._bound_parts.cache_clear()
    separable_run._bound_parts.cache_clear()
