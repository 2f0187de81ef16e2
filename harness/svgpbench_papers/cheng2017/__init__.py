"""Cheng and Boots 2017: variational inference with linear complexity."""
