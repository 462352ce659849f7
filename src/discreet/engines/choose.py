"""The engine of a source.

postgresql://host/database#schema.table    PostgreSQL
spark:table, spark:folder/of/file.parquet  Spark, and also a Spark DataFrame
anything else                              DuckDB: files, frames, Arrow tables, relations, a SELECT
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from discreet.ask.policy import InMemory, Policy
from discreet.engines.base import Engine
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter, of_source, without_context


@without_context
def engine_of(source: Any, layout: Layout = Layout()) -> Engine:  # noqa: B008 - a frozen value
    """The engine over a source; a source that cannot be opened is refused."""
    with of_source():
        return _engine_of(source.opened() if type(source) is InMemory else source, layout)


def _engine_of(source: Any, layout: Layout) -> Engine:
    is_text = issubclass(type(source), str)  # `isinstance` would run code of the data
    if is_text and source.startswith(("postgresql://", "postgres://")):
        from discreet.engines.postgres import PostgreSQL

        return PostgreSQL(source, layout)
    if type(source).__module__.startswith("pyspark.") or (is_text and source.startswith("spark:")):
        from discreet.engines.spark import Spark

        return Spark(source, layout)
    if is_text and (scheme := re.match(r"(jdbc:)?[A-Za-z][\w+.-]*://", source)):
        # the source is not quoted: it may contain a password
        raise InvalidParameter(_far(source, scheme[0].lower()))
    from discreet.engines.duckdb import DuckDB

    return DuckDB(source, layout)


_FILES = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".orc")
_STORES = (
    *(
        "s3",
        "s3a",
        "s3n",
        "gs",
        "gcs",
        "abfs",
        "abfss",
        "wasb",
        "wasbs",
        "az",
        "adl",
        "hdfs",
        "dbfs",
        "oss",
    ),
    *("http", "https", "ftp", "sftp", "webdav"),
)
"""Where files on other machines are, by the beginnings of their addresses."""


def _far(source: str, scheme: str) -> str:
    """Why an address is not a source, without the address, which may contain a password."""
    if scheme.startswith(("jdbc:postgresql", "postgresql+")):
        return (
            "an address of PostgreSQL must begin with postgresql://, as in"
            " postgresql://host/database#schema.table"
        )
    if scheme in ("file://", "sqlite://", "duckdb://"):
        return (
            "a file must be named by its path, without file://, sqlite:// or duckdb://, as in"
            " people.db#table"
        )
    path = source.partition("?")[0].partition("#")[0]
    if scheme.removesuffix("://") in _STORES or Path(path).suffix.lower() in _FILES:
        return (
            "a file on another machine is not read from there, since discreet uses no network for"
            " files: copy it here and name the copy, or read it with Spark and give the DataFrame"
            " as the source"
        )
    return (
        "an address must begin with postgresql://; from other databases, export the table to"
        " Parquet and name the file"
    )


def engine_under(policy: Policy) -> Engine:
    """The engine over the source of a policy, which also says how it is read."""
    columns = dict.fromkeys([*policy.columns, *filter(None, [policy.unit_column])])
    row_security, seconds = bool(policy.row_security), policy.seconds
    layout = Layout(
        tuple(columns), policy.delimiter, policy.encoding, policy.folder, row_security, seconds
    )
    return engine_of(policy.source, layout)
