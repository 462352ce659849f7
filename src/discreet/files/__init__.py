"""Noise on files of any length, and the one writer of files."""
