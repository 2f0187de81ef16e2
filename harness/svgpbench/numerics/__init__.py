"""Numbers that every family of methods shares: Gaussians, the normal distribution, two optimisers."""
