"""Training: compiled steps, and the loops that run them and record a trace."""
