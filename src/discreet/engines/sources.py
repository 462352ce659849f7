"""The sources of DuckDB: files, databases, frames, Arrow objects, relations, a custodian's SELECT.

Frames and Arrow objects, and SQLite tables, are read when the engine is created. All cells of CSV
and JSON lines are texts (see `textfiles`), and so are the columns of folders such as year=2024. A
text that is not valid UTF-8 is missing in every source: in files of rows already here, because a
custodian's SELECT may use it. Relations and views may read only tables: for other readers DuckDB
would guess types from rows, or fail if a row does not fit.

The columns and types of a source are compared before a question is paid for, and after its
statement has run: files may be replaced and tables altered meanwhile.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb as engine

from discreet.engines.array import safely
from discreet.engines.base import (
    LINES,
    MILLISECONDS,
    PART_OF_FOLDER,
    by_filter,
    is_linked_part,
    is_part_of_folder,
    refuse_columnless,
    refuse_twice,
    refuse_unread,
)
from discreet.engines.endings import CSV, DATABASES, JSON, PARQUET, ROWS, suffix_of
from discreet.engines.frames import arrow_table, what_chose
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sqlite import one_table, sqlite_table
from discreet.engines.textfiles import (
    Layout,
    Stream,
    csv_rows,
    file_list,
    folder_names,
    folder_terms,
    in_quotes,
    json_rows,
    literal,
    refuse_alike,
)
from discreet.engines.unreadable import DUCKDB, SQLITE
from discreet.engines.unusable import DUCKDB as DUCKDB_EXPRESSIONS
from discreet.engines.unusable import FRAME, unusable
from discreet.errors import InvalidParameter, SourceChanged
from discreet.outside import read_json

_NAMES = re.compile(r"\w+")
_LONGEST_REASON = 400
_DEEPEST = 900  # levels of a plan of DuckDB in JSON, for which Python has a limit, too
_CHANGED = "the files no longer have the columns and types that they had; open the study again"
_SERIES = frozenset({"RANGE", "GENERATE_SERIES", "UNNEST", "REPEAT"})
_TABLES = _SERIES | {
    *(
        "SEQ_SCAN",
        "COLUMN_DATA_SCAN",
        "DUMMY_SCAN",
        "EMPTY_RESULT",
        "CTE_SCAN",
        "REC_CTE_SCAN",
        "DELIM_SCAN",
    )
}
"""DuckDB's names for the readers of its own tables, of values in the statement, and of series."""
_RELATION = (
    "a relation must read tables of DuckDB: give the file, the frame or the SELECT itself as the"
    " source, or call materialize() on the relation"
)
_VIEW = (
    "a view must read tables of its own file: use the files that it reads as the source, or create"
    " a table, as in CREATE TABLE people AS FROM the_view"
)
_SELECT = (
    "a SELECT must not say how files are read: write FROM 'people.parquet', or FROM 'people.csv',"
    " whose cells are texts, as in TRY_CAST(age AS DOUBLE); JSON lines and frames must be the"
    " source themselves"
)

_WIDE = (
    "its decimals are stored in more bytes than their digits need, and DuckDB fails on a value that"
    " uses them; write the file again with pyarrow, DuckDB or Spark"
)
_ANY_LENGTH = 2**31
"""The length of byte arrays that have none in the schema."""

_FRAME = (
    "the frame cannot be read: its own code failed, with an error that may quote a row; give it as"
    " an Arrow table"
)


class Opened(NamedTuple):
    rows: engine.DuckDBPyRelation
    check: Callable[[], None] = lambda: None
    """Refuses a source that has other columns or types than when it was opened."""
    stamp: Callable[[], object] | None = lambda: None
    """What stays the same while the rows do; None if only a scan tells."""
    words: str = ""
    """Which rows of the source it is: the name of a table, or the SELECT."""
    live: bool = False
    """Whether other rows may be read than when it was opened."""
    typed: bool = True
    """Whether the source has types; text files have none."""
    unread: Mapping[str, str] = MappingProxyType({})
    """Columns that are not read, and why."""
    chosen: str = ""
    """What chooses the rows by their content, as in `Engine.chosen`."""


def is_select(source: object) -> bool:
    """Whether a source is a custodian's own SELECT."""
    if not issubclass(type(source), str):
        return False
    return str(source).lower().split(maxsplit=1)[:1] in (["select"], ["with"], ["from"])


