"""Moving frames by their shifts, on a CPU and on a device."""
