"""Spend, then add, once."""
