"""Input that is missing, broken, odd or hostile: one clear line, nothing lost, the other files go on."""

import io
import os
import resource
import struct

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, align, applied, movie, record, refused, shifts, table, write_movie, xcorr
from tests.io.samples import page_tags, tiff_bytes, write_plain
from xcorr_app.errors import InputError
from xcorr_app.io import scan_file


def whole():
    """Bytes of a small stack."""
    return tiff_bytes([page_tags(40, 48, 122, 1920)], tail=bytes(range(1, 161)) * 12)


BROKEN = {
    "text": b"this is no image",
    "zero-bytes": b"",
    "header-only": b"II*\0\x08\0\0\0",
    "cut-short": whole()[:-100],
    "zero-byte-count": tiff_bytes([page_tags(40, 48, 122, 0)], tail=bytes(1920)),
    "gigantic": tiff_bytes([page_tags(100_000, 100_000, 8, 10)]),
    "colour": tiff_bytes([page_tags(40, 48, 122, 5760, t277=3, t262=2)], tail=bytes(5760)),
    "png-cut-short": imagecodecs.png_encode(np.arange(1920, dtype=np.uint8).reshape(40, 48))[:-30],
}


def test_every_broken_file_has_its_line_and_the_others_go_on(tmp_path):
    for name, content in BROKEN.items():
        (tmp_path / f"{name}.tif").write_bytes(content)
    write_movie(tmp_path / "good.tif")
    os.mkfifo(tmp_path / "pipe.tif")
    run = align(*sorted(tmp_path.glob("*.tif")), tmp_path / "nowhere.tif", "-o", tmp_path / "out")
    assert (run.code, run.stderr) == (1, "")
    report = (tmp_path / "out" / "report.html").read_text()
    failures = record(tmp_path / "out")["failures"]
    for name in (*BROKEN, "pipe", "nowhere"):
        assert len([line for line in run.stdout.splitlines() if line.strip().startswith(f"{name}.tif: ")]) == 1
        assert f"{name}.tif" in report
        assert str(tmp_path / f"{name}.tif") in failures
    assert "100000 x 100000 = 10000000000 pixels (10 GB as uint8)" in run.stdout
    assert "--max-pixels 10000000000" in run.stdout
    assert "pick one channel" in run.stdout
    assert list(record(tmp_path / "out")["stacks"]) == ["good"]
    np.testing.assert_allclose(shifts(tmp_path / "out" / "good" / "shifts.csv"), DRIFT, atol=0.02)


@pytest.mark.usefixtures("short_report")
@pytest.mark.parametrize("kind", ["cut-short", "colour", "gigantic", "dangling"])
def test_broken_frame_of_a_series_keeps_its_place(tmp_path, kind):
    folder = tmp_path / "series"
    folder.mkdir()
    for number, frame in enumerate(movie(dtype="uint8")):
        write_plain(folder / f"t{number}.tif", frame)
    (folder / "t1.tif").unlink()
    if kind == "dangling":
        (folder / "t1.tif").symlink_to("gone")
    else:
        (folder / "t1.tif").write_bytes(BROKEN[kind])
    run = align(folder, "-o", tmp_path / "out")
    assert run.code == 1
    rows = table(tmp_path / "out" / "series" / "shifts.csv")
    assert [row["flags"] for row in rows] == ["", "unreadable", "", ""]
    assert (rows[1]["source"], rows[1]["dy"]) == ("t1.tif", "")
    assert "Frame 1 is unreadable" in run.stdout
    good = [0, 2, 3]
    np.testing.assert_allclose(
        shifts(tmp_path / "out" / "series" / "shifts.csv")[good], np.array(DRIFT)[good], atol=0.02
    )
    moved = tifffile.imread(tmp_path / "out" / "series" / "series_aligned.tif")
    assert moved.shape == (4, 40, 48)
    assert not moved[1].any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (2, 3)])
