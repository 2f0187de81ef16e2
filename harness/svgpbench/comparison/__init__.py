"""Comparison of methods in one or two folders of records."""
