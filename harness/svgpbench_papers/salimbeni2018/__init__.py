"""Salimbeni, Cheng, Boots and Deisenroth 2018: orthogonally decoupled bases."""
