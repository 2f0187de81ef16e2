"""Benchmarks besides experiments: time per step, stability of steps, and time to a target."""
