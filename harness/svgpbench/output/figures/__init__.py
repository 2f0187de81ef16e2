"""One kind of figure a file; all of them, and other packages', stand behind `svgpbench.figures`."""
