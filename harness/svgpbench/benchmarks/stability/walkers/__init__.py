"""A file a library: how one of its natural gradients takes a step; run by the Python that has it."""
