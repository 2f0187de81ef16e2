"""Training: compiled steps, and the loops that run them to a trace."""
