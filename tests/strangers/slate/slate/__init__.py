"""A backend on array-api-strict, and a method."""
