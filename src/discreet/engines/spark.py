"""Spark as a source: a DataFrame, or spark:table or spark:folder/of/file.parquet in the session.

No setting of the session is changed, and nothing is written. Only SQL over DataFrames is used, no
RDD, so that Spark Connect works as well; where there is a context, it stops jobs. Rows and declared
keys are arguments of the statement; the result, integers for each group, is returned as Arrow.
Arrays, maps, structs, binaries, intervals and variants are not supported.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.draw.entropy import random_digits
from discreet.engines.base import (
    MILLISECONDS,
    OTHER_ROWS,
    PART_OF_FOLDER,
    REOPEN,
    Failure,
    by_filter,
    in_use,
    is_linked_part,
    is_part_of_folder,
    limited,
    refuse_changed,
    refuse_twice,
    refuse_unread,
)
from discreet.engines.sql.dialect import KEYS, SOURCE, STORED
from discreet.engines.sql.engine import Result, SQLEngine
from discreet.engines.sql.expectations import QUESTIONS, check, known_rows
from discreet.engines.sql.spark import SPARK
from discreet.engines.textfiles import Layout, refuse_alike
from discreet.engines.unreadable import why_unreadable
from discreet.engines.unusable import SPARK as EXPRESSIONS
from discreet.engines.unusable import unusable
from discreet.errors import (
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    SourceChanged,
    SourceUnusable,
    Stopped,
)
from discreet.parameters import quote

_KINDS: dict[str, tuple[Kind, bool]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("number", True)),
    **dict.fromkeys(("float", "double"), ("number", False)),
    **dict.fromkeys(("string", "char", "varchar"), ("text", False)),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), ("date", False)),
    "boolean": ("truth", False),
}
"""Spark's types in the row language."""

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc"}
_TABLE_FORMATS = ("parquet", "orc", "delta", "iceberg")
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")

_CHECKING = "parquet-mr"
"""What writes Parquet for Spark and Hive, which check decimals by the precision of the column."""
_UNCHECKED = " unchecked"
_SHORT = 18
"""Spark checks decimals of more digits when it reads them, and fails if one does not fit."""
_LONG_DECIMAL = re.compile(r"decimal\((19|[23]\d),")
_LONG = (
    "it has decimals of more than 18 digits, which Spark did not write, and Spark fails on a value"
    " that does not fit; write the file again with Spark, or the column with at most 18 digits or"
    " as DOUBLE"
)

_MILLISECONDS = re.compile(r"Timestamp\([^)]*timeUnit=milliseconds")

_NO_JAVA = ("JAVA_GATEWAY_EXITED",)
_NO_SESSION = (
    "NO_ACTIVE_SESSION",
    "NO_ACTIVE_OR_DEFAULT_SESSION",
    "CONNECT_URL_NOT_SET",
    "SESSION_CLOSED",
)
_LOST = (
    "Py4JNetworkError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
    "SparkConnectGrpcException",
)
_NO_NAME = (
    "PARSE_",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "CATALOG_NOT_FOUND",
    "IDENTIFIER_TOO_MANY_NAME_PARTS",
)
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND", *_NO_NAME)
_UNREADABLE = (
    "FAILED_READ_FILE",
    "FILE_NOT_EXIST",
    "FILE_NOT_FOUND",
    "CANNOT_READ_FILE_FOOTER",
    "CANNOT_READ_FILE",
)
_NO_SYSTEM = (
    "UnsupportedFileSystemException",
    "S3AFileSystem",
    "UnknownHostException",
    "ClassNotFoundException",
)
_GENERAL = (
    "Py4JJavaError",
    "SparkException",
    "RuntimeException",
    "IllegalArgumentException",
    "AnalysisException",
)
_DEPTH = 20
"""How many causes of an error in Java are looked at."""

_CHECKED: WeakSet[Any] = WeakSet()
"""The sessions that passed the test."""


