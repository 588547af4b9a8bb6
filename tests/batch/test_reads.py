"""How often a frame is read from its file."""

import collections

import pytest
import tifffile

from tests.batch.movies import DRIFT, align, write_movie
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.pipeline import resources

FRAMES = len(DRIFT) * 4
SAMPLED = 17
"""Frames, at most, that are looked at beforehand: for defects, captions, lines, weighting, contrast and patterns."""


@pytest.fixture
def read(monkeypatch):
    """Counts how often each page of the stack is read."""
    counts, real = collections.Counter(), TiffImage.read_into

    def counted(self, pages, *others):
        counts.update(pages if self.metadata.planes == FRAMES else ())
        return real(self, pages, *others)

    monkeypatch.setattr(TiffImage, "read_into", counted)
    return counts


@pytest.mark.parametrize("reference", ["first", "3", "image", "template"])
def test_a_frame_of_a_stack_that_is_kept_is_read_once(tmp_path, read, reference):
    stack = write_movie(tmp_path / "m.tif", drift=DRIFT * 4)
    assert align(stack, "-o", tmp_path / "out", "--reference", given(tmp_path, reference)).code == 0
    assert read == dict.fromkeys(range(FRAMES), 1)


@pytest.mark.parametrize("reference", ["first", "3", "image"])
def test_against_a_fixed_reference_any_other_is_read_to_be_measured_and_to_be_moved(tmp_path, read, reference):
    """Where a frame cannot be trusted, what lies between its neighbours moves it: they are measured before it moves."""
    stack = write_movie(tmp_path / "m.tif", drift=DRIFT * 4)
    given_reference = given(tmp_path, reference)
    assert align(stack, "-o", tmp_path / "out", "--memory", "0MB", "--reference", given_reference).code == 0
    assert set(read) == set(range(FRAMES))
    assert min(read.values()) == 2
    assert sum(read.values()) <= 2 * FRAMES + SAMPLED


@pytest.mark.parametrize(("asked", "times"), [((), 2), (("--memory", "1MB"), 1)])
def test_a_large_stack_stored_plainly_is_kept_where_memory_is_asked_for(tmp_path, read, monkeypatch, asked, times):
    monkeypatch.setattr(resources, "_PLAIN_DEFAULT", 1000)
    stack = write_movie(tmp_path / "m.tif", drift=DRIFT * 4)
    assert align(stack, "-o", tmp_path / "out", *asked).code == 0
    assert (set(read), min(read.values())) == (set(range(FRAMES)), times)


def test_what_must_be_decoded_is_kept_whatever_its_size(tmp_path, read, monkeypatch):
    monkeypatch.setattr(resources, "_PLAIN_DEFAULT", 1000)
    stack = write_movie(tmp_path / "m.tif", drift=DRIFT * 4)
    tifffile.imwrite(stack, tifffile.imread(stack), photometric="minisblack", compression="zlib")
    assert align(stack, "-o", tmp_path / "out").code == 0
    assert read == dict.fromkeys(range(FRAMES), 1)


def given(folder, reference):
    return write_movie(folder / "reference.tif", drift=DRIFT[:1]) if reference == "image" else reference
