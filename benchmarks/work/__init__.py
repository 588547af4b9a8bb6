"""What the benchmarks of the filters, of Im2win and of the pointwise convolution have in common."""
