"""Backends of svgpbench: one small module a framework, each an implementation of `svgpbench.ops.Ops`."""
