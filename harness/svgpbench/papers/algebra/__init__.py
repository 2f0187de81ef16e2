"""What the algebra of several papers shares: random problems, objectives and derivatives in plain NumPy."""
