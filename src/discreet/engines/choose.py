"""The engine of a source.

postgresql://host/database#schema.table        PostgreSQL
spark:table, spark:folder/of/file.parquet      Spark, and also a Spark DataFrame
anything else                                  DuckDB: files, frames, Arrow tables, relations, a SELECT
"""

from __future__ import annotations

import re
from typing import Any

from discreet.ask.policy import InMemory, Policy
from discreet.engines.base import Engine
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter


def engine_of(source: Any, layout: Layout = Layout()) -> Engine:  # noqa: B008 - a frozen value
    """The engine over a source; a source that cannot be opened is refused."""
    if isinstance(source, InMemory):
        source = source.opened()
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        from discreet.engines.postgres import PostgreSQL

        return PostgreSQL(source)
    if type(source).__module__.startswith("pyspark.") or (isinstance(source, str) and source.startswith("spark:")):
        from discreet.engines.spark import Spark

        return Spark(source, layout)
    if isinstance(source, str) and re.match(r"[A-Za-z][\w+.-]*://", source):  # not quoted: it may contain a password
        raise InvalidParameter("an address must begin with postgresql://; for other databases, export to Parquet")
    from discreet.engines.duckdb import DuckDB

    return DuckDB(source, layout)


def engine_under(policy: Policy) -> Engine:
    """The engine over the source of a policy, which also says how it is read."""
    columns = dict.fromkeys([*policy.columns, *filter(None, [policy.unit_column])])
    return engine_of(policy.source, Layout(tuple(columns), policy.delimiter, policy.encoding, policy.folder))
