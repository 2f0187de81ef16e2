"""A cell: a configuration that has been checked, and what comes of running it."""
