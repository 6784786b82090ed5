"""Lowering: schedules to functions of the loop language."""
