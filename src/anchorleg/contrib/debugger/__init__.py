"""Upstream's address of the debug executor."""
