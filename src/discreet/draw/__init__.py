"""Noise, exactly: the one door for randomness and everything that is drawn from it."""