@pytest.mark.parametrize("options", [(), ("--border", "crop", "--interpolation", "fourier", "--max-shift", "1000000")])
def test_tiny_images(tmp_path, shape, options):
    data = np.random.default_rng(0).integers(1, 1000, (3, *shape)).astype(np.uint16)
    write_plain(tmp_path / "m.tif", data)
    run = align(tmp_path / "m.tif", "-o", tmp_path / "out", *options)
    assert run.code in (0, 1)
    rows = table(tmp_path / "out" / "m" / "shifts.csv")
    assert len(rows) == 3
    flags = [set(row["flags"].split("|")) for row in rows]
    failed = [bool({"unreadable", "disagrees"} & words) for words in flags]
    doubtful = [bool({"flat", "edge", "ambiguous", "uncertain"} & words) for words in flags]
    assert (run.code == 1) == (any(failed) or 2 * sum(doubtful) > len(rows))


@pytest.mark.usefixtures("short_report")
def test_one_frame(tmp_path):
    write_plain(tmp_path / "m.tif", movie()[0])
    for reference in ("first", "mean", "previous", "template"):
        assert align(tmp_path / "m.tif", "-o", tmp_path / reference, "--reference", reference).code == 0
        np.testing.assert_array_equal(shifts(tmp_path / reference / "m" / "shifts.csv"), [[0, 0]])
        np.testing.assert_array_equal(tifffile.imread(tmp_path / reference / "m" / "m_aligned.tif"), movie()[0])


@pytest.mark.usefixtures("short_report")
def test_constant_frames(tmp_path):
    """As of a closed shutter: the sound ones are none the worse for a few; where most are flat, the run failed."""
    frames = movie()
    frames[1] = 7
    write_plain(tmp_path / "m.tif", frames)
    run = align(tmp_path / "m.tif", "-o", tmp_path / "out")
    assert run.code == 0
    assert "1 x flat: The frame has the same value everywhere" in run.stdout
    assert "2 of 3 frames in 1 stack corrected" in run.stdout
    assert "1 frame flagged; 1 without a shift; 1 not moved as measured" in run.stdout
    rows = table(tmp_path / "out" / "m" / "shifts.csv")
    assert [row["flags"] for row in rows] == ["", "flat", "", ""]
    moved = applied(tmp_path / "out")
    np.testing.assert_allclose(moved[1], (moved[0] + moved[2]) / 2, atol=2e-6)
    frames[2:] = 7
    write_plain(tmp_path / "most.tif", frames)
    assert align(tmp_path / "most.tif", "-o", tmp_path / "out1").code == 1
    frames[:] = 7
    write_plain(tmp_path / "c.tif", frames)
    assert align(tmp_path / "c.tif", "-o", tmp_path / "out2").code == 1
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out2" / "c" / "c_aligned.tif"), frames)


def test_odd_names(tmp_path):
    folder = tmp_path / "a b\nc"
    names = ["two words.tif", "new\nline.tif", "a..tif", "é µm.tif", "[red].tif", os.fsdecode(b"\xff.tif"), "<b>.tif"]
    for name in names:
        write_movie(folder / name)
    run = align(folder / ".." / "a b\nc", "-o", tmp_path / "o\nut", "-v")
    assert run.code == 0
    stacks = record(tmp_path / "o\nut")["stacks"]
    assert len(stacks) == len(names)
    for name in stacks:
        assert (tmp_path / "o\nut" / name / f"{name}_aligned.tif").is_file()
        assert not name.startswith(".")
    assert "o\\nut" in run.stdout
    assert "<b>" not in (tmp_path / "o\nut" / "report.html").read_text()


def described(text, pages=1, **options):
    """A stack whose first page has this description."""
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as tif:
        for index, frame in enumerate(movie(dtype="uint8")[:pages]):
            how = {"description": None if index else text, "metadata": None, "contiguous": False}
            tif.write(frame, photometric="minisblack", **how, **options)
    return file.getvalue()