def opened(
    source: Any, connection: engine.DuckDBPyConnection, layout: Layout, files: list[Path]
) -> Opened:
    """The rows of a source, and how to hash them; a source that cannot be opened is refused.

    The source's files are added to `files` before they are read.
    """
    kind = type(source)  # `isinstance`, and `match`, would run code of the data
    if issubclass(kind, engine.DuckDBPyRelation):
        return _open_relation(source)
    if is_select(source):
        return _open_query(source, connection, layout, files)
    if issubclass(kind, str | Path):
        return _whole([source], _open_path(str(source), connection, layout, files), files)
    if (
        issubclass(kind, list | tuple)
        and source
        and all(issubclass(type(item), str | Path) for item in source)
    ):
        files += [file for item in source for file in files_of(str(item))]
        return _whole(source, _open_files(files, connection, layout), files)
    (table, types), chosen = safely(source, _in_memory, InvalidParameter(_FRAME))
    unread = {name: unusable(name, kind, FRAME, "the frame") for name, kind in types.items()}
    refuse_columnless("the frame", table.column_names, unread)
    return Opened(connection.from_arrow(table), unread=unread, chosen=chosen)


def _in_memory(source: Any) -> tuple[tuple[Any, dict[str, str]], str]:
    """An object in memory as an Arrow table, and what chose its rows."""
    return arrow_table(source), what_chose(source)


def _whole(paths: Sequence[str | Path], found: Opened, files: Sequence[Path]) -> Opened:
    """The rows under some paths, of which a name such as year=2024 may choose some.

    It may be in the paths, or where only the whole path of a file has it: in the working folder, or
    behind a link.
    """
    is_part = any(is_part_of_folder(str(path)) for path in paths) or any(map(is_linked_part, files))
    return found._replace(chosen=found.chosen or (PART_OF_FOLDER if is_part else ""))


def _open_relation(relation: engine.DuckDBPyRelation) -> Opened:
    def check() -> None:
        def now() -> list[tuple[str, str]]:
            _refuse_scans(relation, _TABLES, _RELATION)
            return _types(relation.query(SOURCE, f"FROM {SOURCE}"))

        if _bound_types(now) != types:
            raise SourceChanged(
                "the relation has other columns or types than before; open the study again"
            )

    types = _types(relation)
    check()
    return Opened(relation, check, None, "relation", live=True, chosen=by_filter("a relation"))


def _bound_types(now: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]] | None:
    """The names and types of columns; None if a table or column is gone or of another type."""
    with suppress(engine.BinderException, engine.CatalogException):
        return now()
    return None


def _types(relation: Any) -> list[tuple[str, str]]:
    return list(zip(relation.columns, map(str, relation.types), strict=True))


def _refuse_scans(relation: Any, readers: Set[str], advice: str) -> None:
    """Refuse a relation whose plan has other readers, the leaves of the plan, than these."""
    plans = dict(relation.query(SOURCE, f"EXPLAIN (FORMAT json) FROM {SOURCE}").fetchall())
    parts = read_json(plans["physical_plan"], deepest=_DEEPEST)
    while parts:
        part = parts.pop()
        parts += part["children"]
        if not part["children"] and part["name"] not in readers:
            raise InvalidParameter(advice)


def _open_query(
    query: str, connection: engine.DuckDBPyConnection, layout: Layout, files: list[Path]
) -> Opened:
    statements = _as_written(lambda: connection.extract_statements(query))
    if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
        raise InvalidParameter("a source in SQL must be one SELECT")
    names = _files_named(query, connection)
    unread: dict[str, str] = {}

    def rows() -> dict[str, tuple[str, Mapping[str, Stream]]]:
        found = {name: files_of(str((layout.folder or Path()) / name)) for name in sorted(names)}
        files[:] = [file for parts in found.values() for file in parts]
        return {
            name: _rows_named(name, parts, connection, layout, unread)
            for name, parts in found.items()
        }

    def selected() -> Any:
        try:
            return _as_written(lambda: connection.sql(query))
        except InvalidParameter:
            refuse_unread(unread, _NAMES.findall(query))
            raise

    def check() -> None:
        if (
            _texts(rows()) != selects
            or _bound_types(lambda: _types(connection.sql(query))) != types
        ):
            raise SourceChanged(_CHANGED)

    found = rows()
    selects = _texts(found)
    for name, (select, streams) in found.items():
        _register(streams, connection)
        connection.execute(f"CREATE VIEW {in_quotes(name)} AS {select}")
    # no variable of the caller is a table of the SELECT
    connection.execute("SET python_enable_replacements = false")
    relation = selected()
    connection.execute("SET python_enable_replacements = true")
    types = _types(relation)
    _refuse_scans(relation, _TABLES | {"PYTHON_ARROW_SCAN", "READ_PARQUET"}, _SELECT)
    return Opened(relation, check, None, query, live=True, chosen=by_filter("a SELECT"))


