"""Readers of the files that other profilers write: one module a format."""
