"""Ways to compute the same sums on the CPU: OpenCV, separable passes, the Fourier transform, SciPy."""
