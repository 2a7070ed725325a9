"""Pictures, moving pictures and sound in integer arithmetic, so that every machine makes the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

#: One turn of a sine in 4096 steps, as whole numbers: rounding hides how a machine computes sines.
SINE = np.array([round(32767 * math.sin(2 * math.pi * i / 4096)) for i in range(4096)], dtype=np.int64)


def noise(seed: int, shape: tuple[int, int]) -> np.ndarray:
    """Return numbers from 0 to 255 that depend on the seed and the place alone."""
    rows = np.arange(shape[0], dtype=np.uint32)[:, None]
    columns = np.arange(shape[1], dtype=np.uint32)[None, :]
    word = rows * np.uint32(0x9E3779B1) + columns * np.uint32(0x85EBCA77) + np.uint32(seed & 0xFFFFFFFF)
    word = (word ^ (word >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    word = (word ^ (word >> np.uint32(12))) * np.uint32(0x297A2D39)
    return (word >> np.uint32(24)).astype(np.int32)


def plane(seed: int, height: int, width: int, shift: int = 0) -> np.ndarray:
    """Return one channel of a picture: waves, discs and fine noise, moved by `shift` pixels."""
    y = np.arange(height, dtype=np.int64)[:, None]
    x = np.arange(width, dtype=np.int64)[None, :] + shift
    value = 128 + (SINE[(x * 11 + y * 5 + seed) % 4096] + SINE[(y * 17 - x * 3 + seed * 7) % 4096]) // 800
    for n in range(8):
        mark = noise(seed, (9, 4))[n + 1]
        centre_y, centre_x = int(mark[0]) * height // 256, (int(mark[1]) * width // 256 + shift * (n % 3 - 1)) % width
        inside = (y - centre_y) ** 2 + (x - shift - centre_x) ** 2 < (int(mark[2]) * height // 1024 + 4) ** 2
        value = np.where(inside, (value + int(mark[3])) // 2, value)
    return (value + noise(seed + shift, (height, width)) // 32 - 4).clip(0, 255).astype(np.uint8)


def photo_rgb(seed: int, width: int, height: int) -> np.ndarray:
    """Return a picture as height by width by 3 bytes."""
    return np.stack([plane(seed + channel * 97, height, width) for channel in range(3)], axis=2)


def video_frames(seed: int, width: int, height: int, frames: int) -> Iterator[bytes]:
    """Yield the frames of a film as planar YUV 4:2:0: a background that pans, with discs that move against it."""
    for frame in range(frames):
        luma = plane(seed, height, width, shift=frame * 2)
        chroma = [plane(seed + 31 * c, height // 2, width // 2, shift=frame) for c in (1, 2)]
        yield luma.tobytes() + chroma[0].tobytes() + chroma[1].tobytes()


def wave(below: Callable[[int, int], np.ndarray], count: int) -> np.ndarray:
    """Return stereo samples: four voices that change their note twice a second, fading, over soft noise."""
    time = np.arange(count, dtype=np.int64)
    beat = time // 22050
    fade = 22050 - time % 22050
    sides = []
    for _ in range(2):
        total = below(400, count) - 200
        for loudness in (5, 4, 3, 2):
            note = below(48, int(beat[-1]) + 1) * 37 + 200
            total += SINE[time * note[beat] // 441 * 4096 // 10000 % 4096] * loudness * fade // (22050 * 20)
        sides.append(total)
    return np.stack(sides, axis=1).clip(-32768, 32767).astype("<i2")