class Spark(SQLEngine):
    """An engine over a DataFrame, a table or a file; see the module."""

    dialect = SPARK

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        self._lock = threading.Lock()
        self._source = source
        self._seconds = layout.time_limit
        self._stop: Callable[[], object] = lambda: None
        """Stops the running statement."""
        self._is_stopped = False  # whether a person has stopped it
        frame = self._guarded("open", self._resolved)
        if not hasattr(frame, "sparkSession"):
            raise SourceUnusable(
                f"the source must be a Spark DataFrame, got a {type(source).__name__}"
            )
        self._guarded("check", lambda: _check(frame.sparkSession))
        used = {name.lower() for name in layout.columns or frame.columns}
        refuse_alike([name for name in frame.columns if name.lower() in used])
        self._guarded("open", lambda: refuse_twice(sorted(_local_files(frame))))
        self.chosen = self._guarded("open", lambda: _what_chose(self._source, frame))
        schema, unread = self._guarded("schema", lambda: _schema(frame))
        self._files = self._guarded("schema", lambda: _types_of_files(frame))
        unsafe = _unsafe(schema, self._files.values())
        self.unread = {**unread, **unsafe}
        refuse_unread(self.unread, layout.columns)
        self._schema = MappingProxyType(
            {name: kind for name, kind in schema.items() if name not in unsafe}
        )
        self._used = in_use(self._schema, layout.columns)
        self._kinds: dict[str, set[str]] = {}
        """The types that each column had in the files."""
        for name, kind in chain.from_iterable(types.items() for types in self._files.values()):
            self._kinds.setdefault(name, set()).add(kind)
        everywhere = [types.keys() for types in self._files.values()] or [{}.keys()]
        self._common = dict.fromkeys(set.intersection(*map(set, everywhere)), "")
        """The columns that all files had."""

    def _guarded(self, name: str, work: Callable[[], Result]) -> Result:
        with without_values():
            return super()._guarded(name, work)

    def interrupt(self) -> None:
        """Stop the running statement, which then raises `EngineFailed`."""
        self._is_stopped = True
        self._stop()

    def version(self, salt: str = "") -> str:
        return self._rows_hash(SPARK.version(self._used, salt), salt)

    def check(self) -> None:
        self._guarded("check", self._compared)

    def probe(self) -> None:
        if self._lock.acquire(blocking=False):  # else it is being read
            self._lock.release()
            self.check()

    def _resolved(self) -> Any:
        """The DataFrame: as it was given, or what its name stands for now."""
        return _opened(self._source) if isinstance(self._source, str) else self._source

    @property
    def _paths(self) -> Iterable[Path]:
        """The files of the source on this machine, as far as they are known."""
        known: Iterable[Path] = getattr(self, "_files", ())
        if known:
            return known
        name = self._source.removeprefix("spark:") if isinstance(self._source, str) else ""
        named = (
            Path(unquote(urlsplit(name).path)) if name.startswith(("/", "file:")) else Path(name)
        )
        return (
            sorted(named.rglob("*.parquet"))
            if name and named.is_dir()
            else [named]
            if name and named.exists()
            else []
        )

    def _compared(self) -> Any:
        """The DataFrame, whose columns in use, and those of the files under it, have the types of
        when it was opened.

        A file may have other columns in addition. A DataFrame keeps its list of files, a name is
        looked up again.
        """
        frame = self._resolved()
        if _is_stopped(frame):
            raise EngineFailed(_NO_LONGER)
        schema, _ = _schema(frame)
        refuse_changed(self._used, schema)
        if _what_chose(self._source, frame) != self.chosen:
            raise SourceChanged(OTHER_ROWS)
        for file, types in _types_of_files(frame).items():
            before = self._files.get(file, self._common)
            needed = (
                before.keys() & self._used.keys()
                if isinstance(self._source, str)
                else before.keys()
            )
            others = [
                name for name, kind in types.items() if kind not in self._kinds.get(name, {kind})
            ]
            if others or not needed <= types.keys():
                raise SourceChanged(
                    f"the file {file.name} has other columns or types than before; {REOPEN}"
                )
        return frame

    def _explained(self, error: Exception) -> Failure | DiscreetError | None:
        if isinstance(error, OSError | pa.ArrowException) and (
            failure := why_unreadable(self._paths)
        ):
            return failure
        found = explained(error, self._source, self._paths)
        if isinstance(found, SourceUnusable) and hasattr(self, "_used"):
            return SourceChanged(
                f"{_named(self._source)} is gone since the study was opened: put it back",
                code=found.code,
            )
        if self._is_stopped and isinstance(found, Failure):
            return Failure(_BY_A_PERSON, found.code, Stopped)
        return found

    @contextmanager
    def _tables(
        self, sql: str, keys: pa.Table | None, stored: str | None
    ) -> Iterator[Iterator[pa.Table]]:
        """The statement over the rows, the declared keys, and the rows that are stored first.

        The executors keep a checkpoint until it is no longer used. It is never computed again, not
        even by repeated tasks: if a part of it is lost, the statement fails.
        """
        with self._lock, ExitStack() as stack:
            source = self._compared()
            session, frames = source.sparkSession, {SOURCE: source}
            stack.enter_context(self._limited(session))
            if keys is not None:
                frames[KEYS] = session.createDataFrame(keys, schema=_key_types(keys))
            if stored is not None:
                frames[STORED] = _over(session, stored, frames).localCheckpoint()
            try:
                yield iter([_over(session, sql, frames).toArrow()])
            except DiscreetError:
                raise
            except Exception:
                self._compared()
                raise
            self._compared()

    @contextmanager
    def _limited(self, session: Any) -> Iterator[None]:
        """Within the block the thread's jobs have a tag, to stop them when their time is over."""
        tag = f"discreet-{random_digits(1)}"
        # Spark Connect has none; other sessions' tags are a thread's
        context = getattr(session, "sparkContext", None)
        if context is None:
            add, stop, remove = session.addTag, session.interruptTag, session.removeTag
        else:
            add, stop, remove = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
        add(tag)
        self._stop, self._is_stopped = partial(stop, tag), False
        try:
            with limited(self._seconds, self._stop):
                yield
        finally:
            self._stop = lambda: None
            remove(tag)


