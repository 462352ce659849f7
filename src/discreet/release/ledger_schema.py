"""The ledger's tables, and the one kind of transaction that touches them.

One schema for SQLite and PostgreSQL. `entry` is only ever added to: each row holds the hash of the row before it and
what the study has spent so far, which the schema itself keeps within the total. A row's number is unique, so even
without any lock two writers could not both add the next one. `analyst` holds what each share has come to.

    SQLite       BEGIN IMMEDIATE: the writer's lock before the first read. journal_mode=TRUNCATE and
                 synchronous=FULL: a commit is on the disk, in one file; there is no -wal to lose.
    PostgreSQL   SELECT … FOR UPDATE of the study's row before any other read; synchronous_commit on.
                 Or one statement that does all of it: see ledger_statements.

In one process one transaction runs at a time, and no fork happens inside one: SQLite's locks do not survive a fork.
What a database says is turned into our errors here; its text is never passed on, for it may quote a row.
"""

from __future__ import annotations

import os
import threading
from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool
from sqlalchemy.sql.selectable import ReturnsRows

from discreet.errors import DiscreetError, EngineFailed, InvalidParameter, LedgerDamaged

VERSION = 1
"""Of the tables and of the hash; a ledger of another version is refused."""

_PATIENCE = 120
"""Seconds that a transaction waits for its turn before it gives up, with nothing spent."""

_UNITS = Integer().with_variant(BigInteger(), "postgresql")  # 10⁶ ε are 10¹⁵ units

_tables = MetaData()


def _table(name: str, *parts: Any) -> Table:
    return Table(f"discreet_{name}", _tables, *parts, sqlite_strict=True, sqlite_with_rowid=False)


LEDGER = _table(
    "ledger",
    Column("id", Text, primary_key=True),
    Column("version", Integer, nullable=False),
)

STUDY = _table("study", Column("name", Text, primary_key=True))
"""The row that PostgreSQL locks; it never changes."""

