"""How the time and memory of a step grow with each size: `svgpbench scaling`."""
