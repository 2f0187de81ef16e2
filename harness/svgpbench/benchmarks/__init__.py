"""Benchmarks besides experiments: time per step, scaling, stability of steps, and time to a target."""
