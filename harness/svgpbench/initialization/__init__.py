"""Where a run starts: hyperparameters, inducing inputs, a basis that grows."""
