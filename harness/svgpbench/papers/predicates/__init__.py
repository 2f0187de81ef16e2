"""Predicates of claims: each grades a part of a claim by a frame of results."""
