"""Estimates and intervals from noisy integers."""
