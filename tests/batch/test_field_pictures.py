"""Which arrows a picture of a displacement field has, and where maps lie."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from xcorr_app.batch.field.pictures import _map, _quiver
from xcorr_app.registration.field.measured_field import DisplacementField


def field_of(rng, shape=(5, 6)):
    nothing = np.zeros(shape)
    known = np.zeros(shape, dtype=bool)
    rows, columns = 7.5 + 16 * np.arange(shape[0]), 3.5 + 8 * np.arange(shape[1])
    vectors = rng.normal(size=(*shape, 2))
    return DisplacementField(rows, columns, vectors, np.zeros((*shape, 2)), nothing, nothing, known, known.copy())


def drawn(draw):
    figure = Figure()
    axes = figure.add_subplot()
    draw(figure, axes)
    return axes


def test_arrows_stand_where_something_was_measured_or_replaced(rng):
    field = field_of(rng)
    field.displacement[1, 2] = np.nan
    field.displacement[3, 4, 1] = np.nan
    field.replaced[0, 1] = field.replaced[4, 4] = True
    size = np.hypot(*np.moveaxis(field.displacement, 2, 0))
    axes = drawn(lambda figure, axes: _quiver(field, size, figure, axes))
    measured, replaced = axes.collections
    assert [each.get_label() for each in axes.collections] == ["measured", "replaced"]
    shown = np.isfinite(size) & ~field.replaced
    y, x = np.meshgrid(field.rows, field.columns, indexing="ij")
    for arrows, chosen in ((measured, shown), (replaced, field.replaced)):
        np.testing.assert_array_equal(arrows.get_offsets(), np.stack([x[chosen], y[chosen]], axis=1))
        np.testing.assert_array_equal(arrows.U, field.displacement[chosen][:, 1])
        np.testing.assert_array_equal(arrows.V, field.displacement[chosen][:, 0])
    assert axes.get_ylim() == (field.rows[-1] + 1, field.rows[0] - 1)
    assert f"at most {np.nanmax(size):.3g} pixels" in axes.get_title()
    field.displacement[:] = np.nan
    nothing = drawn(lambda figure, axes: _quiver(field, np.full((5, 6), np.nan), figure, axes))
    assert not nothing.collections
    assert "at most 0 pixels" in nothing.get_title()


@pytest.mark.parametrize(("count", "arrows"), [(40, 40), (41, 21), (80, 40), (81, 27)])
def test_of_many_arrows_some_are_drawn(rng, count, arrows):
    field = field_of(rng, (3, count))
    size = np.zeros((3, count))
    axes = drawn(lambda figure, axes: _quiver(field, size, figure, axes))
    every = -(-count // arrows)
    assert len(axes.collections[0].get_offsets()) == arrows * -(-3 // every)


def test_a_map_lies_around_its_points(rng):
    field = field_of(rng)
    values = rng.normal(size=(5, 6))
    values[2, 2] = np.nan
    axes = drawn(lambda figure, axes: _map(field, values, "said", "RdBu_r", figure, axes))
    (image,) = axes.images
    assert image.get_extent() == [-0.5, 47.5, 79.5, -0.5]
    largest = np.percentile(np.abs(values[np.isfinite(values)]), 99)
    np.testing.assert_allclose(image.get_clim(), (-largest, largest))
    plain = drawn(lambda figure, axes: _map(field, values, "said", "viridis", figure, axes)).images[0]
    np.testing.assert_allclose(plain.get_clim(), (np.nanmin(values), np.nanmax(values)))
    assert axes.get_title() == "said"
    one = field_of(rng, (1, 1))
    axes = drawn(lambda figure, axes: _map(one, np.zeros((1, 1)), "", "RdBu_r", figure, axes))
    assert axes.images[0].get_extent() == [3, 4, 8, 7]
    assert axes.images[0].get_clim() == (-1e-12, 1e-12)