def _texts(found: Mapping[str, tuple[str, object]]) -> dict[str, str]:
    return {name: select for name, (select, _) in found.items()}


def _register(streams: Mapping[str, Stream], connection: engine.DuckDBPyConnection) -> None:
    """Make streams known by their names, once; a name holds what a SELECT needs of a file."""
    for name, stream in streams.items():
        connection.register(name, stream)


def _rows_named(
    name: str,
    files: Sequence[Path],
    connection: engine.DuckDBPyConnection,
    layout: Layout,
    unread: dict[str, str],
) -> tuple[str, Mapping[str, Stream]]:
    """The SELECT of the rows of files that a custodian's SELECT names, and streams.

    Columns that the SELECT lacks are added to `unread`.
    """
    refuse_twice(files)
    if suffix_of(Path(name)) in CSV:
        return csv_rows(files, layout, False, within=True)
    select, missing = _parquet_rows(files, (), False, connection)
    unread |= missing
    return select, {}


def _as_written(work: Callable[[], Any]) -> Any:
    """The result of `work`; what DuckDB objects to in a SELECT, before it reads rows, is passed on.

    These messages are about the statement, its columns and types. Messages about values are not
    passed on.
    """
    try:
        return work()
    except (engine.ParserException, engine.BinderException, engine.CatalogException) as error:
        reason = str(error).partition("\n\nLINE ")[0].strip()
    reason = " ".join(reason.split())[:_LONGEST_REASON]
    raise InvalidParameter(f"the SELECT of the source cannot be read: {reason}")


