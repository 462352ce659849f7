"""Intervals of released numbers as functions of public parameters, to be copied and stored."""