def explained(  # noqa: PLR0911 - one case for each kind of failure
    error: Exception, source: object, files: Iterable[Path] = ()
) -> Failure | SourceUnusable | None:
    """What an error of Spark means, by conditions and classes of causes, without a message."""
    names, state = _names(error)
    code = " ".join(filter(None, (names[0], state and f"SQLSTATE {state}")))

    def has(*words: str) -> bool:
        return any(name.startswith(words) for name in names)

    if has(*_NO_JAVA):
        words = (
            "Spark needs Java, which does not start: install Java 17 or newer, set JAVA_HOME, and"
            " open the study again"
        )
        return Failure(words, code)
    if has(*_NO_SESSION, *_LOST) or _is_stopped(source):
        return Failure(_NO_LONGER, code)
    if has(*_ABSENT):
        return SourceUnusable(
            "the source must name a table or view of the Spark session, or a path that exists and"
            f" ends in .parquet or .orc, got {_named(source)}; for a folder of another name give"
            " the DataFrame spark.read.parquet(folder)",
            code=code,
        )
    if has("UNABLE_TO_INFER_SCHEMA"):
        return SourceUnusable(
            f"the source must have files of rows in it, got {_named(source)}: write them", code=code
        )
    if has(*_NO_SYSTEM):
        words = (
            "Spark cannot use the file system of the source: add its package to the session, or"
            " correct the host"
        )
        return Failure(words, code)
    if (
        has(
            "INSUFFICIENT_PERMISSIONS",
            "PERMISSION",
            "AccessControlException",
            "AccessDeniedException",
        )
        or state == "42501"
    ):
        return Failure(
            "the session may not read the source: ask the catalogue's or file system's"
            " administrator",
            code,
        )
    if has(*_UNREADABLE) and (failure := why_unreadable(files)):
        return failure
    if has(*_UNREADABLE):
        words = (
            "a file under the source is gone, damaged, or not of the kind that its name says: write"
            " it again, and open"
        )
        return Failure(f"{words} the study again", code)
    if (
        has("JOB_CANCELLED", "OPERATION_CANCELED", "SPARK_JOB_CANCELLED", "SparkJobCancelled")
        or state == "HY008"
    ):
        return Failure(_BY_A_PERSON, code, Stopped)
    if has(
        "PYTHON_EXCEPTION", "PythonException", "USER_RAISED_EXCEPTION", "FAILED_EXECUTE_UDF"
    ) or state.startswith("22"):
        return Failure(_COMPUTATION, code)
    if has(
        "SparkOutOfMemoryError", "OutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY", "EXECUTOR_MEMORY"
    ):
        return Failure("Spark has too little memory for the statement: ask for fewer groups", code)
    if has("SparkException", "Py4JJavaError", "INTERNAL_ERROR") or names[1:]:
        return Failure(
            "a task of Spark failed: its log says why; ask again when the cluster is sound", code
        )
    return None


