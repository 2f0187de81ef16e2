"""Kobe 2021, a thesis: natural gradients and a posterior with a diagonal precision."""
