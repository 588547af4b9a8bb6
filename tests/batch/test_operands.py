"""How a form lays two files out, and in which blocks their pairs are computed."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from xcorr_app.batch.correlate.plan import operand_shapes
from xcorr_app.errors import ShapeError


def shapes(left, right, form):
    files = (SimpleNamespace(path=Path(name), shape=(*leading, 5, 6)) for name, leading in (("a", left), ("b", right)))
    return tuple(shape[:-2] for shape in operand_shapes(*files, form))


@pytest.mark.parametrize(
    ("form", "left", "right", "expected"),
    [
        ("one-to-one", (), (), ((1,), (1,))),
        ("one-to-many", (), (7,), ((1,), (7,))),
        ("one-to-many", (), (), ((1,), (1,))),
        ("n-to-m", (3,), (7,), ((3,), (7,))),
        ("n-to-m", (3,), (), ((3,), (1,))),
        ("n-to-mn", (3,), (6,), ((3,), (3, 2))),
        ("n-to-mn", (3,), (3,), ((3,), (3, 1))),
        ("n-to-mn", (3,), (3, 4), ((3,), (3, 4))),
        ("n-to-mn", (), (4,), ((1,), (1, 4))),
    ],
)
def test_counts_that_belong_to_a_form(form, left, right, expected):
    assert shapes(left, right, form) == expected


@pytest.mark.parametrize(
    ("form", "left", "right", "words"),
    [
        ("one-to-one", (), (7,), "use --form one-to-many"),
        ("one-to-one", (3,), (7,), "use --form n-to-m for every left with every right$"),
        ("one-to-one", (3,), (6,), "--form n-to-mn for each left with 2 of its own"),
        ("one-to-many", (3,), (4,), "takes one image from LEFT; a holds 3, b 4"),
        ("n-to-mn", (3,), (7,), "its 7 images cannot be shared out evenly among 3"),
        ("n-to-mn", (3,), (2,), "cannot be shared out"),
        ("n-to-mn", (3,), (2, 3), "holds 2 sets of 3 images for 3 left ones"),
        ("n-to-mn", (3, 2), (6,), "a: holds 3 x 2 images along two axes; LEFT takes a stack"),
        ("n-to-m", (3,), (3, 2), "b: holds 3 x 2 images along two axes; RIGHT takes a stack"),
    ],
)
def test_counts_that_do_not(form, left, right, words):
    with pytest.raises(ShapeError, match=words):
        shapes(left, right, form)
