"""The record of what was spent: a chain of entries in SQLite or PostgreSQL that cannot be
overspent, and its anchor.
"""
