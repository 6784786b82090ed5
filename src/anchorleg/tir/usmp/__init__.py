"""Memory planning over pools, under the names upstream's users know."""
from . import utils

__all__ = ["utils"]
