"""The papers of svgpbench: a folder for each, with its claims, experiments, printed numbers and algebra."""
