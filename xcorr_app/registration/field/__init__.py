"""The displacement between two images on a grid, by small windows: `displacement_field` is the entry."""
