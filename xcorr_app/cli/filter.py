"""``xcorr filter``: a folder of stacks in, the same stacks filtered out."""

from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.cli.stack_run import Columns, planes_of, stack_command

_COLUMNS: Columns = {
    "planes": lambda facts: str(facts["planes"]),
    "shape": lambda facts: " x ".join(map(str, facts["shape"])),
    "type": lambda facts: facts["dtype"],
    "clipped": lambda facts: str(facts["clipped_pixels"]),
    "seconds": lambda facts: f"{facts['seconds']['filter']:.2f}",
}


@stack_command("filter", FilterOptions, "filter.run.Filter", _COLUMNS, done="filtered", counted=planes_of)
def command() -> None:
    """Filter every plane of stacks: folders, files or globs of TIFF, PNG, BMP, JPEG or .npy images.

    Give one of the filters --gaussian, --box, --sobel, --laplacian, --log, --dog, --unsharp, --taps, --bank; lengths
    are in pixels. Images are uint8, uint16, int16, float32 or float64 (uint32 is refused: convert it first). Each
    stack gets OUT/NAME/NAME_filtered.tif with its axes, calibration and channels; the run gets OUT/run.json. Exit code:
    0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr filter movie.ome.tif -o out --gaussian 1.5
      xcorr filter FOLDER -o out --sobel y --dtype float32
      xcorr filter 'FOLDER/*.tif' -o out --taps taps.csv --border constant --cval 100
      xcorr filter cells.tif -o out --bank gabor:8,4 --device cuda
      xcorr filter cells.tif -o out --taps taps.csv --kernel exchange --kernel-option row-reuse=no
    """
