"""Noise on files of any length, and the writer of all files."""
