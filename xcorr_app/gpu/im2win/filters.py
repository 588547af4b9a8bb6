"""The filters of an Im2win convolution on the device, in the two orders that kernels read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Im2winFilters:
    """A bank in both orders: each is made when a launch first asks for it, so that none takes memory in vain.

    Parameters
    ----------
    bank : callable
        Returns the dense array (filters, channels, height, width) on the device.
    stored : callable
        Returns what `xcorr_app.gpu.im2win.problem.stored_filters` makes of it, on the device.
    """

    def __init__(self, bank: Callable[[], Any], stored: Callable[[], Any]) -> None:
        self._bank, self._stored = bank, stored

    @functools.cached_property
    def bank(self) -> Any:
        """Filters as they come."""
        return self._bank()

    @functools.cached_property
    def stored(self) -> Any:
        """Filters of the problem's `stored_shape`."""
        return self._stored()
