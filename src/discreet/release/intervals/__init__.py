"""Intervals of released numbers as functions of public parameters, which can be copied and stored."""
