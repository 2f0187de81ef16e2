"""Posteriors that go to and come from GPflow, GPyTorch and GPJax, by a file that both sides read."""
