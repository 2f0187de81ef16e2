"""Cortinovis et al. 2026: SVGPs that train by matrix products alone."""
