"""Launches for every combination of values."""

import itertools

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.launch import Launch


def sweep(make, *axes):
    """What `make` returns, a launch or several, for every combination of values."""
    for values in itertools.product(*axes):
        made = make(*values)
        yield from (made,) if isinstance(made, Launch) else made


def possible(make):
    """`make`, but nothing where a kernel refuses."""

    def made(*values):
        try:
            return make(*values)
        except ArgumentError:
            return ()

    return made
