"""Options that commands share, and how their values are read; nothing here imports what computes."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from click.core import ParameterSource

from xcorr_app.cli import choices, values

if TYPE_CHECKING:
    from xcorr_app.cluster.workers import Workers
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.gpu.runtime.select import Device
    from xcorr_app.pipeline.resources import Resources

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

normalization = click.option(
    "--normalization",
    type=click.Choice(choices.NORMALIZATIONS),
    default="zncc",
    show_default=True,
    help="zncc: zero-mean and normalised over the true overlap; none: plain sums; phase: phase correlation.",
)
engine = click.option(
    "--engine",
    type=values.Engine(["auto", *choices.ENGINES]),
    default="auto",
    show_default=True,
    help="What computes the correlation: an FFT; on a GPU, kernels that sum by definition (direct) or tensor cores "
    "(tensor); on the CPU, the definition. auto takes whichever is expected to be fastest. `xcorr env` lists which can "
    "run.",
)
device = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda[:N]",
    help="Where to compute; auto takes a GPU where there is one that works.",
)
layout = click.option(
    "--layout",
    type=click.Choice(["auto", "frames", "stacks"]),
    default="auto",
    show_default=True,
    help="Whether the files of a folder are frames of one series or one stack each; auto goes by their pages, and by "
    "names such as _t000_c1_z2.",
)
resume = click.option("--resume", is_flag=True, help="Continue an interrupted run; finished stacks are kept.")
compression = click.option(
    "--compression",
    type=click.Choice(choices.COMPRESSIONS),
    help="Compress the TIFF files that are written, without loss.  [default: not compressed]",
)
_RUN_OPTIONS = (
    click.option(
        "--memory",
        type=values.SIZE,
        help="Main memory for keeping stacks: of one that fits, each frame is read once; larger ones are read as "
        "needed.  [default: an eighth of main memory, at most 1 GiB; on a CPU a single plain TIFF of more than 64 MiB "
        "is not kept but read again]",
    ),
    click.option("--gpu-memory", type=values.SIZE, help="Device memory that may be used.  [default: all that is free]"),
    click.option(
        "--timings",
        is_flag=True,
        help="Print how long each stage was busy and which one set the pace.",
    ),
)


def running(command: Command) -> Command:
    """Add the options of a run over stacks; `read_resources` understands what was given."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def read_resources(given: dict[str, Any]) -> Resources:
    """Make what a run lends to its stacks of a command's parameters."""
    from xcorr_app.gpu.runtime.memory import limit_pool
    from xcorr_app.io import MemoryBudget
    from xcorr_app.pipeline.resources import Resources, default_memory

    if given["gpu_memory"] is not None:
        limit_pool(given["gpu_memory"])
    memory = default_memory() if given["memory"] is None else MemoryBudget(given["memory"])
    return Resources(memory, given.get("compression"), pyramid=given.get("pyramid", 1))


cluster = click.option(
    "--cluster",
    type=values.Value("local[:N]|gpus|ADDRESS|FILE.json", lambda text: _cluster(text)),
    help="Let workers of dask.distributed compute the stacks: N processes here, one for each GPU here, or "
    "those of a scheduler by its address or file. Inputs and output must be on a disk that all of them share.",
)


def absolute(cluster: str | None, path: Any) -> Any:
    """Where workers compute, whose current folder may be another, paths are absolute; else they stay as given."""
    return Path(os.path.abspath(path)) if cluster and isinstance(path, Path) else path  # noqa: PTH100 - links stay


def _cluster(text: str) -> str:
    from xcorr_app.cluster.connect import check_cluster

    check_cluster(text)
    return text


def workers_of(cluster: str | None, choose_device: Callable[[Any], Any]) -> AbstractContextManager[Workers | None]:
    """Reach the workers of a cluster for as long as they are needed; None without one."""
    if cluster is None:
        return nullcontext()
    from xcorr_app.cluster.connect import connected

    return connected(cluster, choose_device)


explain = click.option(
    "--explain",
    is_flag=True,
    help="Print which engine or kernel would process each stack, why, and the alternatives; write nothing.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but failures.")
debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")


def device_note(device: Device, given: dict[str, Any]) -> str | None:
    """Why no GPU is used: for those who have CuPy, and those who ask by ``-v`` or by naming a device."""
    named = click.get_current_context().get_parameter_source("device") is not ParameterSource.DEFAULT
    return device.note if given.get("verbose") or named or _has_cupy() else None


def _has_cupy() -> bool:
    try:
        return importlib.util.find_spec("cupy") is not None
    except ValueError:  # a module that somebody else put there
        return True


