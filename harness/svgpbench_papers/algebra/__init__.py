"""Common parts of several papers' algebra: random problems, objectives and derivatives in plain NumPy."""
