"""Stability of natural-gradient steps over a thousand minibatches, ours and those of other libraries."""
