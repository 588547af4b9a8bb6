"""The correlation plane: forms, windows of shifts, engines, normalisation and peaks."""
