"""Changes to files: to a field of the structure, to a number or word of a text, to bytes anywhere.

Each returns the changed bytes and the names of the fields that it touched.
"""

import re
import struct
import zlib

SMALL = (0, 1, 2, 3, 5, 7, 8, 16, 32, 255, 256)
NUMBERS = (*SMALL, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
"""Values at which types, tables and signs end."""
OTHERS = (32773, 32946, 34887, 34892, 34925, 34712, 33003, 34933, 34934, 50000, 50001, 50002)
COMPRESSIONS = (*range(1, 9), *OTHERS)
WORDS = (
    *("0", "1", "-1", "2", "3", "4", "7", "1e9", "NaN", "inf", "-inf", "²", "٣", "0x10", "1_0", "500000000"),
    *("4000000000", "9" * 19, "9" * 5000, "", " ", "\0", "[", "{", "null", "true", "../x", "=1+1", "\u202e", "\ud7ff"),
    *("[" * 3000, "<a>" * 300, "(-" * 500, "<?xml version='1.0' encoding='rot13'?>", "XYZCT", "XYCTZ", "ImageJ="),
    *("<OME", '{"shape":', "float"),
)
LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def change_field(content, fields, rng):
    """Give one field of one, two, four or eight bytes another value, or one number of a longer one."""
    field = rng.choice([field for field in fields if field.label != "pixels"])
    size = field.stop - field.start
    width = size if size in LETTERS else rng.choice([w for w in (1, 2, 4, 8) if w <= size] or [1])
    at = field.start + (0 if size in LETTERS else rng.randrange(max(1, (size - width) // width + 1)) * width)
    (old,) = struct.unpack_from(field.order + LETTERS[width], content, at)
    kind = rng.randrange(6)
    if kind == 0:
        new = rng.choice(NUMBERS)
    elif kind == 1:
        new = old + rng.choice((-2, -1, 1, 2))
    elif kind == 2:
        new = old * 2 if rng.random() < 0.5 else old // 2
    elif kind == 3:
        new = rng.choice(COMPRESSIONS)
    elif kind == 4:
        new = old ^ 1 << rng.randrange(8 * width)
    else:
        other = rng.choice(fields)
        new = int.from_bytes(content[other.start : other.start + width], "little" if field.order == "<" else "big")
    changed = bytearray(content)
    struct.pack_into(field.order + LETTERS[width], changed, at, new % (1 << 8 * width))
    return bytes(changed), {field.label, *_codes(content, changed, field)}


def _codes(content, changed, field):
    """An entry whose tag's number was changed is now another tag."""
    if not field.label.startswith("tag ") or field.stop - field.start != 2:
        return set()
    return {f"tag {struct.unpack_from(field.order + 'H', changed, field.start)[0]}"}


def change_entry(content, fields, rng):
    """Exchange, double or remove parts of a file: two fields of one length change places, or one is written over."""
    one, two = rng.choice(fields), rng.choice(fields)
    size = min(one.stop - one.start, two.stop - two.start)
    changed = bytearray(content)
    changed[one.start : one.start + size] = content[two.start : two.start + size]
    if rng.random() < 0.5:
        changed[two.start : two.start + size] = content[one.start : one.start + size]
    if one.label == two.label == "pixels":  # a whole strip, its checksum included
        return bytes(changed), {"pixels", "exchanged"}
    labels = {one.label, two.label, *_codes(content, changed, one), *_codes(content, changed, two)}
    return bytes(changed), labels


def change_text(content, fields, rng):
    """Change a number or a word of a text, keeping its length where the text has a place in a table."""
    texts = [f for f in fields if f.label == "text" or (f.label == "tag 270" and f.stop - f.start > 8)]
    if not texts:
        return change_field(content, fields, rng)
    field = rng.choice(texts)
    text = content[field.start : field.stop]
    tokens = list(re.finditer(rb"[0-9.]+|[A-Za-z_]+|[^\w\s]", text))
    if not tokens:
        return change_bytes(content, fields, rng)
    token = rng.choice(tokens)
    kind = rng.randrange(4)
    word = rng.choice(WORDS).encode("utf-8", "surrogatepass")
    if kind == 1:
        word = rng.choice(tokens)[0]
    elif kind == 2:
        word = b""
    new = text[: token.start()] + word + text[token.end() :]
    if kind == 3:
        new = text[: token.start()] + text[token.end() :][: rng.randrange(40)] + text[token.start() :]
    if field.label != "text":  # the table says how long it is
        new = new[: len(text)].ljust(len(text), rng.choice((b"\0", b" ", b"\n")))
    return content[: field.start] + new + content[field.stop :], {field.label}


def change_bytes(content, fields, rng):
    """One to sixteen bytes anywhere."""
    changed, labels = bytearray(content), set()
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(content))
        changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 1 << rng.randrange(8)))
        labels |= {field.label for field in fields if field.start <= at < field.stop} or {"between"}
    return bytes(changed), labels


def cut(content, fields, rng):
    """Bytes removed, doubled or cut off."""
    at, size = rng.randrange(len(content)), rng.randrange(1, 40)
    kind = rng.randrange(3)
    if kind == 0:
        return content[:at] + content[at + size :], {"moved"}
    if kind == 1:
        return content[:at] + content[rng.randrange(len(content)) :][:size] + content[at:], {"moved"}
    return content[:at], {"cut"}


def renew_checksums(content, labels):
    """Make the checksums of a PNG file's chunks right again, so that what is changed in them is looked at."""
    changed, at = bytearray(content), 8
    while at + 12 <= len(changed):
        length = int.from_bytes(changed[at : at + 4], "big")
        if at + 12 + length > len(changed):
            break
        changed[at + 8 + length : at + 12 + length] = zlib.crc32(changed[at + 4 : at + 8 + length]).to_bytes(4, "big")
        at += 12 + length
    return bytes(changed), labels


_KINDS = (change_field, change_field, change_field, change_entry, change_text, change_bytes, cut)


def mutate(content, fields, rng):
    """One or two changes; returns the bytes and the names of the fields touched."""
    changed, labels = rng.choice(_KINDS)(content, fields, rng)
    if rng.random() < 0.2 and len(changed) == len(content):
        changed, more = rng.choice(_KINDS)(changed, fields, rng)
        labels = labels | more
    if content[:4] == b"\x89PNG" and rng.random() < 0.7:
        changed, labels = renew_checksums(changed, labels)
    return changed, labels
