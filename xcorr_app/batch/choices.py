"""What options can be set to, and defaults that help shows.

Written out, so that help and completion import none of the modules that define them; a test compares the two.
"""

NORMALIZATIONS = ("zncc", "none", "phase")
SUBPIXEL_METHODS = ("gaussian", "dft", "quadratic", "parabolic", "none")
ALIGN_SUBPIXEL_METHODS = (*SUBPIXEL_METHODS, "phase")
REFERENCES = ("first", "last", "mean", "previous", "template")
NUMBERED_REFERENCES = ("pairs",)
INTERPOLATIONS = ("nearest", "linear", "cubic", "lanczos", "fourier")
MOTIONS = ("translation", "rigid", "similarity", "affine", "patches")
COMPRESSIONS = ("zlib", "zstd", "lzw")
FIELD_FORMATS = ("csv", "npz", "ome-tiff")
DOUBTFUL = ("interpolate", "apply", "leave", "drop")
FORMS = ("one-to-one", "one-to-many", "n-to-mn", "n-to-m")

ENGINES = ("fft", "direct", "tensor", "definition")
FILTERS = ("gaussian", "box", "sobel", "laplacian", "log", "dog", "unsharp", "taps", "bank")
BANKS = ("gabor:ORIENTATIONS,SCALES", "derivatives:SIGMA[,SIGMA...]", "schmid", "leung-malik")
BOUNDARIES = ("reflect", "constant", "nearest", "mirror", "wrap", "valid")
FILTER_KERNELS = ("auto", "reuse", "exchange", "separable", "sliding")
BANK_METHODS = ("auto", "im2win", "im2win-basic", "implicit", "implicit-basic")
MIXING_KERNELS = ("auto", "mix", "blocking")
FILTER_TYPES = ("same", "float32")
STAINS = ("he", "hdab", "hed")

MIN_OVERLAP = 0.25
MAX_SMOOTH_TIME = 1000
TOLERANCE = 0.01
MAX_PIXELS = 2**28
