"""Checks of the claims."""
