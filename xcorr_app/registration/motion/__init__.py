"""Motion of more than a shift: `estimate` is the entry, `models` the table of what a frame may do."""
