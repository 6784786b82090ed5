"""Layouts through a graph: which operators can work in which layout, and the rewriting that carries layouts along."""