def check_modes(given: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if given["resume"] and given["overwrite"]:
        raise click.UsageError("--resume keeps finished results, --overwrite replaces them: give one of them")
    if given.get("gpu_memory") is not None and click.get_current_context().params.get("cluster") is not None:
        raise click.UsageError("--gpu-memory is for a run without --cluster: workers use all that is free")


def channel(text: str) -> Decorator:
    """Add the option for the channel that is read, explained by `text`."""
    return click.option("--channel", type=values.CHANNEL, help=text)


def output(text: str) -> Decorator:
    """Add the option that says where results go, explained by `text`."""
    return click.option("-o", "--output", required=True, type=values.PATH, help=text)


def max_shift(default: str) -> Decorator:
    """Add the option for the window of shifts; `default` says in words what it is without."""
    return click.option(
        "--max-shift", type=values.MAX_SHIFT, help=f"Largest shift in pixels, or rows,columns.  [default: {default}]"
    )


def subpixel(text: str, methods: tuple[str, ...] = choices.SUBPIXEL_METHODS) -> Decorator:
    """Add the option for the sub-pixel method, explained by `text`."""
    return click.option("--subpixel", type=click.Choice(methods), default="gaussian", show_default=True, help=text)


def min_overlap(text: str, default: float | None = choices.MIN_OVERLAP) -> Decorator:
    """Add the option for the smallest overlap, explained by `text`."""
    return click.option("--min-overlap", type=float, default=default, show_default=default is not None, help=text)


def tolerance(text: str) -> Decorator:
    """Add the option for the largest accepted difference from a check, explained by `text`."""
    return click.option("--tolerance", type=float, default=choices.TOLERANCE, show_default=True, help=text)


def max_pixels(text: str) -> Decorator:
    """Add the option that limits the size of an image, explained by `text`."""
    return click.option(
        "--max-pixels", type=click.IntRange(1), default=choices.MAX_PIXELS, show_default=True, help=text
    )


def overwrite(text: str) -> Decorator:
    """Add the option to replace results, explained by `text`."""
    return click.option("--overwrite", is_flag=True, help=text)


def verbose(text: str) -> Decorator:
    """Add the option to print more, explained by `text`."""
    return click.option("-v", "--verbose", is_flag=True, help=text)


_KERNEL_OPTIONS = (
    click.option(
        "--variant",
        type=click.Choice(["auto", *choices.VARIANTS]),
        default="auto",
        show_default=True,
        help="Kernel of --engine direct; auto takes the one that a table of measurements expects to be fastest.",
    ),
    click.option(
        "--distribution",
        type=click.Choice(choices.DISTRIBUTIONS),
        help="How the rows of a shift are split among workers (--variant warp-shuffle-distributed, multi-right, "
        "multi-left-right, multi-row or combined-shuffle). Their sums are added in any order, so the last bits differ "
        "from run to run; none is deterministic: one worker per shift.",
    ),
    click.option("--rows-per-worker", type=int, help="Largest number of rows per worker (with --distribution)."),
    click.option(
        "--rights",
        type=int,
        help="Right matrices per thread (--variant multi-right, multi-left-right, combined-shuffle).",
    ),
    click.option("--lefts", type=int, help="Left matrices per thread (--variant multi-left-right, combined-shuffle)."),
    click.option(
        "--shifts-per-thread", "shifts", type=int, help="Row shifts per thread (--variant multi-row, combined-shuffle)."
    ),
    click.option(
        "--left-rows", type=int, help="Left rows that a thread holds at a time (--variant multi-row, combined-shuffle)."
    ),
    click.option(
        "--phases/--no-phases",
        default=None,
        help="Whether rows that overlap with only some of a thread's shifts are summed in phases of their own, as the "
        "source document has it (--variant multi-row, combined-shuffle).",
    ),
    click.option(
        "--warps-per-block", "warps", type=int, help="Warps per block (--variant row-per-warp and those that shuffle)."
    ),
    click.option("--threads-per-block", "threads", type=int, help="Threads per block (--variant overlap-wise)."),
    click.option("--shifts-per-block", type=int, help="Shifts per block, a warp each (--variant shift-per-warp)."),
    click.option(
        "--sums",
        type=click.Choice(choices.SUMS),
        help="What --engine direct sums in; float64 also reads float64 images, and its planes are float64.",
    ),
    click.option(
        "--precision",
        type=click.Choice(choices.PRECISIONS),
        help="Arithmetic of --engine tensor: fp16 (score errors up to 1.3e-3; align recomputes the values around its "
        "peaks), fp16x2, the sum of two fp16 values (errors up to 1e-6), or int8, exact, for uint8 images.",
    ),
)


def kernel_options(command: Command) -> Command:
    """Add the options of the CUDA kernels to a command; `read_kernel_options` understands what was given."""
    for option in reversed(_KERNEL_OPTIONS):
        command = option(command)
    return command


def read_kernel_options(given: dict[str, Any]) -> KernelOptions | None:
    """Make the kernels' options of a command's parameters; None where nothing was asked."""
    from xcorr_app.gpu.direct.options import KernelOptions

    options = KernelOptions(**{name: given[name] for name in choices.KERNEL_OPTIONS})
    return None if options.asks_nothing else options
