"""Gaussian Processes Benchmark Settings."""
