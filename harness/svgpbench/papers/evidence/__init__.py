"""Records that decide claims, as frames for predicates."""
