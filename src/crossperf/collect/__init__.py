"""Turns one tool's measurement or one tool's file into runs: one module per tool, the standard library alone."""
