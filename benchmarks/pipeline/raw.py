"""What the machine does at most: reading files that are in the page cache, writing and syncing, decoding."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

_BLOCK = 1 << 22


def _rate(work: Callable[[Any], int], items: Iterable[Any], threads: int) -> float:
    """What several threads do a second, of which each piece of work says how much it was; the second time counts."""
    many = list(items)
    for _ in range(2):
        begin = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(work, many))
        seconds = time.perf_counter() - begin
    return done / seconds


def read_rate(paths: list[Path], threads: int) -> float:
    """Bytes a second of reading files by several threads; the second time counts."""

    def read(path: Path) -> int:
        buffer, done = np.empty(_BLOCK, np.uint8), 0
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer.data):
                done += count
        return done

    return _rate(read, paths, threads)


def write_rate(folder: Path, size: int, threads: int) -> float:
    """Bytes a second of writing a file by each of several threads, and syncing it; the second time counts."""
    block = np.random.default_rng(0).integers(0, 256, _BLOCK, np.uint8)
    blocks = max(1, size // threads // _BLOCK)

    def write(path: Path) -> int:
        with path.open("wb", buffering=0) as file:
            for _ in range(blocks):
                file.write(block.data)
            os.fsync(file.fileno())
        path.unlink()
        return blocks * _BLOCK

    return _rate(write, [folder / f"raw{number}" for number in range(threads)], threads)


def decode_rate(frame: np.ndarray, threads: int) -> float:
    """Frames a second that imagecodecs inflates, as `xcorr` writes them with ``--compression zlib``."""
    content = imagecodecs.zlib_encode(imagecodecs.delta_encode(frame, axis=-1).tobytes(), level=6)

    def decode(_: int) -> int:
        raw = imagecodecs.deflate_decode(content, out=frame.nbytes)
        imagecodecs.delta_decode(np.frombuffer(raw, frame.dtype).reshape(frame.shape), axis=-1)
        return 1

    return _rate(decode, range(16 * threads), threads)
