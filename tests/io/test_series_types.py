"""How files that do not belong together are told apart."""

import re

import cv2
import numpy as np
import pytest

from tests.io.samples import noise
from xcorr_app.errors import InputError
from xcorr_app.io import scan_file
from xcorr_app.io.series import _plane_type, _stack_type, frames_source


def test_colours_are_said(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), noise((8, 9, 3), "uint8"))
    cv2.imwrite(str(tmp_path / "b.png"), noise((8, 9), "uint8"))
    colour, grey = scan_file(tmp_path / "a.png", colour=True), scan_file(tmp_path / "b.png")
    assert (_plane_type(colour), _plane_type(grey)) == ("8 x 9 uint8 in colours", "8 x 9 uint8")
    assert _stack_type(colour) == "8 x 9 uint8 in colours of T=1 Z=1 C=3"
    assert _stack_type(grey) == "8 x 9 uint8 of T=1 Z=1 C=1"


def test_pages_of_another_kind_are_named(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), noise((8, 9), "uint8"))
    cv2.imwrite(str(tmp_path / "b.png"), noise((8, 10), "uint8"))
    files = [scan_file(tmp_path / name) for name in ("a.png", "b.png")]
    message = re.escape(f"{tmp_path / 'b.png'}: its pages are 8 x 10 uint8, those of {tmp_path / 'a.png'} are 8 x 9")
    with pytest.raises(InputError, match=message):
        frames_source("series", files)
    assert np.array_equal(frames_source("series", files[:1]).plane(t=0), files[0].read(0))