_NO_LONGER = (
    "there is no Spark session, or it has ended: create one, as in"
    " SparkSession.builder.getOrCreate(), and open the study again"
)
_BY_A_PERSON = "the statement was stopped by a person: ask again"
_COMPUTATION = (
    "a computation of the DataFrame or view that is the source fails: correct it, and use try_cast"
    " and functions that give NULL"
)


def _is_stopped(source: object) -> bool:
    """Whether the session of a frame has ended."""
    context = getattr(getattr(source, "sparkSession", None), "_sc", None)
    return context is not None and getattr(context, "_jsc", None) is None


def _names(error: Exception) -> tuple[list[str], str]:
    """The conditions and classes of an error and its causes, the best first, and its SQLSTATE."""
    names = [*_asked(error, "getCondition"), type(error).__name__]
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_DEPTH):
        if cause is None:
            break
        names += _asked(cause, "getCondition")
        try:
            names.append(str(cause.getClass().getSimpleName()))
            cause = cause.getCause()
        except Exception:  # the session may be gone
            break
    names.sort(key=lambda name: 0 if "_" in name else 2 if name in _GENERAL else 1)
    return names, "".join(_asked(error, "getSqlState"))


def _asked(error: Any, method: str) -> list[str]:
    """What a method says that not every error has: Java's may fail, whatever `hasattr` says."""
    try:
        return list(filter(None, [getattr(error, method)()]))
    except Exception:
        return []


@contextmanager
def without_values() -> Iterator[None]:
    """Within the block PySpark's log is silent in this thread: it would quote a refused value."""
    before, _silent.on = getattr(_silent, "on", False), True
    try:
        _add_filter()
        yield
    finally:
        _silent.on = before


_silent = threading.local()


@lru_cache
def _add_filter() -> None:
    with suppress(ImportError):
        # the loggers must be of this class, so PySpark makes them
        from pyspark.logger import PySparkLogger

        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            PySparkLogger.getLogger(name).addFilter(lambda _: not getattr(_silent, "on", False))


