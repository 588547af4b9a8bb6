"""A stack for commands."""

import pytest

from tests.batch.movies import write_movie


@pytest.fixture
def stack(tmp_path):
    return write_movie(tmp_path / "m.tif")
