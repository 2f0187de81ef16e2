"""Titsias 2025: tighter bounds by a narrower q(f | u)."""
