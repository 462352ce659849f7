"""Declared keys: what one is, many of them as a column, and the public files that hold them."""
