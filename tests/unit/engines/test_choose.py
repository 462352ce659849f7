"""A source gets its engine, and nothing is imported for the others."""

import subprocess
import sys

import pyarrow as pa
import pytest

from discreet import InvalidParameter
from discreet.engines.choose import engine_of
from discreet.engines.duckdb import DuckDB


def test_anything_else_is_duckdbs():
    assert isinstance(engine_of(pa.table({"x": [1]})), DuckDB)
    assert isinstance(engine_of("SELECT 1 AS x"), DuckDB)


def test_a_file_needs_no_other_engine():
    program = """
import sys
from discreet.engines.choose import engine_of
assert "duckdb" not in sys.modules
engine_of("SELECT 1 AS x")
assert not {"psycopg", "pyspark", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "address", ["POSTGRESQL://bob:hunter2@host/db#t", "postgresql+psycopg://bob:hunter2@host/db#t"]
)
def test_an_address_that_is_not_known_is_refused_without_its_password(address):
    with pytest.raises(InvalidParameter, match="must begin with postgresql://") as refusal:
        engine_of(address)
    assert "hunter2" not in str(refusal.value)
