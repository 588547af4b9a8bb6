"""Videos that ffmpeg wrote, read in any order."""

import gc

import numpy as np
import pytest

from tests.io.samples import noise
from xcorr_app.errors import InputError
from xcorr_app.io import discover, read_stack

# The library leaves the pipes of its processes to the garbage collector, which warns of them.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


def write_video(path, frames, pix_fmt, *options):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    writer = ffmpeg.write_frames(
        str(path),
        frames.shape[2:0:-1],
        pix_fmt_in=pix_fmt,
        fps=8,
        codec="rawvideo" if path.suffix == ".avi" else "libx264",
        output_params=list(options),
        macro_block_size=2,
    )
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
    return path


def test_video_without_loss(tmp_path):
    data = noise((7, 18, 22), "uint8")
    path = write_video(tmp_path / "a.avi", data, "gray", "-pix_fmt", "gray")
    stack = read_stack(path)
    assert (stack.metadata.axes, stack.metadata.time_increment, stack.metadata.time_unit) == ("TYX", 0.125, "s")
    np.testing.assert_array_equal(stack.data, data)


def test_mp4_in_any_order(tmp_path):
    ramp = np.linspace(0, 120, 32)[None, :, None] + np.arange(6)[:, None, None] * 20 + np.zeros((1, 1, 48))
    path = write_video(tmp_path / "a.mp4", ramp.astype(np.uint8), "gray", "-qp", "0")
    source = discover(path).series[0].open()
    for t in (5, 0, 3):
        np.testing.assert_allclose(source.plane(t=t).astype(float), ramp[t], atol=5)


def test_a_damaged_video_is_told(tmp_path):
    path = write_video(tmp_path / "a.avi", noise((7, 18, 22), "uint8"), "gray", "-pix_fmt", "gray")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"a\.avi"):
        read_stack(path)
