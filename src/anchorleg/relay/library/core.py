"""What the compiler itself speaks of: memory handed out at run time."""

TEXT = """
extern type Storage
"""
