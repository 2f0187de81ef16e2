"""Comparing methods: side by side in one or two folders of records, and as advice for data of a user."""
