"""cuDNN's algorithms of a convolution one by one, by its C interface; PyTorch's call takes the one it thinks best.

The library is the one that PyTorch has loaded. Products are of FP32 alone, without TF32. Names and numbers are those of
``cudnnConvolutionFwdAlgo_t``; what an algorithm does not support it refuses, and so says the table.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

ALGORITHMS = {
    "implicit GEMM": 0,
    "implicit precomputed GEMM": 1,
    "GEMM (im2col)": 2,
    "direct": 3,
    "FFT": 4,
    "tiled FFT": 5,
    "Winograd": 6,
    "Winograd, not fused": 7,
}
_NCHW, _FLOAT, _CROSS_CORRELATION, _FMA_MATH = 0, 0, 1, 3
_LIBRARIES = ("libcudnn.so.9", "libcudnn.so.8", "libcudnn.so")


class Convolution2d:
    """A convolution of float32 by one algorithm; its result and workspace are PyTorch's, allocated by every call.

    Parameters
    ----------
    algorithm : int
        One of `ALGORITHMS`.
    images, filters : tuple of int
        Shapes (images, channels, height, width) and (filters, channels, height, width).
    stride : int, optional
        Along both axes.
    padding : tuple of int, optional
        Rows and columns of zeros on each side.

    Raises
    ------
    RuntimeError
        Where cuDNN does not support the algorithm for these sizes.
    """

    def __init__(
        self,
        algorithm: int,
        images: tuple[int, ...],
        filters: tuple[int, ...],
        *,
        stride: int = 1,
        padding: tuple[int, int] = (0, 0),
    ) -> None:
        self._algorithm = algorithm
        sides = (
            (size + 2 * around - side) // stride + 1
            for size, around, side in zip(images[2:], padding, filters[2:], strict=True)
        )
        self._result_shape = (images[0], filters[0], *sides)
        self._images, self._result = (_tensor(shape) for shape in (images, self._result_shape))
        self._filters = _made("FilterDescriptor", "SetFilter4dDescriptor", _FLOAT, _NCHW, *filters)
        self._how = _made(
            "ConvolutionDescriptor",
            "SetConvolution2dDescriptor",
            *(*padding, stride, stride, 1, 1, _CROSS_CORRELATION, _FLOAT),
        )
        _call("SetConvolutionMathType", self._how, _FMA_MATH)
        size = ctypes.c_size_t()
        described = (self._images, self._filters, self._how, self._result)
        _call("GetConvolutionForwardWorkspaceSize", _handle(), *described, algorithm, ctypes.byref(size))
        self._workspace_bytes = size.value

    @property
    def note(self) -> str:
        """Say how much memory it takes besides its arrays."""
        return f"workspace {self._workspace_bytes / 1e6:.1f} MB"

    def __call__(self, images: Any, filters: Any) -> Any:
        """Convolve dense tensors of the shapes given, in PyTorch's current stream."""
        torch = importlib.import_module("torch")
        result = torch.empty(self._result_shape, dtype=torch.float32, device=images.device)
        workspace = torch.empty(max(1, self._workspace_bytes), dtype=torch.uint8, device=images.device)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        pointer = lambda tensor: ctypes.c_void_p(tensor.data_ptr())  # noqa: E731 - a name for three uses
        _call("SetStream", _handle(), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        _call(
            "ConvolutionForward",
            *(_handle(), ctypes.byref(one), self._images, pointer(images), self._filters, pointer(filters)),
            *(self._how, self._algorithm, pointer(workspace), ctypes.c_size_t(self._workspace_bytes)),
            *(ctypes.byref(zero), self._result, pointer(result)),
        )
        return result


@functools.cache
def _library() -> ctypes.CDLL:
    torch = importlib.import_module("torch")
    torch.backends.cudnn.version()  # PyTorch finds and loads it
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.cudnnGetErrorString.restype = ctypes.c_char_p
        return library
    raise RuntimeError("PyTorch has loaded no cuDNN")


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_library(), f"cudnn{name}")(*arguments)
    if status:
        raise RuntimeError(f"{name}: {_library().cudnnGetErrorString(status).decode()}")


@functools.cache
def _handle() -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _call("Create", ctypes.byref(handle))
    return handle


def _made(kind: str, setter: str, *values: int) -> ctypes.c_void_p:
    descriptor = ctypes.c_void_p()
    _call(f"Create{kind}", ctypes.byref(descriptor))
    _call(setter, descriptor, *values)
    return descriptor


def _tensor(shape: tuple[int, ...]) -> ctypes.c_void_p:
    return _made("TensorDescriptor", "SetTensor4dDescriptor", _NCHW, _FLOAT, *shape)
