"""Data files downloaded once, verified, and kept: the only part of the package that has a network."""
