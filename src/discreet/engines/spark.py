"""Spark where the data is: a DataFrame, or spark:table and spark:folder/of/file.parquet in the session that runs.

The session is used as it is: no setting is changed, and nothing is written. Only SQL over DataFrames is used, no RDD
and no context, so that Spark Connect serves as well. Rows and declared keys are arguments of the statement; what comes
back, integers for each group, comes as Arrow. Arrays, maps, structs, binaries, intervals and variants cannot be asked.

`version` is a SHA-256 of the columns' names and types, of the number of rows, and of the sums of both halves of the MD5
of each row, in any order, over the columns that can be asked for. It is for the custodian's ledger: whoever knows all
rows but one could test guesses against it.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from sqlglot import exp

from discreet.ask.expression import Column, Kind
from discreet.engines.base import MILLISECONDS, ColumnType, Exact, Request, Schema, guarded, refuse_unread
from discreet.engines.sql.dialect import KEYS, SOURCE, STORED
from discreet.engines.sql.expectations import QUESTIONS, check, known_rows
from discreet.engines.sql.keys import units_of, units_of_keys
from discreet.engines.sql.spark import SPARK
from discreet.engines.sql.statement import statement
from discreet.engines.sql.trees import (
    Tree,
    alias,
    call,
    cast,
    column,
    count,
    outer,
    quoted,
    select,
    subquery,
    table,
    whole,
)
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter, one_line

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

Result = TypeVar("Result")

_KINDS: dict[str, tuple[Kind, bool]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("number", True)),
    **dict.fromkeys(("float", "double"), ("number", False)),
    **dict.fromkeys(("string", "char", "varchar"), ("text", False)),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), ("date", False)),
    "boolean": ("truth", False),
}
"""What Spark's types are in the row language."""

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc"}
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")

_MILLISECONDS = re.compile(r"Timestamp\([^)]*timeUnit=milliseconds")

_CHECKED: WeakSet[Any] = WeakSet()
"""The sessions that do what we rely on."""


