"""ND2 files as the library nd2 reads them: no package ships one, so that they are written here, chunk by chunk.

Times by positions by channels, as version 3 has it: chunks with a magic number, a name and data, a map of them at the
end, and metadata in the binary variant that the library calls CLX lite.
"""

import struct

import numpy as np

_MAGIC = 0x0ABECEDA
_SIGNATURE = b"ND2 FILE SIGNATURE CHUNK NAME01!"
_MAP = b"ND2 FILEMAP SIGNATURE NAME 0001!"
_END = b"ND2 CHUNK MAP SIGNATURE 0000001!"
_NAME_OF_FRAMES = 4072
"""Bytes kept for the name of a frame: its pixels begin 4096 bytes after its chunk, behind a time of eight."""


def write_nd2(path, data, *, names, pixel_size, period):
    """Write (T, P, C, Y, X) uint16, `pixel_size` in micrometres and the `period` of the times in milliseconds."""
    times, positions, channels, height, width = data.shape
    attributes = {
        "uiWidth": width,
        "uiWidthBytes": width * channels * 2,
        "uiHeight": height,
        "uiComp": channels,
        "uiBpcInMemory": 16,
        "uiBpcSignificant": 16,
        "uiSequenceCount": times * positions,
        "eCompression": 2,
    }
    dye = {"m_ExcitationSpectrum": {"uiCount": 0}, "m_EmissionSpectrum": {"uiCount": 0}}
    planes = {
        f"a{i}": {"sDescription": name, "uiCompCount": 1, "pFluorescentProbe": dye} for i, name in enumerate(names)
    }
    picture = {
        "bCalibrated": True,
        "dCalibration": pixel_size,
        "dXPos": 0.0,
        "dYPos": 0.0,
        "dZPos": 0.0,
        "sPicturePlanes": {"uiCount": channels, "sPlaneNew": planes},
    }
    points = {f"p{i}": {"dPosX": 10.0 * i, "dPosY": 0.0} for i in range(positions)}
    inner = {"eType": 2, "uLoopPars": {"uiCount": positions, "Points": points}}
    period_of = {"uiCount": times, "dStart": 0.0, "dPeriod": period, "dDuration": period * times}
    experiment = {"eType": 1, "uLoopPars": period_of, "ppNextLevelEx": {"n0": inner}}
    chunks = [
        (b"ImageAttributesLV!", _level("SLxImageAttributes", attributes)),
        (b"ImageMetadataSeqLV|0!", _level("SLxPictureMetadata", picture)),
        (b"ImageMetadataLV!", _level("SLxExperiment", experiment)),
    ]
    frames = data.reshape(-1, channels, height, width)
    for number, frame in enumerate(frames):
        pixels = np.ascontiguousarray(frame.transpose(1, 2, 0), "<u2").tobytes()
        chunks.append((b"ImageDataSeq|%d!" % number, struct.pack("<d", period * number) + pixels))
    content, places = _chunk(_SIGNATURE, b"Ver3.0".ljust(64, b"\0"), len(_SIGNATURE)), b""
    for name, body in chunks:
        places += name + struct.pack("<QQ", len(content), len(body))
        content += _chunk(name, body, _NAME_OF_FRAMES if name.startswith(b"ImageDataSeq") else len(name))
    end = _END + struct.pack("<Q", len(content))
    path.write_bytes(content + _chunk(_MAP, places + end, len(_MAP)))


def _chunk(name, body, reserved):
    return struct.pack("<IIQ", _MAGIC, reserved, len(body)) + name.ljust(reserved, b"\0") + body


def _head(kind, name):
    return struct.pack("BB", kind, len(name) + 1) + f"{name}\0".encode("utf-16-le")


def _level(name, entries):
    head = _head(11, name)
    body = b"".join(_entry(*item) for item in entries.items())
    # The length counts from the beginning of the head; behind it are places of the entries, which nobody reads.
    length = len(head) + 12 + len(body)
    return head + struct.pack("<IQ", len(entries), length) + body + bytes(8 * len(entries))


def _entry(name, value):
    if isinstance(value, dict):
        return _level(name, value)
    if isinstance(value, bool):
        return _head(1, name) + struct.pack("B", value)
    if isinstance(value, int):
        return _head(3, name) + struct.pack("<I", value)
    if isinstance(value, float):
        return _head(6, name) + struct.pack("<d", value)
    return _head(8, name) + f"{value}\0".encode("utf-16-le")
