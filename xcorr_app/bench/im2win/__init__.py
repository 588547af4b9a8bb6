"""``xcorr bench im2win``: convolution with banks of filters beside cuDNN, on the twelve layers of the document."""
