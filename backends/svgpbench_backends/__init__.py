"""Backends of svgpbench: one small module per framework, which implements `svgpbench.ops.Ops`."""
