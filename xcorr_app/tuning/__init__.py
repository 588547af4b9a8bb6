"""Measuring the choices of ``auto`` on the device at hand: random problems, every candidate timed, a table to keep."""
