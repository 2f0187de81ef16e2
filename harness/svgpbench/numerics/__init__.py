"""Numerics shared by all families: Gaussian algebra, the normal distribution, Adam and L-BFGS."""