ANALYST = _table(
    "analyst",
    Column("study", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("allotted", _UNITS, nullable=False),
    Column("spent", _UNITS, nullable=False),
    PrimaryKeyConstraint("study", "name"),
    CheckConstraint("spent >= 0 AND spent <= allotted AND allotted > 0", name="discreet_analyst_within_allotted"),
)

ENTRY = _table(
    "entry",
    Column("study", Text, nullable=False),
    Column("number", _UNITS, nullable=False),
    Column("kind", Text, nullable=False),
    Column("request_id", Text),
    Column("analyst", Text),
    Column("query", Text),
    Column("data_version", Text),
    Column("question", Text),
    Column("epsilon", Text),
    Column("amount", _UNITS, nullable=False),
    Column("spent", _UNITS, nullable=False),
    Column("total", _UNITS, nullable=False),
    Column("answer", LargeBinary),
    Column("time", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("study", "number"),
    CheckConstraint("spent >= 0 AND spent <= total AND total > 0", name="discreet_entry_within_total"),
    CheckConstraint("number > 0 AND length(before) = 64 AND length(hash) = 64", name="discreet_entry_chained"),
    CheckConstraint(
        "kind IN ('create', 'allot', 'spend', 'repeat', 'answer', 'restore')", name="discreet_entry_known_kind"
    ),
    CheckConstraint(
        "amount >= 0 AND (kind = 'restore' OR (kind IN ('repeat', 'answer')) = (amount = 0))",
        name="discreet_entry_amount",
    ),
    CheckConstraint(
        "(kind IN ('spend', 'repeat', 'answer')) = (request_id IS NOT NULL)"
        " AND (request_id IS NULL) = (question IS NULL) AND (request_id IS NULL) = (epsilon IS NULL)"
        " AND (kind IN ('spend', 'repeat')) = (query IS NOT NULL) AND (kind = 'answer') = (answer IS NOT NULL)",
        name="discreet_entry_complete",
    ),
)

REQUESTS = text("kind IN ('spend', 'repeat')")
Index(
    "discreet_one_request",
    ENTRY.c.study,
    ENTRY.c.request_id,
    unique=True,
    sqlite_where=REQUESTS,
    postgresql_where=REQUESTS,
)

QUESTIONS = text("kind IN ('spend', 'answer')")
Index(
    "discreet_one_spend_one_answer",
    ENTRY.c.study,
    ENTRY.c.question,
    ENTRY.c.epsilon,
    ENTRY.c.kind,
    unique=True,
    sqlite_where=QUESTIONS,
    postgresql_where=QUESTIONS,
)

_UNIQUE = f"SELECT count(*) FROM pg_index WHERE indrelid = '{ENTRY.name}'::regclass AND indisunique AND indisvalid"  # noqa: S608
"""Counts the keys that keep two from adding the same entry: a copy may have been put back without them."""

_words: dict[tuple[str, ReturnsRows], tuple[str, Any]] = {}
"""The SQL of each statement for each database, and the type of its rows."""

_one_at_a_time = threading.Lock()
os.register_at_fork(
    before=_one_at_a_time.acquire,
    after_in_parent=_one_at_a_time.release,
    after_in_child=_one_at_a_time.release,
)


class Database:
    """Where the tables are: a file, or a PostgreSQL server."""

    def __init__(self, where: Path | URL) -> None:
        self._engine = _sqlite(where) if isinstance(where, Path) else _postgresql(where)
        self._pid = os.getpid()
        self._failed = False
        self._driver: Any = self._engine.dialect.dbapi
        event.listen(self._engine, "begin", self._on_begin)

    @property
    def is_file(self) -> bool:
        """Whether this is SQLite."""
        return self._engine.dialect.name == "sqlite"

    @property
    def is_busy(self) -> bool:
        """Whether another thread has its turn now; then whatever is known of the last entry will be old."""
        return _one_at_a_time.locked()

    @contextmanager
    def transaction(self, study: str | None = None) -> Iterator[Connection]:
        """A connection that has begun, with the study's row locked; it commits, or rolls back on any exception."""
        with self._turn(), self._engine.connect().execution_options(study=study) as connection, connection.begin():
            yield connection

    def run(self, connection: Connection, statement: ReturnsRows, **values: Any) -> list[Any]:
        """The rows of a statement that is a constant of a module: turned into SQL once, then the driver's own speed."""
        cursor, row = self._execute(connection.connection, statement, values)
        return [] if row is None else [row(*found) for found in cursor.fetchall()]

    def run_alone(self, statement: ReturnsRows, **values: Any) -> int:
        """How many rows were changed by a statement that is a transaction of its own, and has committed."""
        with self._turn(), closing(self._engine.raw_connection()) as connection:
            count: int = self._execute(connection, statement, values)[0].rowcount
            return count

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with _one_at_a_time:
            if self._failed:
                raise EngineFailed("the ledger's disk failed before; mend it and open the ledger again")
            if self._pid != os.getpid():  # a forked child: the connections are its parent's
                self._engine.dispose(close=False)
                self._pid = os.getpid()
            try:
                yield
            except DBAPIError as failure:
                raise self._translated(failure.orig) from None
            except self._driver.Error as failure:
                raise self._translated(failure) from None
            except UnicodeError:  # what comes in was checked, so this is what is stored
                raise _not_a_ledger() from None

    def _execute(self, connection: PoolProxiedConnection, statement: ReturnsRows, values: dict[str, Any]) -> Any:
        """A cursor, and the type of its rows."""
        key = self._engine.dialect.name, statement
        if key not in _words:
            _words[key] = str(statement.compile(self._engine)), _row_type(statement)
        words, row = _words[key]
        return connection.dbapi_connection.execute(words, values), row  # type: ignore[union-attr]

    def create_tables(self, connection: Connection) -> None:
        """Make the tables, where there are none."""
        _tables.create_all(connection, checkfirst=False)

    def fingerprint(self, connection: Connection) -> str:
        """The hash of the table definitions of a file, so that a changed CHECK does not go unseen; "" elsewhere."""
        if not self.is_file:
            return ""
        rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
        return sha256(repr([tuple(row) for row in rows]).encode()).hexdigest()

    def check(self, connection: Connection) -> None:
        """Refuse a file whose pages are damaged, or a server that does not keep what it commits."""
        if self.is_file:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            pages, size = (connection.exec_driver_sql(f"PRAGMA page_{what}").scalar_one() for what in ("count", "size"))
            if found != ["ok"] or pages * size != os.path.getsize(str(self._engine.url.database)):
                raise LedgerDamaged("the ledger's file is damaged: put back a copy that is whole")
            return
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")  # one moment for all reads
        if connection.exec_driver_sql("SHOW fsync").scalar() != "on":
            raise EngineFailed("the ledger's server runs with fsync off and may forget: set fsync = on")
        if connection.exec_driver_sql(_UNIQUE).scalar_one() < 1 + len(ENTRY.indexes):
            raise LedgerDamaged("the ledger's tables are not the ones it was made with: put back a copy that is whole")

    def close(self) -> None:
        """Let go of all connections."""
        if self._pid == os.getpid():
            self._engine.dispose()

    def _on_begin(self, connection: Connection) -> None:
        study = connection.get_execution_options()["study"]
        if self.is_file:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        words = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO on"
        if study is not None:  # in the same message; in hexadecimal, so that no name can be anything but a name
            name = f"convert_from(decode('{study.encode().hex()}', 'hex'), 'UTF8')"
            words += f"; SELECT name FROM {STUDY.name} WHERE name = {name} FOR UPDATE"  # noqa: S608
        connection.exec_driver_sql(words)

    def _translated(self, failure: BaseException | None) -> DiscreetError:
        if not self.is_file and isinstance(failure, self._driver.OperationalError | self._driver.InterfaceError):
            return EngineFailed(
                "the ledger's server did not answer: nothing is released; ask again with the same request id"
            )
        code = getattr(failure, "sqlite_errorcode", 0) & 0xFF  # https://sqlite.org/rescode.html
        match code:
            case 5 | 6:  # BUSY, LOCKED
                return EngineFailed(f"the ledger was busy for {_PATIENCE} seconds: nothing was spent; ask again")
            case 8 | 14:  # READONLY, CANTOPEN
                return LedgerDamaged(
                    "the ledger cannot be written, or its file was moved while open: "
                    "make the file and its folder writable, then open it again"
                )
            case 10:  # IOERR: after a failed fsync nothing that was written can be relied on
                self._failed = True
                return EngineFailed("the ledger's disk failed: nothing is released; mend it and open the ledger again")
            case 7 | 13:  # NOMEM, FULL
                return EngineFailed("the ledger's disk is full: nothing is released; make room and ask again")
        return _not_a_ledger()


def _row_type(statement: ReturnsRows) -> Any:
    """A tuple with names for the rows of a statement; None if it gives none."""
    names = [column.name for column in statement.exported_columns]
    return namedtuple("Found", names) if names else None


def _not_a_ledger() -> LedgerDamaged:
    return LedgerDamaged(
        "this is not a whole ledger: put back the right file from a copy, "
        "or, if none was ever here, make one with Ledger.open(…, new=True)"
    )


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": _PATIENCE, "isolation_level": None, "check_same_thread": False},
        paramstyle="named",
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
    )

    def prepare(connection: Any, _: object) -> None:
        for pragma in ("journal_mode=TRUNCATE", "synchronous=FULL", "trusted_schema=OFF", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    event.listen(engine, "connect", prepare)
    return engine


def _postgresql(url: URL) -> Engine:
    try:
        engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_size=1, max_overflow=0)
    except (ImportError, NoSuchModuleError):
        raise InvalidParameter("a PostgreSQL ledger needs psycopg: pip install 'discreet[postgres]'") from None

    def prepare(connection: Any, _: object) -> None:
        connection.autocommit = True  # the transaction is begun by us, with its settings, in one message
        connection.execute(
            "SET plan_cache_mode TO force_generic_plan;"  # every statement is a look-up by an index
            "SET default_transaction_isolation TO 'read committed'; SET synchronous_commit TO on"
        )

    event.listen(engine, "connect", prepare)
    return engine
