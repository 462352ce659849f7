"""A source gets its engine, and nothing is imported for the others."""

import subprocess
import sys

import pyarrow as pa

from discreet.engines.duckdb import DuckDB
from discreet.engines.opening import engine_of


def test_anything_else_is_duckdbs():
    assert isinstance(engine_of(pa.table({"x": [1]})), DuckDB)
    assert isinstance(engine_of("SELECT 1 AS x"), DuckDB)


def test_a_file_needs_no_other_engine():
    program = """
import sys
from discreet.engines.opening import engine_of
assert "duckdb" not in sys.modules
engine_of("SELECT 1 AS x")
assert not {"psycopg", "pyspark", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
