"""What is measured beside experiments: times of steps, scaling, stability of steps, and time to a target."""
