"""What a run hands to people: the table of shifts, and one page that shows how far to trust it."""
