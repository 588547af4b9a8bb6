"""``xcorr filter --bank``: a channel for every filter, whatever axes the images have."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from scipy import ndimage

from tests.batch.filter_runs import filtering, result
from tests.batch.movies import record
from tests.io.samples import noise, write_plain
from xcorr_app.batch.filter.choice import BANKS, FilterBank, parse_bank
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.filter.run import bank_metadata
from xcorr_app.errors import ArgumentError
from xcorr_app.io import StackMetadata


def maps(frame, filters, **edge):
    """Correlation with every filter, in float64."""
    return np.stack([ndimage.correlate(frame.astype(float), taps, **edge) for taps in filters])


def axes_of(path):
    with tifffile.TiffFile(path) as file:
        return file.series[0].axes


@pytest.mark.parametrize(
    ("text", "count"),
    [("gabor:8,4", 64), ("gabor:1,1", 2), ("derivatives:1,2.5", 10), ("schmid", 13), ("leung-malik", 48)],
)
def test_every_bank(text, count):
    bank = parse_bank(text)
    assert bank.filters.shape[0] == len(bank.names) == len(set(bank.names)) == count
    assert text.partition(":")[0] in BANKS


@pytest.mark.parametrize(
    "text", ["gabor:8,10", "gabor:1.5,2", "gabor:", "derivatives", "derivatives:nan", "schmid:", ""]
)
def test_what_is_no_bank(text):
    with pytest.raises(ArgumentError, match=r"bank .*write"):
        parse_bank(text)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_a_plain_stack_gets_channels(tmp_path, dtype):
    frames = noise((3, 30, 34), dtype)
    write_plain(tmp_path / "m.tif", frames)
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--bank", "derivatives:1", "--mode", "mirror")
    assert run.code == 0
    found, bank = result(tmp_path / "out"), parse_bank("derivatives:1")
    assert found.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert found.shape == (3, 5, 30, 34)
    assert axes_of(tmp_path / "out" / "m" / "m_filtered.tif").endswith("CYX")
    exact = np.stack([maps(frame, bank.filters, mode="mirror") for frame in frames])
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-6 * 5 * np.abs(frames.astype(float)).max())
    facts = record(tmp_path / "out")["stacks"]["m"]
    assert facts["axes"] == "TCYX"
    assert facts["engine"] == "bank"


def test_a_bank_from_a_file_and_valid(tmp_path):
    frames, filters = noise((2, 20, 24), "float32"), np.random.default_rng(3).standard_normal((3, 4, 5))
    write_plain(tmp_path / "m.tif", frames)
    np.save(tmp_path / "my.npy", filters)
    options = ["--bank", tmp_path / "my.npy", "--mode", "valid"]
    assert filtering(tmp_path / "m.tif", "-o", tmp_path / "out", *options).code == 0
    exact = np.stack([maps(frame, filters)[:, 2:-1, 2:-2] for frame in frames])
    np.testing.assert_allclose(result(tmp_path / "out"), exact, rtol=0, atol=1e-5 * np.abs(frames).max())
    assert str(tmp_path / "my.npy") in record(tmp_path / "out")["taps_file"]
    write_plain(tmp_path / "tiny.tif", noise((2, 3, 24)))
    small = filtering(tmp_path / "tiny.tif", "-o", tmp_path / "small", *options)
    assert small.code == 1
    assert "planes of 3 x 24 are smaller than the filter of 4 x 5" in small.stdout


@pytest.mark.parametrize("shape", [(3,), (0, 2, 2), (2, 2)])
def test_a_file_that_holds_no_bank(tmp_path, shape):
    np.save(tmp_path / "my.npy", np.zeros(shape))
    write_plain(tmp_path / "m.tif", noise((2, 9, 9)))
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--bank", tmp_path / "my.npy")
    assert run.code == 2
    assert "a bank is numbers of shape (filters, rows, columns)" in run.stderr


@pytest.mark.parametrize(("channels", "names", "expected"), [
    (1, (), ("a", "b")),
    (2, (), ("0 a", "0 b", "1 a", "1 b")),
    (2, ("red", "green"), ("red a", "red b", "green a", "green b")),
    (3, (), ("0 a", "0 b", "1 a", "1 b", "2 a", "2 b")),
])  # fmt: skip
def test_channels_of_a_result_say_which_channel_and_filter_they_are(channels, names, expected):
    bank = FilterBank(np.ones((2, 3, 5)), ("a", "b"))
    given = StackMetadata("TCYX", (4, channels, 20, 30), np.dtype(np.uint16), "ome", channel_names=names)
    found = bank_metadata(given, bank, FilterOptions(gaussian="1", mode="valid"))
    assert found.channel_names == expected
    assert (found.axes, found.shape, found.dtype) == ("TCYX", (4, 2 * channels, 18, 26), np.float32)
