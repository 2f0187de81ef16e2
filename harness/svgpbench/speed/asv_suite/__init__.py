"""The asv suite: the cases of `svgpbench.speed.cases` over backends, methods and problems."""
