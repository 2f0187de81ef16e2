"""Audit of the numbers of a data set: its facts, and flags for target leaks and other defects."""
