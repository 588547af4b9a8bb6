"""Channel mixing: spectral unmixing, colour deconvolution and channel weighting in one function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from xcorr_app.arrays.kinds import as_array, is_lazy, keeps_labels_but_channels
from xcorr_app.arrays.lazy import with_channels
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.array_choice import decide_mixing
from xcorr_app.filtering.kernel_names import MixingKernel, macros_of, mixing_name, on_gpu
from xcorr_app.filtering.mixing import mix
from xcorr_app.filtering.stains import optical_density
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.run import COUNTERS, pointwise_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of

MixedType = Literal["same", "float32"]

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


@keeps_labels_but_channels
def unmix(
    stack: Array,
    matrix: npt.ArrayLike,
    *,
    channel_axis: int = -3,
    from_log: bool = False,
    white: float | None = None,
    clip: bool = False,
    dtype: MixedType | None = None,
    kernel: MixingKernel | BlockingOptions = "auto",
) -> Array:
    """Multiply the channel vector of every pixel by a matrix.

    ``out[k] = sum over c of matrix[k, c] * stack[c]``, where both are taken along the axis of the channels. For
    spectral unmixing, `matrix` is the inverse (or pseudo-inverse) of the matrix whose columns are the spectra of the
    dyes.

    Parameters
    ----------
    stack : (..., C_in, ...) array_like
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes (of dask, the result is dask); integers of up to
        32 bits, float32 or float64.
    matrix : (C_out, C_in) array of float
        In host memory; `stain_matrix` gives those of common stains. ``skimage.color`` has them transposed.
    channel_axis : int
        Where the channels are: -3 for planes (..., C, H, W), -1 for interleaved colour (H, W, C).
    from_log : bool
        Take the optical density ``-log10(max(stack / white, 1e-6))`` first.
    white : float, optional
        Intensity of an empty field, in the units of `stack`, for `from_log`. By default the largest value of an
        integer type, and 1 for floating point.
    clip : bool
        Replace negative results by zero.
    dtype : {"same", "float32"}, optional
        Of the result. ``same`` keeps the type; integers are rounded half to even and clipped to their range. By
        default ``same``; with `from_log`, densities being small fractions, integers give float32.
    kernel : {"auto", "mix", "blocking"} or BlockingOptions
        A kernel by name, which needs a GPU; NumPy arrays go there and come back. ``"blocking"`` is the published
        dynamic blocking (`BlockingOptions` has the constants of its planner); ``"mix"`` keeps all results of a
        few pixels in registers.

    Returns
    -------
    (..., C_out, ...) array
        New, of the kind of `stack`, with the channels on the same axis. Computed in float64 where it is rounded to
        integers and for types of more than 16 bits other than float32, else in float32. On a device, integers of 9 to
        32 channels are summed in float32 (off by 0.004 times the power of two above the row's largest element): a sum
        that close to a half may be rounded to its other neighbour; and an infinity may make NaN of its pixel's
        channels. Neither NaN nor infinity touches other pixels.

    Raises
    ------
    ShapeError
        `matrix` is not two-dimensional or has not one column a channel; `stack` has no such axis or no element.
    ArgumentError
        `matrix` holds values that are not finite or beyond float32; `white` is not positive, or given without
        `from_log`; `dtype` or `kernel` is unknown, or the kernel does not mix these channels.
    DataTypeError
        `stack` is not an array of a supported type, or `matrix` is in device memory.
    DeviceError
        A kernel was asked for, and no GPU can be used.
    DeviceMemoryError
        `stack` is in device memory, or goes there, and the result does not fit beside it.

    Examples
    --------
    The second channel holds a tenth of the first one's light:

    >>> import numpy as np
    >>> both = np.array([[[100, 50]], [[12, 200]]], np.uint16)
    >>> unmix(both, [[1, 0], [-0.1, 1]])[1]
    array([[  2, 195]], dtype=uint16)
    """
    how: Any = {"from_log": from_log, "white": white, "clip": clip, "dtype": dtype, "kernel": kernel}
    if is_lazy(stack):
        factors = checked_matrix(matrix)

        def of_block(block: Array) -> Array:
            return unmix(block, factors, channel_axis=channel_axis, **how)

        return with_channels(of_block, stack, _checked_axis(stack, channel_axis))
    stack = as_array(stack, "stack")
    return _mixed(stack, _checked(stack, matrix, channel_axis, **how), counts=False)[0]  # it would wait for the device


def unmix_counted(
    stack: Array,
    matrix: npt.ArrayLike,
    *,
    channel_axis: int = -3,
    from_log: bool = False,
    white: float | None = None,
    clip: bool = False,
    dtype: MixedType | None = None,
    kernel: MixingKernel | BlockingOptions = "auto",
) -> tuple[Array, int]:
    """Mix channels as `unmix` does, and count the values that did not fit the integer type of the result."""
    how: Any = {"from_log": from_log, "white": white, "clip": clip, "dtype": dtype, "kernel": kernel}
    task = _checked(stack, matrix, channel_axis, **how)
    return _mixed(stack, task, counts=task.target.kind != "f")


@dataclass(frozen=True)
class _Task:
    """What is asked of one stack, checked."""

    matrix: np.ndarray
    axis: int
    target: np.dtype
    white: float | None
    """Of the optical density, where that is mixed."""
    clip: bool
    kernel: MixingKernel | BlockingOptions = "auto"


def _checked(
    stack: Array,
    matrix: npt.ArrayLike,
    channel_axis: int,
    *,
    from_log: bool,
    white: float | None,
    clip: bool,
    dtype: MixedType | None,
    kernel: MixingKernel | BlockingOptions,
) -> _Task:
    array_namespace(stack)
    mixing_name(kernel)
    source = np.dtype(stack.dtype).newbyteorder("=")
    if source.name not in _TYPES:
        raise DataTypeError(f"stack has dtype {stack.dtype}: convert it to one of {', '.join(_TYPES)}")
    if 0 in stack.shape:
        raise ShapeError(f"stack has shape {stack.shape}: there is no pixel to unmix")
    axis = _checked_axis(stack, channel_axis)
    factors = checked_matrix(matrix)
    if factors.shape[1] != stack.shape[axis]:
        raise ShapeError(
            f"matrix has {factors.shape[1]} columns, stack has {stack.shape[axis]} channels along axis {channel_axis} "
            f"of {stack.shape}: give one column a channel, or another channel_axis"
        )
    level = _checked_white(white, source, from_log=from_log)
    target = mixed_type(source, dtype, from_log=from_log)
    return _Task(factors, axis, target, level if from_log else None, clip, kernel)


def _checked_axis(stack: Array, axis: int) -> int:
    """Number of the channels' axis, counted from the first."""
    if not isinstance(axis, (int, np.integer)):
        raise ArgumentError(f"channel_axis is {axis!r}: give the number of an axis")
    if not -stack.ndim <= axis < stack.ndim:
        raise ShapeError(f"stack has shape {stack.shape}: it has no axis {axis}; give channel_axis")
    return axis % int(stack.ndim)


def _mixed(stack: Array, task: _Task, *, counts: bool) -> tuple[Array, int]:
    """Mix where the stack is, or on the device that a kernel by name needs."""
    named = mixing_name(task.kernel)
    if named != "auto" and not is_device_array(stack):
        result, beyond = _mixed(on_gpu(named, stack), task, counts=counts)
        return to_host(result), beyond
    if not is_device_array(stack):
        return _by_strips(stack, task)
    with on_device_of(stack):
        kernel = _decided(stack, task).kernel
        return _by_kernel(stack, task, kernel, counts=counts) if kernel else _by_strips(stack, task)


def _by_kernel(stack: Array, task: _Task, kernel: str, *, counts: bool) -> tuple[Array, int]:
    options: Any = {"target": task.target, "log_white": task.white, "clip": task.clip}

    def mixed() -> tuple[Array, int]:
        # Each try has counters of its own: nothing is left of one that fails.
        clipped = array_namespace(stack).zeros(COUNTERS, np.uint64) if counts else None
        tuned: Any = {"kernel": kernel, "tuning": macros_of(task.kernel)}
        result = pointwise_on_device(stack, task.matrix, task.axis, **options, **tuned, clipped=clipped)
        return result, 0 if clipped is None else int(clipped.sum())

    return with_second_try(mixed, what=f"channels of {stack.shape} pixels")


def _decided(stack: Array, task: _Task) -> Decision:
    """What mixes a stack on its device, and why."""
    outer, inner = math.prod(stack.shape[: task.axis]), math.prod(stack.shape[task.axis + 1 :])
    how: Any = {"density": task.white is not None, "clip": task.clip}
    how["named"] = mixing_name(task.kernel)
    limits = device_limits(current_device())
    return decide_mixing(stack.dtype, task.target, task.matrix.shape, outer, inner, limits, **how)


def _by_strips(stack: Array, task: _Task) -> tuple[Array, int]:
    white = task.white
    density = None if white is None else lambda strip, work: optical_density(strip, white, work)
    return mix(stack, task.matrix, task.axis, task.target, density, clip=task.clip)


def mixed_type(source: np.dtype, dtype: MixedType | None, *, from_log: bool) -> np.dtype:
    """Type of the result of `unmix` for a stack of type `source`."""
    if dtype not in (None, "same", "float32"):
        raise ArgumentError(f"dtype={dtype!r} is unknown: use 'same' or 'float32'")
    by_itself = "float32" if from_log and source.kind in "iu" else "same"
    return source if (dtype or by_itself) == "same" else np.dtype(np.float32)


def checked_matrix(matrix: npt.ArrayLike) -> np.ndarray:
    """`matrix` as (C_out, C_in) float64; raises as `unmix` does."""
    if is_device_array(matrix):
        raise DataTypeError("matrix is in device memory: pass matrix.get(), it is small")
    try:
        factors = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("matrix: expected rows of numbers, all of one length") from error
    if factors.ndim != 2 or factors.size == 0:
        raise ShapeError(f"matrix has shape {factors.shape}: expected (channels out, channels in)")
    if not (np.abs(factors) <= np.finfo(np.float32).max).all():
        raise ArgumentError("matrix holds values that are not finite, or too large for float32")
    return factors


def _checked_white(white: float | None, source: np.dtype, *, from_log: bool) -> float:
    if white is None:
        return float(np.iinfo(source).max) if source.kind in "iu" else 1.0
    if not from_log:
        raise ArgumentError("white is for optical density: use it with from_log")
    if not (math.isfinite(white) and white > 0):
        raise ArgumentError(f"white={white}: give the intensity of an empty field, above 0")
    return float(white)
