"""Computations for questions that the paper leaves open."""
