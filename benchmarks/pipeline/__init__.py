"""Whole commands from disk to disk, beside what the machine reads and writes."""
