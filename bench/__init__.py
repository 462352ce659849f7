"""Ratios against numpy, plain DuckDB and OpenDP, each table measured in one run."""
