"""What a library only logs is an error of the file, and is not printed."""

import logging
from pathlib import Path

import pytest

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.formats.czi import logged_as_damage


def test_what_the_library_only_logs_is_an_error_and_not_printed(caplog):
    logger = logging.getLogger("czifile")
    with logged_as_damage(Path("b.czi")):
        logger.info("nothing of interest")
    with pytest.raises(DamagedFileError, match=r"b\.czi: strange thing found"), logged_as_damage(Path("b.czi")):
        logger.warning("strange thing found")
    assert not caplog.records
    logger.warning("outside of any reading")
    assert [record.getMessage() for record in caplog.records] == ["outside of any reading"]
