"""What commands print: tables of results, progress, and where it goes."""
