"""Filters, filter banks and channel mixing."""
