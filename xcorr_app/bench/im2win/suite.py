"""The suite of ``xcorr bench im2win``."""

from __future__ import annotations

from xcorr_app.bench.im2win.cases import CASES
from xcorr_app.bench.im2win.data import Expected, random_layer
from xcorr_app.bench.im2win.own import own_contenders
from xcorr_app.bench.im2win.torch_peers import torch_contenders
from xcorr_app.bench.work.suite import Suite

__all__ = ["IM2WIN"]

IM2WIN = Suite("im2win", CASES, random_layer, Expected, own_contenders, torch_contenders, measures_memory=True)
