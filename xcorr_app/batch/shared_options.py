"""Options that commands have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xcorr_app.batch import choices, values
from xcorr_app.batch.option import CommandOptions, OneOf, Within, flag, option
from xcorr_app.errors import DeviceError

if TYPE_CHECKING:
    from xcorr_app.gpu.runtime.select import Device
    from xcorr_app.io import Limits
    from xcorr_app.pipeline.resources import Resources

Layout = Literal["auto", "frames", "stacks"]
Axis = Literal["T", "Z"]

output = partial(
    option,
    None,
    text="Folder for the results.",
    kind=values.PATH,
    flags=("-o",),
    group="Results",
    brief=True,
    required=True,
    role="terminal",
)
overwrite = partial(
    flag,
    text="Replace results in a folder that is not empty.",
    group="Results",
    brief=True,
    role="run",
)
channel = partial(
    option,
    None,
    text="Read one channel alone, by its colour or its number, counted from 0.",
    kind=values.CHANNEL,
    unit="all; colour images are refused",
)
axis = partial(option, None, text="Axis of the frames.", kind=OneOf(("T", "Z")), unit="T, or Z where there is no T")
compression = partial(
    option,
    None,
    text="Compress the TIFF files that are written, without loss.",
    kind=OneOf(choices.COMPRESSIONS),
    group="Run",
    unit="not compressed",
)
cluster = partial(
    option,
    None,
    text="Let workers of dask.distributed compute the stacks: N processes here, one for each GPU here, or those of a "
    "scheduler by its address or file. Inputs and output must be on a disk that all of them share.",
    kind=values.CLUSTER,
    group="Run",
    role="run",
)
explain = partial(
    flag,
    "Print which engine or kernel would process each stack, why, and the alternatives; write nothing.",
    group="Engines and kernels",
    role="terminal",
)
normalization = partial(
    option,
    "zncc",
    text="zncc: zero-mean and normalised over the true overlap; none: plain sums; phase: phase correlation.",
    kind=OneOf(choices.NORMALIZATIONS),
)
max_shift = partial(
    option,
    None,
    text="Largest shift in pixels, or rows,columns.",
    kind=values.MAX_SHIFT,
    flags=("-m",),
    group="Measuring",
    brief=True,
    unit="a quarter of the frame",
)
min_overlap = partial(
    option,
    default=choices.MIN_OVERLAP,
    text="Smallest fraction of the frame that must overlap.",
    kind=Within(0, 1, whole=False),
)
engine = partial(
    option,
    "auto",
    text="What computes the correlation: an FFT; on a GPU, kernels that sum by definition (direct) or tensor cores "
    "(tensor); on the CPU, the definition. auto takes whichever is expected to be fastest; `xcorr env` lists which can "
    "run.",
    kind=values.ENGINE,
    group="Engines and kernels",
)
kernel_options = partial(
    option,
    None,
    text="Option of the kernels, as often as needed. Of engine direct: variant (a kernel by name), distribution, "
    "rows-per-worker, rights, lefts, shifts, left-rows, phases, warps, threads, shifts-per-block; of engine "
    "tensor: precision (fp16, fp16x2).",
    kind=values.KERNEL_WORD,
    flags=("--kernel-option",),
    group="Engines and kernels",
    gather=values.kernel_options,
)

kernel = partial(option, "auto", text="A kernel by name; needs a GPU.", group="Engines and kernels")
kernel_words = partial(
    option,
    (),
    text="Option of the kernel that is named, as often as needed.",
    kind=values.KERNEL_WORD,
    flags=("--kernel-option",),
    gather=tuple,
    group="Engines and kernels",
)


@dataclass(frozen=True)
class ComputingOptions(CommandOptions):
    """Of a command that computes."""

    output: Path | None = output()
    overwrite: bool = overwrite()
    device: str = option(
        "auto",
        "Where to compute; auto takes a GPU where one works.",
        values.DEVICE,
        group="Measuring",
        brief=True,
    )
    max_pixels: int = option(
        choices.MAX_PIXELS, "Refuse images that declare more pixels.", Within(1), group="Checks", role="run"
    )
    verbose: bool = flag(
        "Print every frame or plane, and how long each stage took.",
        flags=("-v",),
        group="What is printed",
        role="terminal",
    )
    quiet: bool = flag(
        "Print nothing but failures.",
        flags=("-q",),
        group="What is printed",
        role="terminal",
    )
    debug: bool = flag(
        "Show the traceback of an error.",
        group="What is printed",
        role="terminal",
    )

    @cached_property
    def limits(self) -> Limits:
        """Of images."""
        from xcorr_app.io import Limits

        return Limits(max_pixels=self.max_pixels)


@dataclass(frozen=True)
class StackOptions(ComputingOptions):
    """Of a command that works on stacks, one after the other."""

    resume: bool = flag(
        "Continue an interrupted run; finished stacks are kept.",
        group="Results",
        brief=True,
        role="run",
        excludes=("overwrite",),
    )
    layout: Layout = option(
        "auto",
        "Whether the files of a folder are frames of one series or one stack each; auto goes by their pages, and by "
        "names such as _t000_c1_z2.",
        OneOf(("auto", "frames", "stacks")),
        group="Run",
    )
    memory: int | None = option(
        None,
        "Main memory for keeping stacks: of one that fits, each frame is read once; larger ones are read as needed.",
        values.SIZE,
        group="Run",
        unit="an eighth of main memory, at most 1 GiB; on a CPU a single plain TIFF of more than 64 MiB is not kept "
        "but read again",
        role="run",
    )

    def resources(self) -> Resources:
        """What a run lends to its stacks."""
        from xcorr_app.io import MemoryBudget
        from xcorr_app.pipeline.resources import Resources, default_memory

        memory = default_memory() if self.memory is None else MemoryBudget(self.memory)
        return Resources(memory, getattr(self, "compression", None), getattr(self, "pyramid", 1))


@dataclass(frozen=True)
class MovingOptions(StackOptions):
    """Of a command that moves frames."""

    interpolation: Literal["nearest", "linear", "cubic", "lanczos", "fourier"] = option(
        "linear",
        "How pixels are moved by fractions of a pixel.",
        OneOf(choices.INTERPOLATIONS),
        group="Results",
        brief=True,
    )
    border: Literal["constant", "nearest", "reflect", "mirror", "wrap", "crop"] = option(
        "constant",
        "Beyond the frame: zero, the nearest pixel, as SciPy's filters name it, or cut to what every frame covers.",
        OneOf(("constant", "nearest", "reflect", "mirror", "wrap", "crop")),
        group="Results",
    )
    axis: Axis | None = axis()
    compression: str | None = compression(needs={"apply": (True,)})


@dataclass(frozen=True)
class NamedKernelOptions(StackOptions):
    """Of a command whose kernels go by names, each with options of its own."""

    kernel: Any = kernel()
    kernel_options: tuple[str, ...] = kernel_words()
    compression: str | None = compression()
    explain: bool = explain()

    def computes_on(self, device: Device) -> Device:
        """Return the device; raise DeviceError where a kernel that is named would run on the CPU."""
        import numpy as np

        if self.kernel != "auto" and device.xp is np:
            why = device.note or "--device cpu was given"
            raise DeviceError(f"kernel {self.kernel!r} runs on a GPU ({why}); --kernel auto gives the same on the CPU")
        return device

    @cached_property
    def asked_kernel(self) -> Any:
        """The kernel, with its options."""
        return values.named_kernel(self.kernel, self.kernel_options)
