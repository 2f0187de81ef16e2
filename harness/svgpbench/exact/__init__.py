"""Exact and counted claims of the papers, computed afresh: algebra and counting, no record."""
