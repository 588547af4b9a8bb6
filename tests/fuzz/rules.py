"""What a changed file may be read as, beside the array of the sound one: changes that no reader can tell from another
sound file, by the field that was changed. docs/trust.md lists them."""


def values(expected, found):
    """Other values, of the same shape and type: pixels without a checksum, or what tells how they are coded."""
    return (found.shape, found.dtype) == (expected.shape, expected.dtype)


def same_bytes(expected, found):
    """The same number of bytes, read as another type or in another shape."""
    return found.nbytes == expected.nbytes


def same_planes(expected, found):
    """Whole planes of the sound file, in another order, under other axes, or not all of them."""
    size = expected.shape[-2:]
    if found.shape[-2:] != size or found.dtype != expected.dtype:
        return False
    known = {plane.tobytes() for plane in expected.reshape(-1, *size)}
    return all(plane.tobytes() in known for plane in found.reshape(-1, *size))


def same_page(expected, found):
    """Any number of planes of the same size and type: bytes before the pixels were moved, a description is lost."""
    return (found.shape[-2:], found.dtype) == (expected.shape[-2:], expected.dtype)


def fewer_tags(expected, found):
    """Planes as they read without the last tags of a directory, and with another next directory."""
    return same_page(expected, found) or same_bytes(expected, found)


def same_row_bytes(expected, found):
    """Other columns that fill as many bytes: rows of a BMP end at a multiple of four."""
    return found.shape[:-1] == expected.shape[:-1] and -(-found.shape[-1] // 4) == -(-expected.shape[-1] // 4)


def same_padded_bytes(expected, found):
    """Other rows and columns of a BMP that fill as many bytes."""
    sizes = {shape[-2] * -(-shape[-1] // 4) for shape in (expected.shape, found.shape)}
    return len(sizes) == 1 or same_bytes(expected, found)


def anything(expected, found):
    """Another file of the kind."""
    return True


TOGETHER = (
    ({"tag 256", "tag 257"}, same_bytes),
    ({"tag 322", "tag 323"}, same_bytes),
    ({"height", "width"}, same_padded_bytes),
)
"""Fields that make another sound file where both were changed: rows and columns."""

# Tags: sample format; offsets of strips and tiles; predictor and order of bits; description; next directory.
STRUCTURE = {
    "tag 339": same_bytes,
    "tag 273": values,
    "tag 324": values,
    "tag 317": values,
    "tag 266": values,
    "tag 270": same_planes,
    "link": same_planes,
    "exchanged": values,
    "entries": fewer_tags,
    "moved": same_page,
}
UNCHECKED = STRUCTURE | {"pixels": values}
"""Pixels stored plainly, or by codecs that have no checksum."""
