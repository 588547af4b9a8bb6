"""What a measurement needs is known before it starts, and it does not start where there is less."""

import resource

import numpy as np
import pytest

from tests.batch.movies import align
from tests.io.samples import write_plain
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import LimitError
from xcorr_app.registration.stack import needs


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(needs, "free_bytes", lambda: 16 * 10**9)
    window = ShiftWindow.symmetric(5000, 5000)
    with pytest.raises(
        LimitError, match=r"20000 x 20000 pixels, shifts up to 5000 .* at least 56\.8 GB .* 16 GB are free"
    ):
        needs.check_memory((20_000, 20_000), window, verified=True)
    needs.check_memory((10_000, 10_000), ShiftWindow.symmetric(16, 16), verified=True)
    monkeypatch.setattr(needs, "free_bytes", lambda: None)
    needs.check_memory((20_000, 20_000), window, verified=True)


def test_a_limit_of_the_process_counts(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3 << 30, 3 << 30))
    assert 0 <= needs.free_bytes() < 3 << 30


def test_a_stack_that_needs_too_much_fails_before_it_begins(tmp_path, monkeypatch):
    write_plain(tmp_path / "a.tif", np.random.default_rng(0).integers(0, 255, (3, 60, 50), dtype=np.uint8))
    monkeypatch.setattr(needs, "_WORTH_ASKING", 0)
    monkeypatch.setattr(needs, "free_bytes", lambda: 1000)
    run = align(tmp_path / "a.tif", "-o", tmp_path / "out", "--device", "cpu")
    assert run.code == 1
    assert "measuring frames of 60 x 50 pixels" in run.stdout
    assert "measure a part with --roi" in run.stdout
    assert not list((tmp_path / "out").rglob("*.csv"))


def test_a_stack_that_fails_when_it_is_moved_leaves_no_table(tmp_path, monkeypatch):
    from xcorr_app.batch.align import stack

    def fail(*_):
        raise MemoryError

    write_plain(tmp_path / "a.tif", np.random.default_rng(0).integers(0, 255, (3, 60, 50), dtype=np.uint8))
    monkeypatch.setattr(stack, "move_stack", fail)
    run = align(tmp_path / "a.tif", "-o", tmp_path / "out", "--device", "cpu")
    assert run.code == 1
    assert "needs more memory than there is" in run.stdout
    assert not list((tmp_path / "out").rglob("*.csv"))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("MemTotal: 900 kB\nMemAvailable: 500 kB\nSwapFree: 20 kB\n", 520 * 1024),
        ("MemAvailable: 500 kB\n", 500 * 1024),
        ("MemTotal: 900 kB\n", None),
    ],
)
def test_what_the_machine_has(monkeypatch, tmp_path, said, expected):
    (tmp_path / "meminfo").write_text(said)
    real = needs._table
    monkeypatch.setattr(needs, "_table", lambda path: real(tmp_path / path.name))
    assert needs._of_machine() == expected
