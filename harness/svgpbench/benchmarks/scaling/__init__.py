"""Growth of a step's time and memory with each size, measured by `svgpbench scaling`."""
