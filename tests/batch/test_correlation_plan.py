"""What a plan says of its first block of pairs, and of all planes."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from xcorr_app.batch.correlate.plan import CorrelateOptions, CorrelationPlan
from xcorr_app.correlation.window import ShiftWindow


@pytest.mark.parametrize(
    ("form", "left", "right", "at_once", "counts", "leading"),
    [
        ("one-to-one", (1,), (1,), 4, (1, 1, 1), ()),
        ("one-to-many", (1,), (7,), 4, (1, 4, 4), (7,)),
        ("one-to-many", (1,), (7,), 70, (1, 7, 7), (7,)),
        ("n-to-m", (3,), (7,), 4, (1, 4, 4), (3, 7)),
        ("n-to-m", (3,), (2,), 4, (2, 2, 2), (3, 2)),
        ("n-to-m", (3,), (2,), 70, (3, 2, 2), (3, 2)),
        ("n-to-mn", (3,), (3, 2), 4, (2, 4, 2), (3, 2)),
        ("n-to-mn", (3,), (3, 2), 70, (3, 6, 2), (3, 2)),
        ("n-to-mn", (3,), (3, 2), 1, (1, 1, 1), (3, 2)),
    ],
)
def test_the_first_block(form, left, right, at_once, counts, leading):
    window = ShiftWindow.symmetric(2, 3)
    plan = CorrelationPlan(
        left=SimpleNamespace(dtype=np.dtype(np.uint8)),
        right=SimpleNamespace(dtype=np.dtype(np.uint8)),
        left_shape=(*left, 9, 11),
        right_shape=(*right, 13, 15),
        window=window,
        dtype=np.dtype(np.float32),
        engine="fft",
        pairs_at_once=at_once,
        device=SimpleNamespace(xp=np),
        out=Path("planes.npy"),
        options=CorrelateOptions(form=form),
    )
    problem = plan.problem()
    assert (problem.lefts, problem.rights, problem.rights_per_left) == counts
    assert plan.shape == (*leading, 5, 7)
    assert (problem.left_shape, problem.right_shape) == ((9, 11), (13, 15))
