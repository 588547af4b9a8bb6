"""Dask arrays: a public function applied block by block, lazily. Dask is imported where one is handed in."""

import importlib
import logging
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xcorr_app.arrays.kinds import as_array, is_lazy
from xcorr_app.errors import ShapeError

_LOG = logging.getLogger("xcorr_app")


class ChunksMergedWarning(UserWarning):
    """Chunks of a dask array were merged, since what is computed needs the whole of an axis."""


def whole_axes(array: Any, axes: Sequence[int], why: str) -> Any:
    """Merge the chunks of a dask array along some axes, with a warning where there are several."""
    split = [axis % array.ndim for axis in axes if array.numblocks[axis] > 1]
    if not split:
        return array
    message = f"chunks {array.chunksize} are merged along axes {split}: {why}; rechunk to whole frames beforehand"
    _LOG.info(message)
    warnings.warn(message, ChunksMergedWarning, stacklevel=4)
    return array.rechunk(dict.fromkeys(split, -1))


def whole_planes(array: Any) -> Any:
    """Merge the chunks of a dask array along rows and columns."""
    return whole_axes(array, (-2, -1), "frames are needed as a whole")


def over_frames(function: Callable[[Any], Any], images: Any, margin: tuple[int, int] | None = None) -> Any:
    """Apply a function of images (..., H, W) that returns (..., H', W') to every block, lazily.

    With `margin`, rows and columns of blocks overlap by so many pixels, each axis only where its margin is not zero,
    and the result has the size of the images; the function sees true edges of the images as edges. Without, planes are
    merged.
    """
    if margin is None:
        return _mapped(function, whole_planes(images), images.ndim - 2)
    dask, function = importlib.import_module("dask.array"), partial(_numeric, function)
    new = _meta_of(function, images, shape=(1,) * images.ndim)
    depth = {axis - 2 + images.ndim: reach for axis, reach in enumerate(margin) if images.numblocks[axis - 2] > 1}
    depth = {axis: reach for axis, reach in depth.items() if reach}
    how: Any = {"dtype": new.dtype, "meta": _empty(new, images.ndim)}
    if not depth:
        return images.map_blocks(function, **how)
    return dask.map_overlap(function, images, depth=depth, boundary="none", **how)


def with_channels(function: Callable[[Any], Any], images: Any, axis: int) -> Any:
    """Apply a function that changes only the number of elements along one axis, lazily; that axis is merged."""
    images = whole_axes(images, (axis,), "all channels of a pixel are needed")
    function, axis = partial(_numeric, function), axis % images.ndim
    new = _meta_of(function, images, shape=tuple(n if i == axis else 1 for i, n in enumerate(images.shape)))
    chunks = (*images.chunks[:axis], (new.shape[axis],), *images.chunks[axis + 1 :])
    return images.map_blocks(function, chunks=chunks, dtype=new.dtype, meta=_empty(new, images.ndim))


def with_filters(function: Callable[[Any], Any], images: Any, *, channels: bool) -> Any:
    """Apply a function of images (..., H, W), or (..., C, H, W) with `channels`, that returns (..., K, H', W')."""
    images = whole_planes(images)
    if channels:
        return _mapped(function, whole_axes(images, (-3,), "all channels of a pixel are needed"), images.ndim - 3)
    return _mapped(function, images, images.ndim - 2, new_axis=images.ndim - 2)


def _mapped(function: Callable[[Any], Any], images: Any, lead: int, **more: Any) -> Any:
    """Apply a function to blocks that keeps the first `lead` axes as they are, and makes the others anew."""
    function = partial(_numeric, function)
    new = _meta_of(function, images, shape=(*(1,) * lead, *images.shape[lead:]))
    chunks = (*images.chunks[:lead], *((size,) for size in new.shape[lead:]))
    return images.map_blocks(function, chunks=chunks, dtype=new.dtype, meta=_empty(new, new.ndim), **more)


def of_pairs(function: Callable[[Any, Any], Any], left: Any, right: Any, form: str) -> Any:
    """Apply a function of matrices ``(N, H, W)`` and ``(N, M, H', W')``, as `form` has them, that returns planes."""
    dask = importlib.import_module("dask.array")
    # Axes: 0 and 1 count matrices, 2 to 5 are their rows and columns, 6 and 7 those of the planes.
    lefts, rights = _PAIRS[form]
    left, right = (whole_planes(_as_lazy(dask, side)) for side in (left, right))
    metas = [np.zeros_like(side._meta, shape=(*(1,) * (side.ndim - 2), *side.shape[-2:])) for side in (left, right)]
    new = function(*(as_array(meta) for meta in metas))
    counted = sorted({*lefts, *rights} & {0, 1})
    planes = dict(zip((6, 7), new.shape[-2:], strict=True))
    return dask.blockwise(
        partial(_numeric_pair, function),
        (*counted, 6, 7),
        left,
        lefts,
        right,
        rights,
        new_axes=planes,
        concatenate=True,
        dtype=new.dtype,
        meta=_empty(new, len(counted) + 2),
    )


_PAIRS = {
    "one-to-one": ((2, 3), (4, 5)),
    "one-to-many": ((2, 3), (1, 4, 5)),
    "n-to-mn": ((0, 2, 3), (0, 1, 4, 5)),
    "n-to-m": ((0, 2, 3), (1, 4, 5)),
}


def _as_lazy(dask: Any, side: Any) -> Any:
    """A dask array, of one chunk where it was none."""
    return side if is_lazy(side) else dask.from_array(as_array(side), chunks=-1)


def moved_by_frame(function: Callable[..., Any], stack: Any, shifts: Any, axis: int | None) -> Any:
    """Apply ``function(block, shifts of its frames)``, which keeps shape and type, to blocks along one axis."""
    dask = importlib.import_module("dask.array")
    stack = whole_planes(stack)
    names = tuple(range(stack.ndim))
    how: Any = {"dtype": stack.dtype, "meta": stack._meta, "align_arrays": False}
    if axis is None:
        return dask.blockwise(partial(function, shifts=shifts), names, stack, names, **how)
    of_blocks = dask.from_array(np.ascontiguousarray(shifts), chunks=(stack.chunks[axis], (2,)))
    return dask.blockwise(function, names, stack, names, of_blocks, (axis, stack.ndim), concatenate=True, **how)


def _numeric(function: Callable[[Any], Any], block: Any) -> Any:
    return function(as_array(block, "block"))


def _numeric_pair(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return function(as_array(left, "left"), as_array(right, "right"))


def _meta_of(function: Callable[[Any], Any], images: Any, shape: tuple[int, ...]) -> Any:
    """What the function makes of zeros of a shape, of the kind that the array's blocks are."""
    if 0 in images.shape:
        raise ShapeError(f"the array has shape {images.shape}: there is no pixel")
    return function(np.zeros_like(images._meta, shape=shape))


def _empty(like: Any, ndim: int) -> Any:
    return np.empty_like(like, shape=(0,) * ndim)