def ome(pixels="", xml='<?xml version="1.0"?>', sizes='SizeT="1"', tail=""):
    return described(
        f'{xml}<OME><Image ID="Image:0"><Pixels DimensionOrder="XYZCT" SizeX="48" SizeY="40" SizeZ="1" SizeC="1" '
        f'{sizes} Type="uint8">{pixels}</Pixels></Image>{tail}</OME>'.encode()
    )


def big_tiff(offset):
    """A BigTIFF whose first directory should be at `offset`."""
    return b"II+\0" + struct.pack("<HHQ", 8, 0, offset) + bytes(64)


NINES = "9" * 3000
HOSTILE = {
    "imagej-images-superscript": described("ImageJ=1.54f\nimages=²\n".encode()),
    "imagej-slices-superscript": described("ImageJ=1.54f\nslices=²\n".encode()),
    "imagej-arabic-three": described("ImageJ=1.54f\nimages=٣\n".encode(), 3),
    "imagej-four-billion": described(b"ImageJ=1.54f\nimages=4000000000\n"),
    "imagej-half-a-billion": described(b"ImageJ=1.54f\nimages=500000000\n"),
    "imagej-product": described(f"ImageJ=1.54f\nslices={NINES}\nframes={NINES}\n".encode()),
    "ome-product": ome(sizes=f'SizeT="{NINES}"'),
    "json-product": described(f'{{"shape": [{NINES}, {NINES}, 40, 48]}}'.encode()),
    "json-many-axes": described(('{"shape": [' + "2, " * 4000 + "40, 48]}").encode()),
    "json-infinity": described(b'{"shape": [Infinity, 40, 48]}'),
    "json-half": described(b'{"shape": [0.5, 40, 48]}'),
    "json-deep": described(b'{"shape": ' + b"[" * 20_000),
    "bigtiff-offset-63": big_tiff(2**63),
    "bigtiff-offset-64": big_tiff(2**64 - 1),
    "ome-far-ifd": ome('<TiffData IFD="99999999999999999999999" PlaneCount="3"/>'),
    "ome-encoding-unknown": ome(xml='<?xml version="1.0" encoding="foo-bar"?>'),
    "ome-encoding-base64": ome(xml='<?xml version="1.0" encoding="base64"?>'),
    "ome-encoding-rot13": ome(xml='<?xml version="1.0" encoding="rot13"?>'),
    "ome-plane-text": ome('<TiffData IFD="0"/><Plane TheT="x" TheZ="0" TheC="0"/>'),
    "ome-deep": ome(tail="<a>" * 5000 + "</a>" * 5000),
    "npy-tokens": b"\x93NUMPY\1\0\x36\0{'descr': '<f8', 'fortran_order': True, 'shape': (, }  \n",
    "npy-minus": b"\x93NUMPY\1\0" + struct.pack("<H", 9000) + b"-" * 8999 + b"\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_numbers_and_texts_are_errors_of_their_file(tmp_path, name):
    path = tmp_path / f"{name}.tif"
    path.write_bytes(HOSTILE[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=name) as caught:
        scan_file(path)
    assert len(str(caught.value)) < 700
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize("name", ["npy-tokens", "npy-minus"])
def test_damaged_headers_of_taps_banks_matrices_and_operands(tmp_path, name):
    path = tmp_path / "damaged.npy"
    path.write_bytes(HOSTILE[name])
    stack, out = write_movie(tmp_path / "m.tif"), tmp_path / "out"
    for command in (
        ("filter", stack, "-o", out, "--taps", path),
        ("filter", stack, "-o", out, "--bank", path),
        ("unmix", stack, "-o", out, "--channel-axis", "T", "--matrix", path),
        ("correlate", stack, path, "-o", tmp_path / "o.tif"),
        ("align", stack, "-o", out, "--reference", path),
    ):
        refused(xcorr(*command), "damaged.npy: is no array that can be read")
