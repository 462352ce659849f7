"""Exact random draws, and the only source of randomness."""
