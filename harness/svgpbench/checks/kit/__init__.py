"""The conformance kit: `pytest --pyargs svgpbench.checks --backend NAME`, or `--method NAME`."""
