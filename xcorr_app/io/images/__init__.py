"""Images decoded strictly: BMP, JPEG, PNG, NumPy's ``.npy``, compressed pages."""
