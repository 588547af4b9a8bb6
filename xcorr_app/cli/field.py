"""``xcorr field``: displacement on a grid, with strain and vorticity."""

from xcorr_app.batch.field.options import FieldOptions
from xcorr_app.cli.stack_run import Columns, stack_command

_COLUMNS: Columns = {
    "fields": lambda facts: str(facts["fields"]),
    "grid": lambda facts: " x ".join(map(str, facts["grid"])),
    "largest": lambda facts: f"{facts['largest_displacement_px']:.3f} px",
    "standard error": lambda facts: f"{facts['median_sigma_px']:.4f} px",
    "replaced": lambda facts: f"{100 * facts['replaced']:.1f} %",
}
_ADVICE = "most vectors had to be replaced: larger windows may help, --window"
"""Where a stack is flagged."""


@stack_command(
    "field",
    FieldOptions,
    "field.run.Fields",
    _COLUMNS,
    done="measured",
    advice=_ADVICE,
    counted=lambda sizes: max(sizes["T"], sizes["Z"]),
    form="A B | STACK...",
)
def command() -> None:
    """Measure the displacement of a pattern on a grid: flow (PIV), strain (DIC), deformation.

    Two images A and B, or stacks whose frames are compared with the first. Each gets OUT/NAME/field.csv (of stacks
    field_0001.csv, ...) with displacement, standard error, strain and vorticity of every point, and pictures; two
    images go by the name of B. The run gets OUT/run.json. A displacement of (dy, dx) says that what A shows lies dy
    rows lower and dx columns further right in B. Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr field a.bmp b.bmp -o out
      xcorr field reference.tif loaded.tif -o out --refine icgn --format csv --format npz
      xcorr field movie.tif -o out --reference previous --window 64 --step 32
    """
