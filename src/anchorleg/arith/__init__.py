"""Integers and their bounds: simplification, proofs, interval sets, detection of linear forms."""
from .analyzer import Analyzer, ConstIntBound, ModularSet, ProofStrength
from .int_set import IntervalSet, IntSet, eval_set, intersect, neg_inf, pos_inf, union
from .interval import INF
from .pattern import detect_clip_bound, detect_linear_equation

__all__ = ["INF", "Analyzer", "ConstIntBound", "IntSet", "IntervalSet", "ModularSet", "ProofStrength", "detect_clip_bound",
           "detect_linear_equation", "eval_set", "intersect", "neg_inf", "pos_inf", "union"]
