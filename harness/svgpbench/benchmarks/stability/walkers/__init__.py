"""Walkers, one file per library: its natural-gradient steps, run by the Python that has the library."""
