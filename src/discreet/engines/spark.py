"""Spark as a source: a DataFrame, or spark:table and spark:folder/of/file.parquet in the active session.

No setting of the session is changed, and nothing is written. Only SQL over DataFrames is used, no RDD and no context,
so that Spark Connect works as well. Rows and declared keys are arguments of the statement; the result, integers for
each group, is returned as Arrow. Arrays, maps, structs, binaries, intervals and variants are not supported.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.engines.base import MILLISECONDS, refuse_unread
from discreet.engines.frames import decodable
from discreet.engines.sql import trees as sql
from discreet.engines.sql.dialect import KEYS, SOURCE, STORED
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.sql.expectations import QUESTIONS, check, known_rows
from discreet.engines.sql.spark import SPARK
from discreet.engines.sql.trees import Tree, call, whole
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter

_KINDS: dict[str, tuple[Kind, bool]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("number", True)),
    **dict.fromkeys(("float", "double"), ("number", False)),
    **dict.fromkeys(("string", "char", "varchar"), ("text", False)),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), ("date", False)),
    "boolean": ("truth", False),
}
"""Spark's types in the row language."""

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc"}
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")

_MILLISECONDS = re.compile(r"Timestamp\([^)]*timeUnit=milliseconds")

_CHECKED: WeakSet[Any] = WeakSet()
"""The sessions that passed the test."""


class Spark(SQLEngine):
    dialect = SPARK

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        self._lock = threading.Lock()
        self._frame = self._guarded("open", lambda: _opened(source) if isinstance(source, str) else source)
        if not hasattr(self._frame, "sparkSession"):
            raise InvalidParameter(f"the source must be a Spark DataFrame, got a {type(source).__name__}")
        self._guarded("check", lambda: _check(self._frame.sparkSession))
        schema = self._guarded("schema", lambda: _schema(self._frame))
        unread = self._guarded("schema", lambda: _in_milliseconds(self._frame, schema))
        refuse_unread(dict.fromkeys(unread, MILLISECONDS), layout.columns)
        self._schema: Schema = MappingProxyType({name: kind for name, kind in schema.items() if name not in unread})

    def version(self) -> str:
        return self._rows_hash(_version(self._schema))

    def _units_of_keys(self, tables: Iterator[pa.Table]) -> dict[str | int, int]:
        """Texts that are not UTF-8, which Spark allows, are not keys."""
        [(keys, units)] = (table.columns for table in tables)
        if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
            keys = decodable(keys)
        pairs = zip(keys.to_pylist(), units.to_pylist(), strict=True)
        return {key: number for key, number in pairs if key is not None}

    @contextmanager
    def _tables(self, sql: str, keys: pa.Table | None, stored: str | None) -> Iterator[Iterator[pa.Table]]:
        """The statement over the rows, the declared keys, and the rows that are stored first.

        The executors keep a checkpoint until it is no longer used. It is never computed again, not even by repeated
        tasks: if a part of it is lost, the statement fails.
        """
        session = self._frame.sparkSession
        frames = {SOURCE: self._frame}
        with self._lock:
            if keys is not None:
                frames[KEYS] = session.createDataFrame(keys, schema=_key_types(keys))
            if stored is not None:
                frames[STORED] = _over(session, stored, frames).localCheckpoint()
            yield iter([_over(session, sql, frames).toArrow()])


def _check(session: Any) -> None:
    """Refuse a session that fails the test, which runs once in a session, as one job."""
    if session in _CHECKED:
        return
    known_source = {SOURCE: session.sql(known_rows(SPARK))}
    check(
        f"Spark {session.version}",
        "use Spark 4 without changes to it",
        _schema(known_source[SOURCE]),
        SPARK,
        lambda query: query.answer([_over(session, query.sql, known_source).toArrow()]),
        QUESTIONS[:1],
    )
    _CHECKED.add(session)


def _over(session: Any, sql: str, frames: dict[str, Any]) -> Any:
    """A statement over frames, which Spark inserts for the names in braces."""
    text = sql.replace("{", "{{").replace("}", "}}")
    for frame in frames:
        text = re.sub(rf"\bFROM {frame}\b", f"FROM {{{frame}}} AS {frame}", text)
    return session.sql(text, **frames)


def _opened(source: str) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidParameter("a source on Spark needs pyspark: pip install 'discreet[spark]'") from None
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    name = source.removeprefix("spark:")
    ending = name.rstrip("/").lower()
    if ending.endswith(_TEXTS):  # Spark would guess types from rows, and split lines at carriage returns
        raise InvalidParameter("a text file must be converted to Parquet for Spark, or read as a DataFrame")
    suffix = next((suffix for suffix in _FORMATS if ending.endswith(suffix)), None)
    if suffix is None:
        return session.table(name)
    return session.read.format(_FORMATS[suffix]).load(name)


def _schema(frame: Any) -> Schema:
    columns = {}
    for field in frame.schema.fields:
        described = field.dataType.simpleString()
        word = re.split(r"[( ]", described)[0]
        if word == "decimal":
            columns[field.name] = ColumnType("number", described.endswith(",0)"), described)
        elif word in _KINDS:
            columns[field.name] = ColumnType(*_KINDS[word], described)
    return MappingProxyType(columns)


def _in_milliseconds(frame: Any, schema: Schema) -> set[str]:
    """All time columns of a frame, if one of its Parquet files has times in milliseconds: Spark does not say which.

    Only files on this machine are checked.
    """
    times = {name for name, column in schema.items() if column.described.startswith("timestamp")}
    for address in frame.inputFiles() if times else ():
        parts = urlsplit(address)
        file = Path(unquote(parts.path))
        if parts.scheme not in {"", "file"} or not file.is_file():
            continue
        with file.open("rb") as opened:
            if opened.read(4) == b"PAR1" and _MILLISECONDS.search(str(pq.ParquetFile(opened).schema)):
                return times
    return set()


def _key_types(keys: pa.Table) -> str:
    """The types of declared keys in Spark, where a plain timestamp could be read in the session's zone."""
    words = {"double": "double", "int64": "bigint", "int32": "int", "string": "string", "bool": "boolean"}
    return ", ".join(f"{field.name} {words.get(str(field.type), 'timestamp_ntz')}" for field in keys.schema)


def _version(schema: Schema) -> str:
    """The SELECT of the number of rows and the sums of both halves of each row's hash."""
    fields: list[Tree] = []
    for name, column in schema.items():
        value: Tree = exp.Column(this=sql.outer(name))
        if column.kind == "text":
            value = SPARK.text_column(value, column.described)
        elif column.described == "timestamp":  # its text depends on the session's zone
            value = call("unix_micros", value)
        fields.append(SPARK.cast(value, "text"))
    packed = call("to_json", call("array", *fields)) if fields else sql.quoted("")
    hashed = sql.select([sql.alias(call("md5", packed), "digest")], sql.table(SOURCE))
    halves = [call("substr", sql.column("digest"), whole(start), whole(16)) for start in (1, 17)]
    sums = [
        call("sum", sql.cast(call("conv", half, whole(16), whole(10)), "DECIMAL(20, 0)", "spark")) for half in halves
    ]
    return sql.select([sql.count(), *sums], sql.subquery(hashed, "digests")).sql("spark", copy=False)
