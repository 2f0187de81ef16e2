"""A backend on arrays of another memory, and a method."""
