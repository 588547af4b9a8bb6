"""What all commands share: from files named to results written, with failures, resume and record."""
