"""What a call of a bank asks for, by shape, type, boundary and stride."""

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.bank_request import checked_bank


def asked(image, bank, mode="reflect", stride=1, dtype="float32", cval=0.0, method="auto"):
    return checked_bank(image, np.dtype(dtype), np.ones(bank), mode, cval, stride, method)


@pytest.mark.parametrize(
    ("image", "bank", "mode", "stride", "stack", "result"),
    [
        ((9, 11), (4, 3, 5), "reflect", 1, (1, 1, 9, 11), (4, 9, 11)),
        ((9, 11), (4, 3, 5), "valid", 1, (1, 1, 9, 11), (4, 7, 7)),
        ((9, 11), (4, 9, 11), "valid", 1, (1, 1, 9, 11), (4, 1, 1)),
        ((2, 3, 9, 11), (4, 3, 5), "reflect", 2, (6, 1, 9, 11), (2, 3, 4, 5, 6)),
        ((2, 3, 9, 11), (4, 3, 3, 5), "valid", 3, (2, 3, 9, 11), (2, 4, 3, 3)),
        ((3, 9, 11), (4, 3, 3, 5), "constant", 20, (1, 3, 9, 11), (4, 1, 1)),
    ],
)
def test_shapes(image, bank, mode, stride, stack, result):
    found = asked(image, bank, mode, stride)
    assert found.stack_shape == stack
    assert found.result_shape == result
    assert found.shape == (stack[0], *result[-3:])
    assert found.filters.shape == (bank if len(bank) == 4 else (bank[0], 1, *bank[1:]))
    assert (found.mode, found.stride, found.cval) == (mode, stride, 0.0)


@pytest.mark.parametrize(
    ("dtype", "target"),
    [("uint8", "float32"), ("int16", "float32"), ("float32", "float32"), ("int32", "float64"), ("float64", "float64")],
)
def test_types(dtype, target):
    assert asked((9, 11), (4, 3, 5), dtype=dtype).target == np.dtype(target)
    assert asked((9, 11), (4, 3, 5), dtype=np.dtype(dtype).newbyteorder(">")).target == np.dtype(target)
    with pytest.raises(DataTypeError):
        asked((9, 11), (4, 3, 5), dtype="complex64")


@pytest.mark.parametrize(
    ("image", "bank", "more", "error"),
    [
        ((9, 11), (4, 10, 5), {"mode": "valid"}, ShapeError),
        ((9, 11), (4, 3, 12), {"mode": "valid"}, ShapeError),
        ((9,), (4, 3, 5), {}, ShapeError),
        ((9, 11), (4, 1, 3, 5), {}, ShapeError),
        ((2, 9, 11), (4, 3, 3, 5), {}, ShapeError),
        ((0, 9, 11), (4, 3, 5), {}, ShapeError),
        ((9, 11), (3, 5), {}, ShapeError),
        ((9, 11), (0, 3, 5), {}, ShapeError),
        ((9, 11), (4, 3, 5), {"mode": "odd"}, ArgumentError),
        ((9, 11), (4, 3, 5), {"method": "odd"}, ArgumentError),
        ((9, 11), (4, 3, 5), {"cval": np.inf}, ArgumentError),
        ((9, 11), (4, 3, 5), {"stride": 0}, ArgumentError),
        ((9, 11), (4, 3, 5), {"stride": True}, ArgumentError),
        ((9, 11), (4, 3, 5), {"stride": 1.0}, ArgumentError),
    ],
)
def test_what_is_refused(image, bank, more, error):
    with pytest.raises(error):
        asked(image, bank, **more)


def test_filters_that_are_no_numbers():
    for bank in (np.full((2, 3, 3), np.nan), [[["a"]]], [[1, 2], [3]]):
        with pytest.raises(ArgumentError):
            checked_bank((9, 11), np.dtype(np.uint8), bank, "reflect", 0.0, 1, "auto")
