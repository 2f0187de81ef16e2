"""The records that decide claims, as the frames that predicates read."""
