"""What a measurement returns, shows and saves, and what becomes of frames in doubt."""