class Spark:
    """An engine over one DataFrame; see the module."""

    public_size = True

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        """Opens a source; what cannot be opened is refused."""
        self._lock = threading.Lock()
        self._frame = self._guarded("open", lambda: _opened(source) if isinstance(source, str) else source)
        if not hasattr(self._frame, "sparkSession"):
            raise InvalidParameter(f"the source must be a DataFrame of Spark, got a {type(source).__name__}")
        self._guarded("check", lambda: _check(self._frame.sparkSession))
        schema = self._guarded("schema", lambda: _schema(self._frame))
        unread = self._guarded("schema", lambda: _in_milliseconds(self._frame, schema))
        refuse_unread(dict.fromkeys(unread, MILLISECONDS), layout.columns)
        self._schema: Schema = MappingProxyType({name: kind for name, kind in schema.items() if name not in unread})

    def __repr__(self) -> str:
        return f"Spark({one_line(', '.join(self._schema))})"

    def schema(self) -> Schema:
        """Names and types of the columns that can be asked for."""
        return self._schema

    def version(self) -> str:
        """A text that changes when the content does."""
        found = self._run("version", _version(self._schema), None)
        columns = [(name, column.described) for name, column in self._schema.items()]
        numbers = [int(one[0].as_py() or 0) for one in found.columns]
        return hashlib.sha256(repr((columns, numbers)).encode()).hexdigest()

    def check(self) -> None:
        """Nothing: a frame keeps the plan that it was opened with."""

    def units(self, unit: str | None) -> Exact[int]:
        """How many rows there are, or how many values of the unit column; rows without a unit are nobody's."""
        table = self._run("units", units_of(unit, self._schema, SPARK), None)
        return Exact(int(table.column(0)[0].as_py()))

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """For each key in the data, how many units have it, a unit having at most `limit` keys; NULL is no key."""
        wanted = units_of_keys(column, unit, limit, self._schema, SPARK)
        table = self._run("discover", wanted.sql, None, wanted.stored)
        keys, units = table.columns
        return Exact(
            {key: number for key, number in zip(_keys(keys), units.to_pylist(), strict=True) if key is not None}
        )

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list over all groups of integers (of int64 arrays for `Cells`), from one statement."""
        wanted = statement(request, self._schema, SPARK)
        table = self._run("fetch", wanted.sql, wanted.keys, wanted.stored)
        return Exact(self._guarded("fetch", lambda: wanted.answer(table)))

    def _guarded(self, name: str, work: Callable[[], Result]) -> Result:
        return guarded("Spark", name, work)

    def _run(self, name: str, sql: str, keys: pa.Table | None, stored: str | None = None) -> pa.Table:
        with self._lock:
            return self._guarded(name, lambda: self._queried(sql, keys, stored).toArrow())

    def _queried(self, sql: str, keys: pa.Table | None, stored: str | None) -> Any:
        """The statement over the rows, the declared keys, and what is stored first.

        A checkpoint is kept by the executors until it is no longer used. It is never computed again, not even by tasks
        that are tried again: where a part of it is lost, the statement fails.
        """
        session = self._frame.sparkSession
        frames = {SOURCE: self._frame}
        if keys is not None:
            frames[KEYS] = session.createDataFrame(keys, schema=_key_types(keys))
        if stored is not None:
            frames[STORED] = _over(session, stored, frames).localCheckpoint()
        return _over(session, sql, frames)


def _check(session: Any) -> None:
    """Refuse a session that does not do what we rely on; it is asked once, by one job."""
    if session in _CHECKED:
        return
    known = {SOURCE: session.sql(known_rows(SPARK))}
    schema = _schema(known[SOURCE])
    advice = "use Spark 4 as it comes"
    check(
        f"Spark {session.version}",
        advice,
        schema,
        SPARK,
        lambda wanted: wanted.answer(_over(session, wanted.sql, known).toArrow()),
        QUESTIONS[:1],
    )
    _CHECKED.add(session)


def _over(session: Any, sql: str, frames: dict[str, Any]) -> Any:
    """A statement over frames, which Spark takes for the names in braces."""
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
    if ending.endswith(_TEXTS):  # Spark would tell types from rows, and split lines at carriage returns
        raise InvalidParameter("a file of text must become Parquet for Spark, or a DataFrame with a schema of your own")
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
    """All times of a frame if a Parquet file that it reads has some in milliseconds: Spark does not say which.

    Only files that this machine has are looked at.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

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


def _keys(column: pa.ChunkedArray) -> list[str | int | None]:
    """Keys as they are; bytes that are no UTF-8, which Spark lets a text hold, are none."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return list(column.to_pylist())
    found: list[str | int | None] = []
    for raw in column.cast(pa.large_binary()).to_pylist():
        try:
            found.append(raw.decode())
        except UnicodeDecodeError:
            found.append(None)
    return found


def _key_types(keys: pa.Table) -> str:
    """Arrow's types of declared keys in Spark's words, since a plain timestamp could be taken in the session's zone."""
    words = {"double": "double", "int64": "bigint", "int32": "int", "string": "string", "bool": "boolean"}
    return ", ".join(f"{field.name} {words.get(str(field.type), 'timestamp_ntz')}" for field in keys.schema)


def _version(schema: Schema) -> str:
    """The SELECT of the number of rows and the sums of both halves of a hash of each."""
    fields: list[Tree] = []
    for name, found in schema.items():
        here: Tree = exp.Column(this=outer(name))
        if found.kind == "text":
            here = SPARK.text_column(here, found.described)
        elif found.described == "timestamp":  # its text would depend on the session's zone
            here = call("unix_micros", here)
        fields.append(SPARK.cast(here, "text"))
    packed = call("to_json", call("array", *fields)) if fields else quoted("")
    hashed = select([alias(call("md5", packed), "digest")], table(SOURCE))
    halves = [
        call("sum", cast(call("conv", call("substr", column("digest"), whole(at), whole(16)), whole(16), whole(10)),
                         "DECIMAL(20, 0)", "spark"))
        for at in (1, 17)
    ]  # fmt: skip
    return select([count(), *halves], subquery(hashed, "digests")).sql("spark", copy=False)
