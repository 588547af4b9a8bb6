"""TIFF files of every kind: what they declare, what they hold, and their planes."""
