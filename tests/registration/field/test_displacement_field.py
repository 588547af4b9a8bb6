"""Fields of displacements: known ones found, errors predicted, files and pictures of them."""

import csv
import io

import numpy as np
import pytest
import tifffile
from scipy import ndimage
from scipy.interpolate import RegularGridInterpolator

import xcorr_app as xc
from tests.registration.patches.test_motion_patches import waves
from tests.registration.scenes import texture
from xcorr_app.errors import ArgumentError
from xcorr_app.io import read_stack
from xcorr_app.registration.field.field_files import ome_tiff


def pair(seed, displacement, noise=0.02):
    """Two images; the second shows at x + d(x) what the first shows at x."""
    shape, pad = displacement.shape[1:], 20
    splines = ndimage.spline_filter(texture((shape[0] + 2 * pad, shape[1] + 2 * pad), seed, 1.3), 5)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float) + pad
    first = ndimage.map_coordinates(splines, [y + displacement[0], x + displacement[1]], order=5, prefilter=False)
    second = ndimage.map_coordinates(splines, [y, x], order=5, prefilter=False)
    rng = np.random.default_rng(seed + 1)
    return [image + noise * rng.normal(size=shape) for image in (first, second)]


def truth(displacement, field):
    grid = np.meshgrid(field.rows, field.columns, indexing="ij")
    return np.stack([ndimage.map_coordinates(part, grid, order=1) for part in displacement], axis=2)


@pytest.mark.parametrize("refine", ["none", "icgn"])
def test_a_smooth_field_is_found(refine):
    displacement = waves((203, 180), 1, 4.0, periods=0.5) + np.array([3.0, -6.0])[:, None, None]
    first, second = pair(1, displacement)
    field = xc.displacement_field(first, second, refine=refine)
    # At the edges, what the windows of the first image show has left the second.
    error = (field.displacement - truth(displacement, field))[1:-1, 1:-1]
    assert field.replaced.mean() < 0.05
    assert np.sqrt((error**2).mean()) < (0.02 if refine == "icgn" else 0.06)
    assert np.nanmedian(field.score) > 0.95


def test_strain_and_turning_are_those_of_the_motion():
    y, x = np.mgrid[:160, :170] - 80.0
    displacement = np.stack([0.01 * y + 0.004 * x, -0.006 * y - 0.02 * x])
    first, second = pair(2, displacement, noise=0.0)
    field = xc.displacement_field(first, second, refine="icgn")
    inner = slice(2, -2)
    np.testing.assert_allclose(np.median(field.strain[inner, inner], axis=(0, 1)), [0.01, -0.02, -0.001], atol=3e-4)
    assert np.median(field.vorticity[inner, inner]) == pytest.approx(0.01, abs=5e-4)


