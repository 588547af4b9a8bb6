"""What libraries warn of while files are parsed, by several threads at once."""

import threading
import warnings

import pytest

from xcorr_app.io.parsing import warnings_as


def test_threads_do_not_change_each_others_filters():
    """The second one would otherwise begin before the first one ends, and put its filters back after it."""
    before, first_is_in, lenient_is_done = warnings.filters[:], threading.Event(), threading.Event()

    def ignoring():
        first_is_in.wait()
        with warnings_as("ignore"):
            warnings.warn("of no account", stacklevel=1)
        lenient_is_done.set()

    other = threading.Thread(target=ignoring)
    other.start()
    with warnings_as("error", "chunks"):
        first_is_in.set()
        assert not lenient_is_done.wait(0.2)
        with pytest.raises(UserWarning, match="chunks of no size"):
            warnings.warn("chunks of no size", stacklevel=1)
    other.join()
    assert lenient_is_done.is_set()
    assert warnings.filters == before
