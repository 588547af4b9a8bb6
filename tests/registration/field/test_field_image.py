"""The OME-XML of a field's image is valid by the schema of the Open Microscopy Environment."""

import io

import numpy as np
import pytest
import tifffile

from xcorr_app.registration.field.field_image import PixelSize, ome_tiff

validate = pytest.importorskip("ome_types", reason="ome-types, of the extra dev, is not installed").validate_xml
pytest.importorskip("xmlschema", reason="xmlschema, of the extra dev, is not installed")


def xml_of(shape, size=None, channels=("dy", "dx", "sigma_y", "sigma_x", "trusted")):
    numbers = {name: np.random.default_rng(0).normal(size=shape) for name in channels}
    rows, columns = (16.0 * np.arange(count) + 7.5 for count in shape[1:])
    return tifffile.TiffFile(io.BytesIO(ome_tiff(numbers, rows, columns, size))).ome_metadata


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        *((shape, None) for shape in ((1, 4, 5), (7, 3, 3), (2, 1, 1))),
        *(((2, 4, 5), (0.11, 0.13, unit)) for unit in ("nm", "µm", "mm", "cm", "m", "Å")),
    ],
)
def test_it_is_valid(shape, size):
    validate(xml_of(shape, size and PixelSize(*size)))


def test_what_is_not_would_be_refused():
    xml = xml_of((2, 4, 5))
    for good, bad in (('Type="float"', 'Type="real"'), ("SizeX", "Width"), ('"Pixels:0"', '"Pixel:0"')):
        assert good in xml
        with pytest.raises(Exception, match="valid"):
            validate(xml.replace(good, bad))
