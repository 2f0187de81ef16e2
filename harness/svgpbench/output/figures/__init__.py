"""Kinds of figures, one per file, registered in the entry point group `svgpbench.figures`."""
