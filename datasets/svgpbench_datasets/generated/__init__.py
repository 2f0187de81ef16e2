"""Data sets that no file is downloaded for: drawn by seed, or simulated once and kept."""
