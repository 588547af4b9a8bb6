"""Kernels of filters and mixing by name on the command line: what they become, what is refused, strides of banks."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile

import xcorr_app as xc
from tests.batch.filter_runs import filtering
from tests.batch.movies import record, refused, xcorr
from tests.filtering.test_filter_bank import by_definition
from tests.io.samples import noise, write_imagej, write_ome, write_shaped


@pytest.fixture
def stack(tmp_path):
    write_shaped(tmp_path / "m.tif", noise((3, 20, 31), "uint16"), "TYX")
    return tmp_path / "m.tif"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--box 3 --kernel exchange", "kernel 'exchange' runs on a GPU (--device cpu was given); --kernel auto gives"),
        ("--bank schmid --kernel im2win", "kernel 'im2win' runs on a GPU"),
        ("--bank schmid --kernel exchange", "is for single filters; banks have auto, im2win, im2win-basic"),
        ("--box 3 --kernel im2win", "kernel 'im2win' is unknown: take one of auto, reuse, exchange"),
        ("--box 3 --kernel fastest", "--kernel"),
        ("--box 3 --stride 2", "stride 2 is for banks of filters"),
        ("--bank schmid --stride 0", "--stride"),
        ("--box 3 --kernel reuse --engine opencv", "engine 'opencv' leaves the choice"),
        ("--box 3 --kernel reuse --kernel-option rows=9", "kernel 'reuse' has no options"),
        ("--bank schmid --kernel im2win --kernel-option tile-depth=7", "kernel 'im2win' takes 8, 9, 10, 12, 15, 16"),
        ("--bank schmid --kernel implicit --kernel-option prefetch=no", "kernel 'implicit' has no options"),
        ("--bank schmid --kernel im2win --kernel-option prefetch=no", "kernel 'im2win' runs on a GPU"),
        ("--box 3 --kernel exchange --kernel-option lines=9", "kernel 'exchange' has rows, warps, column_reuse"),
        ("--box 3 --kernel exchange --kernel-option rows=many", "write a whole number"),
        ("--box 3 --kernel exchange --kernel-option row-reuse=0", "write yes or no"),
        ("--box 3 --kernel exchange --kernel-option rows=0", "takes 1 to"),
    ],
)
def test_wrong_usage_of_filter(tmp_path, stack, words, message):
    run = filtering(stack, "-o", tmp_path / "out", *words.split())
    assert run.code == 2
    assert message in run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kernel shallow", "kernel 'shallow' runs on a GPU (--device cpu was given); --kernel auto gives the same"),
        ("--kernel blocking --kernel-option staging=shared", "takes async, registers"),
        ("--kernel mix --kernel-option warps=2", "kernel 'mix' has no options; exchange, blocking, im2win have"),
        ("--kernel blocking --kernel-option warps=3", "kernel 'blocking' takes 1, 2, 4, 8"),
    ],
)
def test_wrong_usage_of_unmix(tmp_path, words, message):
    write_shaped(tmp_path / "c.tif", noise((3, 20, 30)), "CYX")
    np.savetxt(tmp_path / "m.csv", np.eye(3), delimiter=",")
    options = ("--matrix", tmp_path / "m.csv", "--device", "cpu", *words.split())
    refused(xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "out", *options), message)


@pytest.mark.parametrize("kind", ["ome", "imagej"])
def test_every_nth_result_of_a_bank_with_pixels_as_much_larger(tmp_path, kind):
    data, name = noise((2, 21, 34), "uint8"), "m.ome.tif" if kind == "ome" else "m.tif"
    if kind == "ome":
        write_ome(tmp_path / name, data, "TYX")
    else:
        write_imagej(tmp_path / name, data, "TYX")
    bank = np.random.default_rng(3).normal(size=(4, 5, 3))
    np.save(tmp_path / "b.npy", bank)
    before = xc.read_stack(tmp_path / name).metadata
    assert before.pixel_size is not None
    for mode, shape in (("mirror", (7, 12)), ("valid", (6, 11))):
        out = tmp_path / mode
        words = ("--bank", tmp_path / "b.npy", "--mode", mode, "--stride", "3")
        run = filtering(tmp_path / name, "-o", out, *words)
        assert (run.code, run.stderr) == (0, "")
        path = out / "m" / "m_filtered.tif"
        found = tifffile.imread(path)
        assert found.shape == (2, 4, *shape)
        expected = by_definition(data[:, None], bank[:, None], mode)[..., ::3, ::3]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
        after = xc.read_stack(path).metadata
        np.testing.assert_allclose(after.pixel_size, [3 * size for size in before.pixel_size], rtol=1e-6)
        assert record(out)["parameters"]["stride"] == 3
