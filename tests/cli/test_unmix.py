"""`xcorr unmix`: values, metadata, stains, spectra, folders, devices, and what is refused."""

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.batch.movies import record, xcorr
from tests.io.samples import noise, write_ome, write_shaped
from xcorr_app import read_stack, stain_matrix, unmix

MATRIX = np.array([[1, -0.25, 0], [-0.5, 1, 0.125]])


@pytest.fixture
def matrix_file(tmp_path):
    (tmp_path / "m.csv").write_text("# two dyes\nDAPI, 1, -0.25, 0\nGFP, -0.5, 1, 0.125\n")
    return tmp_path / "m.csv"


def run_unmix(path, out, *options):
    return xcorr("unmix", path, "-o", out, *options)


def result_of(out, name="in"):
    """The file that came of a stack."""
    return out / name / f"{name}_unmixed.tif"


def facts_of(out, name="in"):
    """What ``run.json`` says of a stack."""
    return record(out)["stacks"][name]


def failed(run, *words):
    """Wrong usage, or a stack that failed, and said why."""
    assert run.code == (2 if run.stderr else 1)
    assert not [word for word in words if word not in run.stdout + run.stderr]


def colours(shape=(20, 30), dtype="uint8"):
    return noise((*shape, 3), dtype, seed=3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "float32", "float64"])
@pytest.mark.parametrize("wanted", ["same", "float32"])
def test_pixels_are_those_of_the_function(tmp_path, matrix_file, dtype, wanted):
    data = noise((2, 3, 9, 11), dtype)
    write_ome(tmp_path / "in.ome.tif", data, "TCYX")
    out = tmp_path / "out"
    run = run_unmix(tmp_path / "in.ome.tif", out, "--matrix", matrix_file, "--dtype", wanted)
    assert (run.code, run.stderr) == (0, "")
    stack = read_stack(result_of(out))
    assert (stack.metadata.axes, stack.metadata.shape) == ("TCYX", (2, 2, 9, 11))
    np.testing.assert_array_equal(stack.data, unmix(data, MATRIX, dtype=wanted), strict=True)


@pytest.mark.parametrize(("axes", "shape", "kept"), [("CTYX", (3, 4, 6, 7), "TCYX"), ("ZCYX", (2, 3, 6, 7), "ZCYX")])
def test_metadata_of_ome_is_kept_but_for_the_channels(tmp_path, matrix_file, axes, shape, kept):
    data = noise(shape)
    write_ome(tmp_path / "in.ome.tif", data, axes)
    out = tmp_path / "out"
    assert run_unmix(tmp_path / "in.ome.tif", out, "--matrix", matrix_file).code == 0
    old, new = read_stack(tmp_path / "in.ome.tif"), read_stack(result_of(out))
    assert new.metadata.axes == kept
    expected = unmix(data, MATRIX, channel_axis=axes.index("C"))
    np.testing.assert_array_equal(new.data, np.moveaxis(expected, axes.index("C"), kept.index("C")))
    for name in ("pixel_size", "unit", "z_step", "z_unit", "time_increment", "time_unit", "kind"):
        assert getattr(new.metadata, name) == getattr(old.metadata, name), name
    assert old.metadata.channel_names == ("dye 0", "dye 1", "dye 2")
    assert new.metadata.channel_names == ("DAPI", "GFP")


def write_colours(path, data):
    if path.suffix == ".png":
        path.write_bytes(imagecodecs.png_encode(data))
    elif "planar" in path.name:
        tifffile.imwrite(path, np.moveaxis(data, -1, 0), photometric="rgb", planarconfig="separate")
    elif "tiled" in path.name:
        tifffile.imwrite(path, data, photometric="rgb", tile=(16, 16), compression="zlib")
    elif "big" in path.name:
        tifffile.imwrite(path, data, photometric="rgb", byteorder=">", metadata=None, rowsperstrip=7)
    else:
        tifffile.imwrite(path, data, photometric="rgb", resolution=(4, 2))


@pytest.mark.parametrize("name", ["a.tif", "planar.tif", "tiled.tif", "big.tif", "a.png"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_stains_of_colour_images(tmp_path, name, dtype):
    data = colours(dtype=dtype)
    write_colours(tmp_path / name, data)
    out = tmp_path / "out"
    run = run_unmix(tmp_path / name, out, "--stain", "he")
    assert run.code == 0
    stem = name.partition(".")[0]
    assert facts_of(out, stem)["channels"][0] == "hematoxylin"
    np.testing.assert_allclose(facts_of(out, stem)["matrix"], stain_matrix("he").matrix)
    stack = read_stack(result_of(out, stem))
    assert (stack.metadata.axes, stack.metadata.dtype) == ("CYX", np.float32)
    expected = unmix(np.moveaxis(data, -1, 0), stain_matrix("he").matrix, from_log=True)
    np.testing.assert_allclose(stack.data, expected, atol=1e-6)
    old = {"a.tif": (2.0, 4.0)}.get(name)
    with tifffile.TiffFile(result_of(out, stem)) as tif:
        assert tif.pages[0].photometric.name == "MINISBLACK"
        if old is not None:
            assert [tif.pages[0].tags[f"{axis}Resolution"].value[0] for axis in "YX"] == list(old)


def test_spectra_are_inverted_and_their_condition_is_said(tmp_path, rng):
    spectra = np.array([[0.9, 0.2], [0.3, 0.7], [0.1, 0.4]])
    dyes = rng.uniform(0, 100, (2, 6, 7))
    write_shaped(tmp_path / "in.tif", np.einsum("cd,dyx->cyx", spectra, dyes).astype(np.float32), "CYX")
    rows = "\n".join(f"ch{k},{a},{b}" for k, (a, b) in enumerate(spectra))
    (tmp_path / "s.csv").write_text(f"channel,DAPI,GFP\n{rows}\n")
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o", "--spectra", tmp_path / "s.csv")
    scaled = spectra / np.sqrt((spectra**2).sum(0))
    large, small = np.sqrt(np.linalg.eigvalsh(scaled.T @ scaled))[::-1]
    assert f"Condition number of the spectra: {large / small:.3g}" in run.stdout
    np.testing.assert_allclose(tifffile.imread(result_of(tmp_path / "o")), dyes, atol=1e-3)
    facts = facts_of(tmp_path / "o")
    assert facts["channels"] == ["DAPI", "GFP"]
    assert facts["condition_number"] == pytest.approx(large / small)


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--matrix", "1,2\n3,4\n5,6", ("needs 2", "fits when transposed", "--spectra")),
        ("--spectra", "1,2,3\n4,5,7", ("3 dyes cannot be separated by 2 channels", "transpose")),
        ("--spectra", "1,2\n2,4\n3,6", ("cannot be told apart", "condition number")),
        ("--spectra", "1,0\n2,0\n3,0", ("cannot be told apart",)),
        ("--spectra", "1,nan\n2,1\n3,6", ("finite",)),
        ("--spectra", "1,2\n2,5", ("3 channels", "needs 2")),
    ],
)
def test_spectra_and_matrices_that_do_not_fit(tmp_path, option, text, words):
    write_shaped(tmp_path / "in.tif", noise((3, 6, 7)), "CYX")
    (tmp_path / "m.csv").write_text(text)
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o", option, tmp_path / "m.csv")
    failed(run, *words)
    assert not result_of(tmp_path / "o").exists()
