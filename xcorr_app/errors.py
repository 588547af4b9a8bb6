"""Every exception the project raises, in one tree.

Each class also derives from the built-in that a caller would expect, so ``except ValueError`` and
``except OSError`` keep working. A message names the file or the argument and says what to do about it.
"""


class XcorrError(Exception):
    """Base of every exception raised on purpose by this project."""


class ArgumentError(XcorrError, ValueError, TypeError):
    """An argument is out of range, of the wrong shape, of an unknown name, or of the wrong type."""


class DataTypeError(XcorrError, TypeError):
    """An array has a kind of element or container that is not supported."""


class ShapeError(ArgumentError):
    """Arrays have shapes that do not belong together, or no elements at all."""


class DeviceError(XcorrError, RuntimeError):
    """A device that was asked for cannot be used; the message says why."""


class DeviceLostError(DeviceError):
    """A device answers nothing any more in this process: a kernel has failed, or the device has."""


class DeviceMemoryError(XcorrError, MemoryError):
    """The smallest piece of the work does not fit into a device's memory."""


class ClusterError(XcorrError, RuntimeError):
    """A cluster cannot be reached, or is lost in mid-run; the message says what to do."""


class FileError(XcorrError, OSError):
    """A file cannot be used."""


class InputError(FileError):
    """An input file or folder is missing, empty or of the wrong kind."""


class DamagedFileError(InputError):
    """A file promises more than it holds, or what it holds cannot be decoded."""


class LimitError(InputError):
    """A file declares more pixels than the stated limit allows; refused before memory is taken."""


class OutputError(FileError):
    """A result cannot be written, or would overwrite something."""


def install_line(extra: str) -> str:
    """What to type for the libraries of an extra; the program is in no index, and comes from a checkout."""
    return f'pip install ".[{extra}]" in the checkout of xcorr'
