"""Initial values of a run: hyperparameters, inducing inputs, a basis that grows."""
