"""Where the parts of a sound file lie, so that changes hit a field of its structure and are known by its name."""

import struct
from typing import NamedTuple

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}


class Field(NamedTuple):
    """Bytes of a file that mean one thing."""

    start: int
    stop: int
    label: str
    order: str = "<"


def tiff_fields(content):
    """Header, entries of every directory (``tag 256``), links (``link``), values kept elsewhere, ``pixels``."""
    order = "<" if content[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", content, 2)[0] == 43
    width, number, letter = (8, 8, "Q") if big else (4, 2, "I")
    start = 8 if big else 4
    found = [Field(0, start, "header", order), Field(start, start + width, "link", order)]
    (at,) = struct.unpack_from(order + letter, content, start)
    while at:
        (entries,) = struct.unpack_from(order + ("Q" if big else "H"), content, at)
        found.append(Field(at, at + number, "entries", order))
        pixels = {}
        for index in range(entries):
            place = at + number + index * (4 + 2 * width)
            code, kind = struct.unpack_from(order + "HH", content, place)
            (count,) = struct.unpack_from(order + letter, content, place + 4)
            value, size = place + 4 + width, count * _SIZES[kind]
            label = f"tag {code}"
            found += [Field(place, place + 2, label, order), Field(place + 2, place + 4, label, order)]
            found += [Field(place + 4, value, label, order), Field(value, value + width, label, order)]
            where = value
            if size > width:
                (where,) = struct.unpack_from(order + letter, content, value)
                found.append(Field(where, where + size, label, order))
            if code in (273, 279, 324, 325):
                item = {3: "H", 4: "I", 16: "Q"}[kind]
                pixels[code] = struct.unpack_from(f"{order}{count}{item}", content, where)
        offsets, counts = pixels.get(273, pixels.get(324)), pixels.get(279, pixels.get(325))
        found += [Field(o, o + c, "pixels", order) for o, c in zip(offsets, counts, strict=True)]
        end = at + number + entries * (4 + 2 * width)
        found.append(Field(end, end + width, "link", order))
        (at,) = struct.unpack_from(order + letter, content, end)
    return found


def png_fields(content):
    """Length, name, data and checksum of every chunk, by its name."""
    found, at = [Field(0, 8, "header", ">")], 8
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        name = content[at + 4 : at + 8].decode()
        for start, stop in ((at, at + 4), (at + 4, at + 8), (at + 8 + length, at + 12 + length)):
            found.append(Field(start, stop, name, ">"))
        if name == "IHDR":
            sizes = (4, 4, 1, 1, 1, 1, 1)
            starts = [at + 8 + sum(sizes[:index]) for index in range(len(sizes))]
            found += [Field(start, start + size, "IHDR", ">") for start, size in zip(starts, sizes, strict=True)]
        elif length:
            found.append(Field(at + 8, at + 8 + length, name, ">"))
        at += 12 + length
    return found


def bmp_fields(content):
    """Fields of both headers, the palette and the pixels."""
    names = (("header", 2), ("size", 4), ("reserved", 4), ("offset", 4), ("header size", 4), ("width", 4))
    names += (("height", 4), ("planes", 2), ("bits", 2), ("compression", 4), ("image size", 4), ("density", 8))
    names += (("used", 4), ("used", 4))
    found, at = [], 0
    for label, size in names:
        found.append(Field(at, at + size, label))
        at += size
    (data,) = struct.unpack_from("<I", content, 10)
    return [*found, *([Field(at, data, "palette")] if data > at else []), Field(data, len(content), "pixels")]


def text_fields(content):
    """All of it."""
    return [Field(0, len(content), "text")]
