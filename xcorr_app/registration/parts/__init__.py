"""Parts of a frame that move otherwise than the whole: tiles, and what becomes of those that differ."""
