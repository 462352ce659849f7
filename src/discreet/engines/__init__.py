"""Exact answers: the only code that reads rows."""