def particles(shift, diameter, seed, shape=(256, 256), noise=2.0):
    """A pair of images of particles, as a camera of 8 bits takes them."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-20, shape[0] + 20, (3000, 2))
    bright = rng.uniform(100, 200, len(places))
    near = np.arange(-6, 7)
    images = []
    for moved in (places, places + shift):
        image = np.zeros((shape[0] + 64, shape[1] + 64))
        for place, height in zip(moved + 32, bright, strict=True):
            whole = place.astype(int)
            along = [np.exp(-8 * ((near + w - p) / diameter) ** 2) for w, p in zip(whole, place, strict=True)]
            image[whole[0] - 6 : whole[0] + 7, whole[1] - 6 : whole[1] + 7] += height * np.outer(*along)
        image = image[32:-32, 32:-32] + noise * rng.normal(size=shape)
        images.append(np.clip(image, 0, 255).round().astype(np.uint8))
    return images


@pytest.mark.parametrize("window", [16, 32])
def test_a_single_pass_is_not_drawn_to_whole_pixels(window):
    errors = []
    for seed, shift in enumerate(((1.37, -2.6), (0.5, -0.25), (-1.62, 2.13))):
        first, second = particles(shift, 2.0, seed)
        field = xc.displacement_field(first, second, window, window // 2, 1)
        error = (field.displacement - shift)[1:-1, 1:-1]
        errors.append(error)
        # Nor is the mean: three values around a peak leave .03 px.
        assert np.abs(np.median(error, axis=(0, 1))).max() < 0.012
    assert np.sqrt(np.mean(np.square(errors))) < (0.06 if window == 16 else 0.03)


def test_errors_of_a_single_pass_are_predicted():
    displacement = np.zeros((2, 300, 320)) + np.array([1.4, -3.2])[:, None, None]
    first, second = pair(5, displacement, noise=0.3)
    field = xc.displacement_field(first, second, passes=1)
    error = (field.displacement - truth(displacement, field)) / field.sigma
    assert 0.75 < np.sqrt(np.nanmean(error[1:-1, 1:-1] ** 2)) < 1.33


def test_what_is_masked_takes_no_part_in_a_single_pass():
    displacement = np.zeros((2, 160, 170)) + np.array([1.4, -2.3])[:, None, None]
    images = pair(6, displacement)
    mask = np.ones((160, 170), dtype=bool)
    mask[:, 100:] = False
    found = []
    for poison in (0.0, 1e6):
        first, second = (np.where(mask, image, poison) for image in images)
        found.append(xc.displacement_field(first, second, 32, 16, 1, mask=mask).displacement)
    np.testing.assert_array_equal(*found)


def test_errors_are_predicted():
    displacement = np.zeros((2, 260, 260)) + 1.37
    first, second = pair(3, displacement, noise=0.3)
    field = xc.displacement_field(first, second, step=32, refine="icgn")
    size = np.abs((field.displacement - 1.37) / field.sigma)
    assert 0.5 < np.nanmean(size < 1) < 0.85


def test_what_is_masked_is_left_out():
    displacement = np.zeros((2, 150, 150)) + np.array([2.0, -3.0])[:, None, None]
    first, second = pair(4, displacement)
    for image in (first, second):
        image[40:90, 50:110] = 9.0  # a thing that stands still
        image[60:70, 70:80] = np.nan
    seen = np.ones((150, 150))
    seen[40:90, 50:110] = 0
    field = xc.displacement_field(first, second, mask=seen)
    assert 0 < field.masked.mean() < 0.3
    assert np.isnan(field.displacement[field.masked]).all()
    found = field.displacement[~field.masked]
    assert np.abs(found - [2, -3]).max() < 0.3
    # Beside what is masked, windows are refined as elsewhere.
    field = xc.displacement_field(first, second, mask=seen, refine="icgn")
    assert field.replaced.mean() < 0.1
    np.testing.assert_array_equal(np.isfinite(field.sigma).all(axis=2), ~(field.masked | field.replaced))


def test_later_passes_reach_what_the_first_smoothes_over():
    """A bump little wider than a window: large windows are several pixels off at its top."""
    y, x = np.mgrid[:200, :200]
    displacement = np.stack([9 * np.exp(-((y - 100) ** 2 + (x - 100) ** 2) / (2 * 20**2)), 0.0 * y])
    field = xc.displacement_field(*pair(3, displacement), step=8, passes=3)
    error = (field.displacement - truth(displacement, field))[2:-2, 2:-2]
    assert np.abs(error).max() < 1.5


@pytest.mark.share(2)
def test_displacements_of_strain_gauges(shared_data):
    folder = shared_data / "dic_sample14"
    exact = np.loadtxt(folder / "sample14_exact.csv", delimiter=",")
    reference = read_stack(folder / "Sample14 Reference.tif").data.squeeze()[100:400]
    for column, level in ((1, 1), (5, 5)):
        moved = read_stack(folder / f"Sample14 L{level} Amp0.1b.tif").data.squeeze()[100:400]
        field = xc.displacement_field(reference, moved, step=32, refine="icgn")
        expected = np.interp(field.columns, exact[:, 0], exact[:, column])
        rms = np.sqrt(((field.displacement[..., 1].mean(axis=0) - expected) ** 2).mean())
        assert rms < 0.008


def test_flow_of_particles(shared_data):
    folder = shared_data / "openpiv_test1"
    first, second = (read_stack(folder / f"exp1_001_{name}.bmp").data.squeeze() for name in "ab")
    field = xc.displacement_field(first, second)
    assert field.replaced.mean() < 0.03
    assert np.median(field.displacement, axis=(0, 1)) == pytest.approx([5.2, -0.15], abs=0.1)
    # The field that comes with the pair is in millimetres, rows upwards.
    x, y, u, v, flags, _ = np.loadtxt(folder / "test_data.vec").T
    places = np.stack([first.shape[0] - 96.52 * y, 96.52 * x], axis=1)
    reference = np.stack([-96.52 * v, 96.52 * u], axis=1)
    found = RegularGridInterpolator((field.rows, field.columns), field.displacement)(places)
    error = np.abs(found - reference)[flags == 0]
    assert np.median(error) < 0.12
    assert np.sqrt((error**2).mean()) < 0.25


def test_files_say_what_was_found(tmp_path):
    first, second = pair(6, np.zeros((2, 96, 112)) + 1.25)
    field = xc.displacement_field(first, second)
    for kind in ("csv", "npz", "ome.tif"):
        field.save(tmp_path / f"f.{kind}")
    with (tmp_path / "f.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == field.replaced.size
    np.testing.assert_allclose([float(row["dy"]) for row in rows], field.displacement[..., 0].ravel(), rtol=1e-6)
    with np.load(tmp_path / "f.npz") as archive:
        np.testing.assert_array_equal(archive["vorticity"], field.vorticity)
    image = xc.read_stack(tmp_path / "f.ome.tif")
    assert image.metadata.channel_names == ("dy", "dx", "sigma_y", "sigma_x", "replaced")
    np.testing.assert_array_equal(image.data[1], field.displacement[..., 1].astype(np.float32))
    with pytest.raises(ArgumentError, match="csv"):
        field.save(tmp_path / "f.txt")


validate = pytest.importorskip("ome_types", reason="ome-types, of the extra dev, is not installed").validate_xml
pytest.importorskip("xmlschema", reason="xmlschema, of the extra dev, is not installed")


def xml_of(shape, channels=("dy", "dx", "sigma_y", "sigma_x", "trusted")):
    numbers = {name: np.random.default_rng(0).normal(size=shape) for name in channels}
    rows, columns = (16.0 * np.arange(count) + 7.5 for count in shape[1:])
    return tifffile.TiffFile(io.BytesIO(ome_tiff(numbers, rows, columns))).ome_metadata


@pytest.mark.parametrize("shape", [(1, 4, 5), (7, 3, 3), (2, 1, 1)])
def test_it_is_valid(shape):
    validate(xml_of(shape))
