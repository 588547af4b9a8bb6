"""Measurements of the product beside its peers: what ``xcorr bench`` runs and what ``benchmarks/`` is made of."""
