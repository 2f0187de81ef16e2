"""Exchange of posteriors with GPflow, GPyTorch and GPJax, through a file that both sides read."""
