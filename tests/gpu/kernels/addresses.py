"""Arrays at addresses that allow no vectors."""


def off_a_boundary(cupy, content):
    """Copy of an array in device memory that begins one element behind a 16-byte boundary."""
    buffer = cupy.empty(content.size + 1, content.dtype)
    buffer[1:] = cupy.asarray(content.ravel())
    return buffer[1:].reshape(content.shape)
