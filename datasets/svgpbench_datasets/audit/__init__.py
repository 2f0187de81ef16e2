"""What the numbers of a data set give away by themselves: its facts, and flags for its leaks."""
