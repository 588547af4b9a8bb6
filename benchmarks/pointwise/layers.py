"""The 41 different pointwise layers of MobileNetV1, MobileNetV2 and EfficientNet-B0 at 224 x 224 pixels.

Each is (channels, filters, side of the plane). A layer that occurs again, in the same network or in a later one, is
listed once, where it comes first. Layers on a single pixel (squeeze and excitation, classifiers) are left out.
"""

from __future__ import annotations

Layer = tuple[int, int, int]

MOBILENET_V1: tuple[Layer, ...] = (
    (32, 64, 112), (64, 128, 56), (128, 128, 56), (128, 256, 28), (256, 256, 28), (256, 512, 14), (512, 512, 14),
    (512, 1024, 7), (1024, 1024, 7),
)  # fmt: skip
"""A. G. Howard et al., "MobileNets", arXiv:1704.04861, table 1."""

MOBILENET_V2: tuple[Layer, ...] = (
    (32, 16, 112), (16, 96, 112), (96, 24, 56), (24, 144, 56), (144, 24, 56), (144, 32, 28), (32, 192, 28),
    (192, 32, 28), (192, 64, 14), (64, 384, 14), (384, 64, 14), (384, 96, 14), (96, 576, 14), (576, 96, 14),
    (576, 160, 7), (160, 960, 7), (960, 160, 7), (960, 320, 7), (320, 1280, 7),
)  # fmt: skip
"""M. Sandler et al., "MobileNetV2", arXiv:1801.04381, table 2: expansion and projection of every bottleneck."""

EFFICIENTNET_B0: tuple[Layer, ...] = (
    (144, 40, 28), (40, 240, 28), (240, 40, 28), (240, 80, 14), (80, 480, 14), (480, 80, 14), (480, 112, 14),
    (112, 672, 14), (672, 112, 14), (672, 192, 7), (192, 1152, 7), (1152, 192, 7), (1152, 320, 7),
)  # fmt: skip
"""M. Tan and Q. V. Le, "EfficientNet", arXiv:1905.11946, table 1: those that MobileNetV2 does not hold."""

LAYERS = (*MOBILENET_V1, *MOBILENET_V2, *EFFICIENTNET_B0)
