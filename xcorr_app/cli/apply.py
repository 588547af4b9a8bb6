"""``xcorr apply``: stacks moved by shifts that were measured on others."""

from xcorr_app.batch.apply.options import ApplyOptions
from xcorr_app.cli.stack_run import Columns, planes_of, stack_command

_COLUMNS: Columns = {
    "frames": lambda facts: str(facts["frames"]),
    "largest shift": lambda facts: f"{facts['largest_shift_px']:.2f} px",
    "matched": lambda facts: facts["matched"],
    "clipped": lambda facts: str(facts["clipped_pixels"]),
    "seconds": lambda facts: f"{facts['seconds']['move']:.2f}",
}


@stack_command("apply", ApplyOptions, "apply.run.Apply", _COLUMNS, done="moved", counted=planes_of)
def command() -> None:
    """Move stacks by known shifts: other channels, cameras, raw data.

    SHIFTS is a table with columns dy and dx (shifts.csv of xcorr align, or your own), a .npy array of (frames, 2),
    the motion.csv or motion.npz of xcorr align --motion, or the output folder of xcorr align, where each stack has
    that of the input of its name; of several of one name, that of the same file or of a folder of the same name.
    All planes of a frame move alike; a frame that the table leaves out is left out. Each stack gets
    OUT/NAME/NAME_aligned.tif with its type, axes and calibration; the run gets OUT/run.json. Exit code: 0 all good,
    1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr apply out/green/shifts.csv red.tif -o out_red
      xcorr apply out RAW_FOLDER -o out_raw --interpolation cubic
      xcorr apply out/green/motion.npz red.tif -o out_red
      xcorr apply drift.csv binned.tif -o out --scale 0.5 --border crop
    """
