"""Filters of images: a separable blur, edges by Sobel's kernels, a median of 3 by 3."""

import harness
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

TAPS = 9


def set_up(draw: np.random.Generator, *, images: int, side: int) -> tuple[np.ndarray, ...]:
    blur = np.exp(-0.5 * (np.arange(TAPS) - TAPS // 2) ** 2 / 2.0)
    sobel = np.outer([1, 2, 1], [1, 0, -1])
    return (
        draw.random((images, 1, side, side), dtype=np.float32),
        (blur / blur.sum()).astype(np.float32),
        np.stack([sobel, sobel.T])[:, None].astype(np.float32),
    )


def median(image: Tensor) -> Tensor:
    height, width = image.shape[-2] - 2, image.shape[-1] - 2
    shifts = [image[..., y : y + height, x : x + width] for y in range(3) for x in range(3)]
    return torch.stack(shifts).median(dim=0).values


def work(images: Tensor, blur: Tensor, sobel: Tensor) -> Tensor:
    results = []
    for image in images.split(1):
        smooth = functional.conv2d(image, blur.view(1, 1, 1, TAPS), padding=(0, TAPS // 2))
        smooth = functional.conv2d(smooth, blur.view(1, 1, TAPS, 1), padding=(TAPS // 2, 0))
        slope = functional.conv2d(smooth, sobel)
        edges = slope.square().sum(dim=1, keepdim=True).sqrt()
        results.append(median(image) + edges)
    return torch.cat(results)


if __name__ == "__main__":
    harness.run(set_up, work)
