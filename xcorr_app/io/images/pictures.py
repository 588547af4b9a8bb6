"""Files of one image, decoded whole and strictly: BMP, JPEG and PNG of grey values, or of colours where asked for.

Sources: Microsoft, BITMAPFILEHEADER and BITMAPINFOHEADER; ITU-T T.81 (1992), annex B; PNG specification, third edition
(W3C 2025), sections 5 and 11. JPEG and PNG are decoded by imagecodecs (libjpeg-turbo, libpng); the latter takes as many
rows as the header declares and says nothing of those that remain.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import imagecodecs
import numpy as np

from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io.declared import SPARE, FormatImage, Limits, check_image
from xcorr_app.io.opened import Stamp, opened, parsing, stamp
from xcorr_app.io.source import make_metadata
from xcorr_app.system import read_at

BMP, JPEG, PNG = b"BM", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
"""How such files begin."""
_OTHER_BYTES = 1 << 26
"""Of colour profiles, previews and notes."""
_IN_COLOUR = (
    "{}: is a colour image ({}), which cannot be measured as it is; pick one channel with --channel R, G, B or gray"
)
_BYTE = np.dtype(np.uint8)


def _sizes(height: int, width: int, samples: int = 1) -> dict[str, int]:
    return {"T": 1, "Z": 1, "C": samples, "Y": height, "X": width}


def _image(
    path: Path, decode: Callable[[bytes], np.ndarray], sizes: dict[str, int], dtype: np.dtype, mark: Stamp
) -> FormatImage:
    """An image whose header was checked; `decode` makes (Y, X) or (Y, X, 3) of the file's bytes.

    What is decoded must have the size and type that the header declares. A fourth value a pixel, the opacity, must be
    full everywhere.
    """
    samples, (height, width) = sizes["C"], (sizes["Y"], sizes["X"])
    # The file is read whole: what follows the image must not decide how much memory that takes.
    if mark[0] > 2 * height * width * samples * dtype.itemsize + _OTHER_BYTES:
        raise LimitError(
            f"{path}: has {mark[0]} bytes for {height} x {width} pixels, far more than they need; save the image again"
        )

    def plane(*_: int) -> np.ndarray:
        with opened(path, mark) as descriptor:
            content = read_at(descriptor, mark[0], 0)
        with parsing(path, "cannot be decoded"):
            image = decode(content)
        if image.ndim == 3 and image.shape[-1] == 4 and samples == 3:
            if (image[..., 3] != np.iinfo(image.dtype).max).any():
                raise DamagedFileError(f"{path}: is transparent in places; save it without transparency")
            image = image[..., :3]
        return np.moveaxis(image, -1, 0) if samples > 1 else image

    return FormatImage(path, make_metadata(sizes, "CYX", dtype, "png"), plane, mark, samples)


_HEADER = 54
_PLAIN, _BITFIELDS = 0, 3
_MASKS = struct.pack("<3I", 0xFF0000, 0xFF00, 0xFF)
"""Of red, green and blue: the order that is read."""
_LARGE_HEADER = 108
"""From this version on, a colour profile may follow the pixels."""


def scan_bmp(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check the header of a BMP file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        head = read_at(descriptor, _HEADER, 0)
        if len(head) < _HEADER:
            raise DamagedFileError(f"{path}: ends within the BMP header ({mark[0]} bytes)")
        data, header, width, height, planes, bits, compression = struct.unpack_from("<IIiiHHI", head, 10)
        used = struct.unpack_from("<I", head, 46)[0]
        palette = read_at(descriptor, 4 * min(used or 256, 256), 14 + header) if bits == 8 and header < 2**16 else b""
        masks = read_at(descriptor, len(_MASKS), _HEADER)
    bottom_up, height = height > 0, abs(height)
    if header < 40:
        raise DamagedFileError(f"{path}: declares a header of {header} bytes")
    other_order = compression == _BITFIELDS and (bits != 32 or masks != _MASKS)
    if bits not in (8, 24, 32) or compression not in (_PLAIN, _BITFIELDS) or other_order:
        raise InputError(f"{path}: is a BMP image of {bits} bits, compression {compression}; save it as TIFF or PNG")
    check_image(path, limits, _sizes(height, width), _BYTE)
    row_bytes = (width * bits + 31) // 32 * 4
    if data + height * row_bytes > mark[0]:
        raise DamagedFileError(
            f"{path}: needs {height} rows of {row_bytes} bytes from byte {data}, the file has {mark[0]} bytes; it is "
            "cut short: copy it again"
        )
    pixels_may_begin = 14 + header + len(palette)
    spare = mark[0] - data - height * row_bytes
    if planes != 1 or data < pixels_may_begin or (header < _LARGE_HEADER and spare > SPARE):
        raise DamagedFileError(
            f"{path}: declares {planes} planes of {height} rows of {row_bytes} bytes from byte {data}, the file has "
            f"{mark[0]} bytes; it is damaged"
        )
    colours = np.frombuffer(palette[: len(palette) // 4 * 4], np.uint8).reshape(-1, 4)[:, 2::-1]
    in_colour = bits > 8 or bool((colours != colours[:, :1]).any())
    if in_colour and not colour:
        raise InputError(_IN_COLOUR.format(path, f"BMP, {bits} bits"))

    def decoded(content: bytes) -> np.ndarray:
        rows = np.frombuffer(content, np.uint8, height * row_bytes, data).reshape(height, row_bytes)
        values = rows[:: -1 if bottom_up else 1, : width * bits // 8].reshape(height, width, bits // 8)
        if bits > 8:
            return values[..., 2::-1]
        if len(colours) <= values.max():
            raise ValueError(f"has a value of {values.max()}, and a palette of {len(colours)} entries")
        return np.ascontiguousarray(colours[values[..., 0]] if in_colour else colours[values[..., 0], 0])

    return _image(path, decoded, _sizes(height, width, 3 if in_colour else 1), _BYTE, mark)


JPEG_END = b"\xff\xd9"
_TAIL = 1 << 12
_HEAD = 1 << 24
"""Bytes that previews, colour profiles and notes may take before the header of the image itself."""


def scan_jpeg(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check the header and the end of a JPEG file without decoding it; `colour` asks for red, green and blue."""
    from tifffile.tifffile import jpeg_shape  # here, since the library does not promise it

    with opened(path) as descriptor, parsing(path):
        mark = stamp(descriptor)
        bits, height, width, components = jpeg_shape(read_at(descriptor, _HEAD, 0))
        tail = read_at(descriptor, _TAIL, max(0, mark[0] - _TAIL))
    if bits != 8 or components not in (1, 3):
        raise InputError(
            f"{path}: is a JPEG image of {components} values of {bits} bits a pixel; save it as TIFF or PNG"
        )
    sizes = _sizes(height, width, components)
    check_image(path, limits, sizes, _BYTE)
    if components > 1 and not colour:
        raise InputError(_IN_COLOUR.format(path, "JPEG"))
    # The codec fills what is missing with grey and says nothing. Some cameras write more behind the end.
    if JPEG_END not in tail:
        raise DamagedFileError(f"{path}: is a JPEG image without an end; it is cut short: copy it again")

    def decoded(content: bytes) -> np.ndarray:
        room = np.empty((height, width, components)[: components + 1], np.uint8)
        return np.asarray(imagecodecs.jpeg8_decode(content, out=room))

    return _image(path, decoded, sizes, _BYTE, mark)


