"""Stacks of a run as tasks of ``dask.distributed``: `connected` is the entry; dask is imported by it alone."""
