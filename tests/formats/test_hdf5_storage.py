"""HDF5 arrays that name other files, or hold more than they say: right, or refused in words; never zeros or bombs."""

import json
import os
import subprocess
import sys
import zlib

import imagecodecs
import numpy as np
import pytest

from tests.batch.movies import align, movie, record, xcorr
from tests.fuzz.judge import SLACK, memory
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError, InputError, LimitError

h5py = pytest.importorskip("h5py")
DATA = movie()


def filtered(path, out, *more):
    return xcorr("filter", "--device", "cpu", path, "-o", out, "--box", "1", *more)


def refused(run, *words):
    """The only stack failed, in words."""
    assert run.code == 1, run
    assert "1 stack failed" in run.stdout.replace("1 of 1 stack", "1 stack")
    for word in words:
        assert word in " ".join(run.stdout.split())


def virtual(path, of="part.h5"):
    """A file whose array is virtual over another, which is there."""
    layout = h5py.VirtualLayout(DATA.shape, DATA.dtype)
    layout[:] = h5py.VirtualSource(of, "d", DATA.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout)
    with h5py.File(path.with_name("part.h5"), "w") as file:
        file["d"] = DATA
    return path


def test_values_of_other_files_are_not_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"root:x:0:0" * 1000)
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.create_dataset("e", (3, 20, 30), "u1", external=[(str(secret), 0, 1800)])
    virtual(tmp_path / "v.h5")
    for name, other in (("e", "secret"), ("v", "part.h5")):
        for command in (filtered, lambda path, out: align(path, "-o", out)):
            run = command(tmp_path / f"{name}.h5", tmp_path / "out")
            refused(run, f"{name} is made of values in other files", other, "name those files, as frames")


@pytest.mark.parametrize("name", ["link", "soft", "group/link", "around"])
def test_links_to_other_files_are_not_followed(tmp_path, name):
    os.mkfifo(tmp_path / "pipe.h5")  # which would hang whoever opens it
    with h5py.File(tmp_path / "l.h5", "w") as file:
        file["one"], file["two"] = DATA, DATA
        file["group/link"] = h5py.ExternalLink("pipe.h5", "/d")
        file["link"] = h5py.ExternalLink("pipe.h5", "/d")
        file["soft"] = h5py.SoftLink("/link")
        file["around"], file["again"] = h5py.SoftLink("/again"), h5py.SoftLink("around")
        file["fine"] = h5py.SoftLink("/one")
    words = "circle of links" if name == "around" else "is a link to pipe.h5"
    refused(filtered(f"{tmp_path / 'l.h5'}:/{name}", tmp_path / "out"), words)
    np.testing.assert_array_equal(read_stack(f"{tmp_path / 'l.h5'}:/fine").data, DATA)


def bomb(path, encode, size, **how):
    with h5py.File(path, "w") as file:
        array = file.create_dataset("d", (2, 64, 64), "u2", chunks=(1, 64, 64), **how)
        array[0] = 7
        array.id.write_direct_chunk((1, 0, 0), encode(bytes(size)), 0)
    return path


@pytest.mark.parametrize("size", [64 * 64 * 2 - 2, 64 * 64 * 2 + 2, 1 << 26])
@pytest.mark.parametrize(
    ("encode", "how"),
    [
        (zlib.compress, {"compression": "gzip"}),
        (zlib.compress, {"compression": "gzip", "shuffle": True}),
        (imagecodecs.lzf_encode, {"compression": "lzf"}),
    ],
)
def test_a_chunk_that_holds_another_number_of_bytes_is_damaged(tmp_path, encode, how, size):
    path = bomb(tmp_path / "b.h5", encode, size, **how)
    words = "detected the output buffer is not large" if how["compression"] == "lzf" and size > 1 << 20 else "holds"
    before = memory()
    with pytest.raises(DamagedFileError, match=words):
        read_stack(path)
    assert memory(peak=True) - before < 2 * (2 * 64 * 64 * 2) + SLACK
    run = filtered(path, tmp_path / "out")
    assert run.code == 1
    assert words in json.dumps(record(tmp_path / "out")["stacks"]["b"])


def test_chunks_that_are_declared_too_large_are_refused(tmp_path):
    for name, chunk, error in (("a", (1, 20000, 20000), LimitError), ("b", (1, 9000, 9000), DamagedFileError)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("d", (2, 64, 64), "u1", chunks=chunk, maxshape=(None,) * 3, compression="gzip")
        with pytest.raises(error, match="declares chunks of"):
            read_stack(tmp_path / f"{name}.h5")


def test_other_encodings_are_named(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("d", data=DATA, chunks=True, scaleoffset=4)
    with pytest.raises(InputError, match="gzip and lzf are read"):
        read_stack(tmp_path / "s.h5")


def told_of(paths):
    """What is said of damaged files by a process of its own, which the library may hold up or end."""
    code = (
        "import sys, xcorr_app\n"
        "for path in sys.argv[1:]:\n"
        "    try: xcorr_app.read_stack(path)\n"
        "    except xcorr_app.errors.DamagedFileError as error: print(error)"
    )
    command = [sys.executable, "-c", code, *paths]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("sizes", [(8, 8), (4, 4)])
def test_a_heap_whose_objects_have_no_size_is_damaged(tmp_path, sizes):
    """The library goes from one to the next by their sizes, and would stay at this one for ever."""
    layout = h5py.VirtualLayout(DATA.shape, DATA.dtype)
    layout[:] = h5py.VirtualSource("part.h5", "d", DATA.shape)
    known = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    known.set_sizes(*sizes)  # of places and of lengths
    whole = tmp_path / "whole.h5"
    with h5py.File(h5py.h5f.create(os.fsencode(whole), fcpl=known)) as file:
        file.create_virtual_dataset("v", layout)
    with pytest.raises(InputError, match="v is made of values in other files"):
        read_stack(whole)
    content = bytearray(whole.read_bytes())
    heap = content.index(b"GCOL")
    for number, size in ((0, 0), (1, 2**64 - 16), (1, 1 << 20)):
        content[heap + 16 : heap + 18] = number.to_bytes(2, "little")
        content[heap + 24 : heap + 24 + sizes[1]] = size.to_bytes(8, "little")[: sizes[1]]
        (tmp_path / f"damaged{number}{size % 3}.h5").write_bytes(content)
    told = told_of(tmp_path.glob("damaged*.h5"))
    assert told.count(f".h5: cannot be parsed (an object of its global heap, at byte {heap + 16},") == 3


def test_sources_whose_checksum_is_not_theirs_are_damaged(tmp_path):
    """The library parses them first, and may read beyond their end."""
    content = virtual(tmp_path / "whole.h5").read_bytes()
    start = content.index(b"GCOL") + 32
    for at in (4, 9, 45, 60, 83):
        damaged = bytearray(content)
        damaged[start + at] ^= 0x7F
        (tmp_path / f"damaged{at}.h5").write_bytes(damaged)
    told = told_of(tmp_path.glob("damaged*.h5"))
    assert told.count(".h5: cannot be parsed (the checksum of the names of its sources") == 5
