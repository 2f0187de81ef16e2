"""Generated data sets: drawn from a seed, or simulated once and stored in the cache."""
