"""Cells to isolated worker processes to records."""
