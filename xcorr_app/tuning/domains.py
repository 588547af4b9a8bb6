"""The domains whose choices are measured, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.tuning.banks import Banks
from xcorr_app.tuning.correlation import Peaks, Planes
from xcorr_app.tuning.domain import ANY_SIZE, Domain, Sizes
from xcorr_app.tuning.filters import Filters
from xcorr_app.tuning.mixing import Mixing

__all__ = ["DOMAINS", "domains_named"]

DOMAINS: dict[str, Callable[[DeviceLimits, Sizes], Domain]] = {
    "planes": Planes,
    "registration": Peaks,
    "filters": Filters,
    "banks": Banks,
    "mixing": Mixing,
}


def domains_named(names: Sequence[str], limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> list[Domain]:
    """Make the domains of these names, or all of them, for a device; `sizes` are those of the frames."""
    return [DOMAINS[name](limits, sizes) for name in names or tuple(DOMAINS)]