_GREY, _RGB, _RGBA = 0, 2, 6
_CHANNELS = {_GREY: 1, _RGB: 3, _RGBA: 4}
_COLOURS = {2: "RGB", 3: "palette", 4: "grey with opacity", 6: "RGB with transparency"}
_OF_PIXELS = (b"IHDR", b"IDAT", b"IEND")


def scan_png(path: Path, limits: Limits, *, colour: bool = False) -> FormatImage:
    """Check header and chunks of a PNG file without decoding it; `colour` asks for red, green and blue."""
    with opened(path) as descriptor:
        mark = stamp(descriptor)
        header = read_at(descriptor, 33, 0)
        if len(header) < 33 or header[8:16] != b"\0\0\0\rIHDR":
            raise DamagedFileError(f"{path}: has no PNG header; it is cut short or damaged: copy it again")
        kinds = {kind for kind, *_ in _chunks(lambda at, size: read_at(descriptor, size, at), mark[0])}
    if not kinds.issuperset(_OF_PIXELS):
        raise DamagedFileError(
            f"{path}: ends at byte {mark[0]}, within or before a chunk that it needs; it is cut short: copy it again"
        )
    width, height, bits, kind, *coding = struct.unpack(">IIBBBBB", header[16:29])
    for found, what in (
        (b"acTL" in kinds, "an animation"),
        (b"tRNS" in kinds, "an image with transparency"),
        (any(coding), "interlaced, or of another compression than the format knows"),
    ):
        if found:
            raise InputError(f"{path}: is {what}; save its frames as plain grey images")
    in_colour = kind in (_RGB, _RGBA)
    if kind != _GREY and not in_colour:
        what = _COLOURS.get(kind, "unknown")
        raise InputError(
            f"{path}: is a colour image ({what}), which cannot be measured as it is; save it as grey values"
        )
    if in_colour and not colour:
        raise InputError(_IN_COLOUR.format(path, _COLOURS[kind]))
    if bits not in (8, 16):
        raise InputError(f"{path}: has {bits} bits a pixel; convert it to 8 or 16")
    dtype = np.dtype(f"uint{bits}")
    check_image(path, limits, _sizes(height, width), dtype)
    # Every row begins with the number of its filter.
    decode = partial(_decoded, needed=height * (1 + width * _CHANNELS[kind] * bits // 8))
    return _image(path, decode, _sizes(height, width, 3 if in_colour else 1), dtype, mark)


def _decoded(content: bytes, needed: int) -> np.ndarray:
    """Decode an image whose rows take so many bytes.

    Only what holds pixels is handed to libpng, checksums compared: of the rest it prints remarks on standard error.
    """
    plain, data = PNG, b""
    for kind, begin, end in _chunks(lambda at, size: content[at : at + size], len(content)):
        if kind in _OF_PIXELS:
            if zlib.crc32(content[begin - 4 : end]) != int.from_bytes(content[end : end + 4], "big"):
                raise ValueError(f"a chunk {kind.decode()} whose checksum is wrong")
            plain += content[begin - 8 : end + 4]
            data += content[begin:end] if kind == b"IDAT" else b""
    stored = len(imagecodecs.deflate_decode(data, out=needed + 1))
    if stored != needed:
        raise ValueError(f"holds {stored} bytes of pixels or more, its header asks for {needed}")
    return np.asarray(imagecodecs.png_decode(plain))


def _chunks(read: Callable[[int, int], bytes], size: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each chunk of a file of so many bytes, and where its content begins and ends, as far as all are there."""
    kind, at = b"", len(PNG)
    while kind != b"IEND":
        head = read(at, 8)
        end = at + 8 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or end + 4 > size:
            return
        kind = head[4:]
        yield kind, at + 8, end
        at = end + 4
