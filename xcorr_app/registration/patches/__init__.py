"""Motion that differs from place to place: patches matched, then one smooth field; `patches` is the entry."""
