"""Files of every kind with bytes changed, cut, doubled: an array of the declared shape, or an error of the file."""

import io
import random
import resource

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, write_imagej, write_ome, write_shaped
from tests.io.test_formats import smooth, write_lsm
from xcorr_app.errors import FileError
from xcorr_app.io import Limits, scan_file
from xcorr_app.io.matrices import scan_matrices
from xcorr_app.io.mixing_matrix import read_matrix

MUTANTS = 150
LIMITS = Limits(max_pixels=2**20, max_pages=1000)
GREY = smooth((24, 20))
RGB = np.ascontiguousarray(np.stack([GREY, GREY[::-1], GREY], -1))


def npy(data):
    file = io.BytesIO()
    np.save(file, data)
    return file.getvalue()


def written(folder, write, *arguments, **options):
    write(folder / "seed.tif", *arguments, **options)
    return (folder / "seed.tif").read_bytes()


SEEDS = {
    "bmp": lambda _: imagecodecs.bmp_encode(GREY),
    "bmp-colour": lambda _: imagecodecs.bmp_encode(RGB),
    "jpeg": lambda _: imagecodecs.jpeg8_encode(GREY),
    "jpeg-colour": lambda _: imagecodecs.jpeg8_encode(RGB),
    "png": lambda _: imagecodecs.png_encode(GREY),
    "png-colour": lambda _: imagecodecs.png_encode(RGB),
    "npy": lambda _: npy(noise((3, 6, 5))),
    "npy-fortran": lambda _: npy(np.asfortranarray(noise((3, 6, 5), "float32"))),
    "npy-matrix": lambda _: npy(noise((3, 5), "float32")),
    "lsm": lambda folder: written(folder, write_lsm, noise((2, 2, 2, 7, 9))),
    "imagej": lambda folder: written(folder, write_imagej, noise((3, 2, 6, 5)), "TCYX"),
    "ome": lambda folder: written(folder, write_ome, noise((3, 2, 6, 5)), "TCYX"),
    "shaped": lambda folder: written(folder, write_shaped, noise((3, 6, 5)), "TYX"),
    "rgb": lambda folder: written(folder, tifffile.imwrite, RGB, photometric="rgb"),
    "rgb-ome": lambda folder: written(folder, tifffile.imwrite, RGB[None], photometric="rgb", ome=True),
}
NUMBERS = (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"9999", b"-1", "²".encode())


def mutated(content, rng):
    """Bytes with one to sixteen changes, most of them near the beginning."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(min(len(content), 400) if rng.random() < 0.7 else len(content))
        kind = rng.randrange(6)
        if kind == 0:
            content[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 1:
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            number = rng.choice(NUMBERS)
            content[at : at + len(number)] = number
        elif kind == 3:
            del content[at : at + rng.randrange(1, 20)]
        elif kind == 4:
            content[at:at] = content[rng.randrange(len(content)) :][:20]
        elif rng.random() < 0.2:
            del content[at:]
        if not content:
            break
    return bytes(content)


def check(path, read):
    """What reading gives has the declared shape; what it raises names the file, and is of the project."""
    try:
        read()
    except FileError as error:
        if str(path) not in str(error):
            pytest.fail(f"does not name the file: {error}")


def read_images(path, *, colour):
    file = scan_file(path, LIMITS, colour=colour)
    shape = file.metadata.shape[-2:]
    for page in range(min(3, file.page_count)):
        plane = file.read(page)
        assert plane.shape == (shape if file.samples == 1 else (file.samples, *shape))
        assert plane.dtype == file.metadata.dtype


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_files_are_read_or_refused(tmp_path, seed):
    content = SEEDS[seed](tmp_path)
    rng = random.Random(seed)  # noqa: S311 - the same files every time
    path = tmp_path / "mutant.npy"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(MUTANTS):
        path.write_bytes(mutated(content, rng))
        check(path, lambda: read_images(path, colour=False))
        check(path, lambda: read_images(path, colour=True))
        check(path, lambda: scan_matrices(path, limits=LIMITS).read())
        check(path, lambda: read_matrix(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
