"""The asv suite: the cases of `svgpbench.benchmarks.timing.cases` over backends, methods and problems."""
