"""Comparison of methods in one or two folders of records, and advice for the data of a user."""
