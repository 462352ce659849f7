"""Declared keys: a single key, a column of keys, and public files of keys."""
