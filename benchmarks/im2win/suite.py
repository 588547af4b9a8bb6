"""The suite of ``python -m benchmarks im2win``."""

from __future__ import annotations

from benchmarks.im2win.cases import CASES
from benchmarks.im2win.data import Expected, random_layer
from benchmarks.im2win.own import own_contenders
from benchmarks.im2win.torch_peers import torch_contenders
from benchmarks.work.suite import Suite

__all__ = ["IM2WIN"]

IM2WIN = Suite("im2win", CASES, random_layer, Expected, own_contenders, torch_contenders, measures_memory=True)
