"""OME-Zarr: folders and addresses, metadata, chunks and shards, read and written."""
