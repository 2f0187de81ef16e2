"""Predicates of claims: each grades a part of a claim from a frame of results."""
