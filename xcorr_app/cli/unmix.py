"""``xcorr unmix``: stacks with channels in; mixed channels out."""

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.cli.stack_run import Columns, stack_command

_COLUMNS: Columns = {
    "shape": lambda facts: " x ".join(map(str, facts["shape"])),
    "axes": lambda facts: facts["axes"],
    "type": lambda facts: facts["dtype"],
    "clipped": lambda facts: str(facts["clipped_values"]),
    "seconds": lambda facts: f"{facts['seconds']['unmix']:.2f}",
}


@stack_command("unmix", UnmixOptions, "unmix.run.Unmix", _COLUMNS, done="mixed")
def command() -> None:
    """Mix channels: spectral unmixing, stain separation.

    INPUT is a TIFF file with channels, or a colour image (TIFF, PNG, BMP, JPEG), whose channels are red, green and
    blue; files whose names number channels (_c0, _c1) are one stack; with --channel-axis T, the one-page files of a
    folder are. The channels of every pixel are multiplied by the matrix; for spectral unmixing --spectra makes it of
    the measured spectra of the dyes. Each stack gets OUT/NAME/NAME_unmixed.tif; the run gets OUT/run.json.

    With --from-log or --stain, the density -log10(max(value / white, 1e-6)) is mixed instead of the value. Stains use
    the vectors of Ruifrok and Johnston (2001), normalised to length one; two are completed by a third, the residual,
    at right angles to both.

    Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr unmix slide.tif -o out --stain he
      xcorr unmix 'SLIDES/*.png' -o out --stain he
      xcorr unmix cells.ome.tif -o out --spectra spectra.csv --clip
    """