def _check(session: Any) -> None:
    """Refuse a session that fails the test, which runs once in a session, as one job."""
    if session in _CHECKED:
        return
    known_source = {SOURCE: session.sql(known_rows(SPARK))}
    check(
        f"Spark {session.version}",
        "use Spark 4 without changes to it",
        _schema(known_source[SOURCE])[0],
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
        raise InvalidParameter(
            "a source on Spark needs pyspark: pip install 'discreet[spark]'"
        ) from None
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    name = source.removeprefix("spark:")
    ending = name.rstrip("/").lower()
    # Spark would guess types from rows, and split lines at carriage returns
    if ending.endswith(_TEXTS):
        raise InvalidParameter(
            "a text file must be converted to Parquet for Spark, or read as a DataFrame"
        )
    kind = _format_of(name)
    return session.table(name) if kind is None else session.read.format(kind).load(name)


def _what_chose(source: Any, frame: Any) -> str:
    """What chooses the rows, as in `Engine.chosen`; only tables in these formats have them all."""
    if not isinstance(source, str):
        return by_filter("a DataFrame")
    name = source.removeprefix("spark:")
    if _format_of(name) is not None:
        is_part = is_part_of_folder(name) or _begins_in_part(name, frame)
        return PART_OF_FOLDER if is_part or any(map(is_linked_part, _local_files(frame))) else ""
    described = frame.sparkSession.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    # the facts come after the columns
    facts = {row["col_name"]: str(row["data_type"]).lower() for row in described}
    if facts.get("Type") in ("managed", "external") and facts.get("Provider") in _TABLE_FORMATS:
        return ""
    return by_filter("a view, or a table that Spark reads through another system")


def _begins_in_part(name: str, frame: Any) -> bool:
    """Whether a relative path begins in a folder such as year=2024, by its files' whole paths.

    What is below the path does not count: there are all parts of a table.
    """
    if re.match(r"/|[A-Za-z][\w+.-]*:", name):
        return False
    own = [part for part in name.split("/") if part not in {"", "."}]
    for address in frame.inputFiles():
        parts = unquote(urlsplit(address).path).split("/")
        starts = range(len(parts) - len(own) + 1)
        start = next(
            (at for at in starts if all(map(fnmatchcase, parts[at : at + len(own)], own))),
            len(parts),
        )
        if is_part_of_folder("/".join(parts[:start])):
            return True
    return False


def _format_of(name: str) -> str | None:
    """The format of the files under a path; None for the name of a table."""
    ending = name.rstrip("/").lower()
    return next((_FORMATS[suffix] for suffix in _FORMATS if ending.endswith(suffix)), None)


def _named(source: object) -> str:
    return quote(source.removeprefix("spark:")) if isinstance(source, str) else "a DataFrame"


def _schema(frame: Any) -> tuple[Schema, dict[str, str]]:
    """The schema of a frame, and the columns that cannot be used, with the reason."""
    columns, unread = {}, {}
    for field in frame.schema.fields:
        described = field.dataType.simpleString()
        word = re.split(r"[( ]", described)[0]
        if word == "decimal":
            columns[field.name] = ColumnType("number", described.endswith(",0)"), described)
        elif word in _KINDS:
            columns[field.name] = ColumnType(*_KINDS[word], described)
        else:
            unread[field.name] = unusable(
                field.name, word.partition("<")[0], EXPRESSIONS, "the DataFrame or view"
            )
    return MappingProxyType(columns), unread


def _types_of_files(frame: Any) -> dict[Path, Mapping[str, str]]:
    """The types of the columns of each local file under a frame; a changed file is read again."""
    found = {}
    for file in _local_files(frame):
        stat = file.stat()
        found[file] = _types_of(
            file, (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        )
    return found


@lru_cache(maxsize=2**14)
def _types_of(file: Path, _stamp: object) -> Mapping[str, str]:
    """The types of the columns of a Parquet file, as it writes them; other files have none here."""
    with file.open("rb") as opened:
        if opened.read(4) != b"PAR1":
            return {}
        read = pq.ParquetFile(opened)
        schema, checked = read.schema, str(read.metadata.created_by).startswith(_CHECKING)
    columns = [schema.column(index) for index in range(len(schema))]
    is_long = [
        str(part.logical_type).startswith("Decimal") and part.precision > _SHORT for part in columns
    ]
    return {
        part.path: (
            f"{part.physical_type} {part.length}"
            f" {part.logical_type}{_UNCHECKED if long and not checked else ''}"
        )
        for part, long in zip(columns, is_long, strict=True)
    }


def _local_files(frame: Any) -> Iterator[Path]:
    """The files on this machine under a frame."""
    for address in frame.inputFiles():
        parts = urlsplit(address)
        if parts.scheme in {"", "file"}:
            yield Path(unquote(parts.path))


def _unsafe(schema: Schema, files: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The columns on a value of which Spark may fail, and why: times or decimals in a file.

    All times, or all long decimals, of a frame: Spark does not say which. Only files on this
    machine are checked.
    """
    kinds = {kind for types in files for kind in types.values()}
    unsafe: dict[str, str] = {}
    if any(_MILLISECONDS.search(kind) for kind in kinds):
        unsafe |= {
            name: MILLISECONDS
            for name, column in schema.items()
            if column.described.startswith("timestamp")
        }
    if any(kind.endswith(_UNCHECKED) for kind in kinds):
        unsafe |= {
            name: _LONG for name, column in schema.items() if _LONG_DECIMAL.match(column.described)
        }
    return unsafe


def _key_types(keys: pa.Table) -> str:
    """The types of declared keys in Spark; a plain timestamp could be in the session's zone."""
    words = {
        "double": "double",
        "int64": "bigint",
        "int32": "int",
        "string": "string",
        "bool": "boolean",
    }
    return ", ".join(
        f"{field.name} {words.get(str(field.type), 'timestamp_ntz')}" for field in keys.schema
    )
