"""Kernels bound without a device: a stand-in for the compiled function, and arguments that stay as they are."""

from __future__ import annotations

from xcorr_app.gpu.runtime import binder


def forget():
    """Forget what was bound, for this stand-in or another."""
    binder._bound.cache_clear()
    binder.null_pointer.cache_clear()


def bind_without_device(monkeypatch, kernel_function):
    """Bind launches to what `kernel_function(name, defines, shared_bytes)` returns; call `forget` at the end."""
    forget()
    monkeypatch.setattr(binder, "kernel_function", kernel_function)
    monkeypatch.setattr(binder, "current_device", lambda: 0)
    monkeypatch.setattr(binder, "_number_type", lambda: lambda number: number)
    monkeypatch.setattr(binder, "_struct_type", lambda: lambda element: element)
