"""Cross-correlation by its definition: the variants of ``kernels/direct``, their launches, tuning and costs."""
