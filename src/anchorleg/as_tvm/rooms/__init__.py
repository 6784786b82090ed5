"""Addresses that upstream has and the package's own layout does not; re-exports only."""