def _files_named(query: str, connection: engine.DuckDBPyConnection) -> set[str]:
    """The CSV and Parquet files that a SELECT names, which are read like others of their kind."""
    [(tree,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    names: set[str] = set()
    parts = [read_json(tree, deepest=_DEEPEST)]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            name, kind = part.get("table_name") or "", part.get("type")
            function = part["function"]["function_name"] if kind == "TABLE_FUNCTION" else "range"
            suffix = suffix_of(Path(name)) if kind == "BASE_TABLE" else ""
            if function.upper() not in _SERIES or suffix in JSON:
                raise InvalidParameter(_SELECT)
            if suffix in CSV | PARQUET:
                names.add(name)
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return names


def _open_path(
    path: str, connection: engine.DuckDBPyConnection, layout: Layout, files: list[Path]
) -> Opened:
    file, _, table = (path, "", "") if os.path.exists(path) else path.rpartition("#")
    if file and Path(file).is_file():
        files.append(Path(file))
        head = b""
        if suffix_of(Path(file)) not in ROWS:
            with Path(file).open("rb") as opened:
                head = opened.read(16)
        if head == SQLITE:
            found = _Files(files, _refuse_changed)
            rows, name, unread, kind = sqlite_table(Path(file), table)
            chosen = "" if kind == "table" else by_filter(f"a {kind}")
            return Opened(
                connection.from_arrow(rows),
                found.check,
                found.stamp,
                name,
                unread=unread,
                chosen=chosen,
            )
        if head[8:12] == DUCKDB:
            return _open_database(Path(file), table, connection)
        if table or suffix_of(Path(file)) in DATABASES:
            raise InvalidParameter(
                f"{Path(file).name} must be a database of SQLite or DuckDB, and is none, or is"
                " encrypted: name another file, or export the table to Parquet"
            )
    if file and table and Path(file).is_dir():
        raise InvalidParameter(
            f"{Path(file).name} must be a database of SQLite or DuckDB, and is a folder: name a"
            " file"
        )
    files[:] = files_of(path)
    return _open_files(files, connection, layout)


def files_of(path: str) -> list[Path]:
    """The files of a path: the file, data files in and below a folder, or those of a glob."""
    root = Path(path)
    if root.is_dir():
        os.listdir(root)  # else a folder that may not be read looks empty
        files = [
            file
            for file in root.rglob("*")
            if file.is_file() and not file.name.startswith((".", "_"))
        ]
        files = [file for file in files if suffix_of(file) in ROWS]
        if not files:
            raise InvalidParameter(
                f"the folder {root.name} must have CSV, JSON lines or Parquet in it, and has none"
            )
    elif root.is_file():
        files = [root]
    else:
        files = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    try:
        "".join(map(str, files)).encode()
    except UnicodeError:
        raise InvalidParameter(
            "the names of files and folders must be UTF-8, and one is not; rename it"
        ) from None
    if not files:
        raise InvalidParameter(
            f"the source must be a file, a folder or a glob that names files, got {path!r}: there"
            " is no such file"
        )
    return sorted(files)


def _open_files(
    files: Sequence[Path], connection: engine.DuckDBPyConnection, layout: Layout
) -> Opened:
    refuse_twice(files)
    suffixes = {suffix_of(file) for file in files}
    empty = [file.name for file in files if not file.stat().st_size]
    if empty and not suffixes <= JSON:  # of JSON it is a table without rows
        raise InvalidParameter(
            f"a file must name its columns, and {empty[0]} is empty; write it again"
        )
    hive = all("=" in file.parent.name for file in files)
    text = not suffixes <= PARQUET

    known: set[str] = set()

    def read() -> tuple[str, dict[str, str], list[tuple[str, str]]]:
        """The SELECT of the rows, the columns that are not read, and the types of the others."""
        streams: Mapping[str, Stream] = {}
        unread: dict[str, str] = {}
        if not text:
            select, unread = _parquet_rows(files, layout.columns, hive, connection)
        elif suffixes <= CSV:
            select, streams = csv_rows(files, layout, hive)
        elif suffixes <= JSON:
            select, streams = json_rows(files, layout.columns, hive)
        else:
            kinds = ", ".join(sorted(suffixes))
            raise InvalidParameter(f"the files must all be CSV, JSON lines or Parquet, got {kinds}")
        _register(
            {name: stream for name, stream in streams.items() if name not in known}, connection
        )
        known.update(streams)
        return select, unread, _types(connection.sql(select))

    def refuse_others() -> None:
        """Refuse files that are no longer accepted, or have other columns or types."""
        if read() != first_read:
            raise SourceChanged(_CHANGED)

    if layout.encoding not in (None, "utf-8") and not suffixes <= CSV:
        raise InvalidParameter(
            "encoding: only CSV has it; JSON lines are UTF-8, and Parquet has its own; leave it out"
        )
    found = _Files(files, refuse_others)
    first_read = read()
    return Opened(
        connection.sql(first_read[0]),
        found.check,
        found.stamp,
        live=True,
        typed=not text,
        unread=first_read[1],
        chosen=LINES if text else "",
    )


def _parquet_rows(
    files: Sequence[Path], used: Sequence[str], hive: bool, connection: engine.DuckDBPyConnection
) -> tuple[str, dict[str, str]]:
    """The SELECT of the rows of Parquet files, and the columns that are not read.

    Files with different types are refused, because a row may not fit the type of another file. A
    time in milliseconds may exceed the microseconds of DuckDB, which then fails: such columns, and
    nested columns, are not read. The columns of folders are texts.

    DuckDB's reader has no way to tell a text that is not valid UTF-8: it fails, writes a question
    mark for each wrong byte, or leaves these out. So texts are read in both of the last two ways,
    side by side, and are missing where these differ.
    """
    names, folders = file_list(files), folder_terms(hive)
    fields = (
        "file_name, name, num_children, type, type_length, converted_type, scale, precision,"
        " logical_type"
    )
    schemas = f"SELECT {fields} FROM parquet_schema({names})"  # noqa: S608
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for file, *part in connection.execute(schemas).fetchall():
        parts.setdefault(file, []).append(tuple(part))
    if len({tuple(sorted(map(repr, part[1:]))) for part in parts.values()}) > 1:
        raise InvalidParameter(
            "the Parquet files must have the same columns and types; write them with one schema"
        )
    first = next(iter(parts.values()))
    own = _outer_names([part[:2] for part in first])
    refuse_alike([*own, *(name for name in folder_names(files[0]) if hive and name not in own)])
    times = {part[0] for part in first if "MILLIS=MilliSeconds" in str(part[-1])}
    lengths = {
        name: int(length or _ANY_LENGTH)
        for name, _, kind, length, *_ in first
        if "BYTE_ARRAY" in str(kind)
    }
    replaced, shortened = (
        f"read_parquet({names}, utf8_validation = '{way}', {folders})"
        for way in ("replace", "ignore")
    )
    columns, unread, texts = [], {}, []
    for name, kind in _types(connection.sql(f"FROM {replaced}")):
        column = in_quotes(name)
        if name in times and kind.startswith("TIMESTAMP"):
            unread[name] = MILLISECONDS
        elif kind.startswith("DECIMAL(") and lengths.get(name, 0) > _room(kind):
            unread[name] = _WIDE
        elif kind.endswith((")", "]")) and not kind.startswith(("DECIMAL(", "ENUM(")):
            word = "list" if kind.endswith("]") else kind.partition("(")[0].lower()
            unread[name] = unusable(
                name, word, DUCKDB_EXPRESSIONS, "the file, when you write it again"
            )
        elif kind == "VARCHAR" and name in own and (not used or name in used):
            texts.append(name)
            # not by their lengths: DuckDB takes the length of a text from the file if nothing else
            # of it is used
            same = f"replaced.{column} = shortened.{column}"
            columns.append(f"CASE WHEN {same} THEN replaced.{column} END AS {column}")
        else:
            columns.append(f"replaced.{column}")
    refuse_columnless(files[0].name, columns, unread)
    beside = f" POSITIONAL JOIN {shortened} AS shortened" if texts else ""
    return f"SELECT {', '.join(columns)} FROM {replaced} AS replaced{beside}", unread  # noqa: S608


def _room(decimal: str) -> int:
    """The bytes of a decimal type in DuckDB."""
    digits = int(decimal.removeprefix("DECIMAL(").partition(",")[0])
    return next(room for most, room in ((4, 2), (9, 4), (18, 8), (38, 16)) if digits <= most)


def _outer_names(parts: Sequence[tuple[Any, ...]]) -> list[str]:
    """The top-level columns of a Parquet schema, whose names are listed depth first."""
    names: list[str] = []
    within = [1]  # the number of remaining names at each depth
    for name, children in parts:
        if len(within) == 2:
            names.append(name)
        within[-1] -= 1
        within.append(children or 0)
        while within and not within[-1]:
            within.pop()
    return names


def _open_database(file: Path, table: str, connection: engine.DuckDBPyConnection) -> Opened:
    files = _Files([file], _refuse_changed)
    connection.execute(f"ATTACH {literal(str(file))} AS source (READ_ONLY)")
    rows = connection.execute(
        "SELECT schema_name, table_name, '' FROM duckdb_tables() WHERE database_name = 'source'"
        " UNION ALL SELECT schema_name, view_name, 'a view' FROM duckdb_views() WHERE database_name"
        " = 'source' AND NOT internal"
    ).fetchall()
    names = {
        name if schema == "main" else f"{schema}.{name}": (schema, name, view)
        for schema, name, view in rows
    }
    schema, name, view = names[one_table(table, sorted(names))]
    relation = connection.sql(f"SELECT * FROM source.{in_quotes(schema)}.{in_quotes(name)}")  # noqa: S608
    _refuse_scans(relation, _TABLES, _VIEW)
    chosen = by_filter(view) if view else ""
    return Opened(relation, files.check, files.stamp, f"{schema}.{name}", chosen=chosen)


def _refuse_changed() -> None:
    """Refuse a database whose rows are as when it was opened, although its file is another now."""
    raise SourceChanged("the database has changed since it was opened; open the study again")


def stamp_of(files: Sequence[Path]) -> object:
    """What changes when one of the files is replaced or written."""
    stats = [file.stat() for file in files]
    return [(stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats]


class _Files:
    """Files that may be replaced or grow; `refuse` may refuse them when they have."""

    def __init__(self, files: Sequence[Path], refuse: Callable[[], None]) -> None:
        self.files, self.refuse = list(files), refuse
        self.checked = self.stamp()

    def stamp(self) -> object:
        beside = [Path(f"{file}{end}") for file in self.files for end in ("-wal", ".wal")]
        return stamp_of([*self.files, *(file for file in beside if file.exists())])

    def check(self) -> None:
        stamp = self.stamp()
        if self.checked != stamp:
            self.refuse()
            self.checked = stamp
