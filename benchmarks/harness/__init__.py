"""What every benchmark has in common: clocks, checks, contenders, records."""
