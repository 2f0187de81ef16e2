"""Posteriors that go to and come from other libraries, by a file that both sides read."""
