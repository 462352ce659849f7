"""How a process reaches the ledger's tables: connections, transactions, turns and failures.

A transaction waits for its turn (see `turns`): a file has one transaction at a time, a server has
one writer per study. If the wait for a turn or a lock takes too long, it ends with nothing spent. A
reader takes no lock on a server. In a file it blocks writers, so reads are short.

A server is identified by its system identifier and its timeline. If they change, the server is a
copy, or a standby that took over, and may lack the last entries. Errors of the database are
translated here; their text is never passed on, because it may quote a row.
"""

from __future__ import annotations

import errno
import math
import os
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import finalize

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, TimeoutError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool
from sqlalchemy.sql.selectable import ReturnsRows

from discreet.errors import DiscreetError, EngineFailed, InvalidParameter, LedgerDamaged, errno_code
from discreet.ledger.anchor import private_file, temporary_name
from discreet.ledger.chain import sha256_of
from discreet.ledger.refusals import damaged, other_tables, replaced, too_large
from discreet.ledger.schema import ANALYST, ENTRY, STUDY
from discreet.ledger.turns import PATIENCE, Busy, Turn
from discreet.unconnected import reason_of

_KEYS = 1 + sum(index.unique for index in ENTRY.indexes)

_SOUND = (
    "\nSELECT current_setting('fsync') = 'on',\n"  # noqa: S608
    "       (SELECT count(*) FROM pg_stat_replication AS standby\n"
    "        WHERE current_setting('synchronous_standby_names') = ''\n"
    "          AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')\n"
    "          AND NOT EXISTS (SELECT FROM pg_replication_slots"
    " WHERE active_pid = standby.pid AND slot_type = 'logical')),\n"
    f"       (SELECT count(*) FROM pg_index WHERE indrelid = '{ENTRY.name}'::regclass"
    " AND indisunique AND indisvalid),\n"
    f"       EXISTS (SELECT FROM {ANALYST.name})\n"
)
"""Whether commits reach the disk; the number of standbys that no commit waits for; the number of
unique keys that prevent the same entry twice, which a restored copy may lack; and a last column
that only shows that shares can be read.
"""

_SERVER = (
    "\nSELECT pg_catalog.pg_is_in_recovery(),\n"
    "       CASE WHEN pg_catalog.has_function_privilege("
    "'pg_catalog.pg_control_system()', 'execute')\n"
    "            THEN (SELECT system_identifier FROM pg_catalog.pg_control_system()) END,\n"
    "       CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL\n"
    "            WHEN pg_catalog.has_function_privilege("
    "'pg_catalog.pg_walfile_name(pg_lsn)', 'execute')\n"
    "            THEN pg_catalog.substr(pg_catalog.pg_walfile_name("
    "pg_catalog.pg_current_wal_insert_lsn()), 1, 8) END\n"
)
"""Whether this is a standby; the system identifier; the timeline, with which WAL names begin."""

_PROBE = (
    "\nSELECT CASE WHEN pg_catalog.has_function_privilege("
    "'pg_catalog.lo_from_bytea(oid, bytea)', 'execute')\n"
    "            THEN pg_catalog.lo_from_bytea(0, "
    "pg_catalog.convert_to(pg_catalog.repeat('x', %(room)s), 'UTF8')) END\n"
)
"""Writes a large object, which a rollback removes; it needs no right to make tables."""

_SPARE = 2**20
"""Bytes that must be free besides an answer, for the journal and the next entries."""

_KEEPALIVE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Timeouts in seconds (the last in milliseconds) that detect a lost server.

The address may set other values.
"""

_words: dict[tuple[str, ReturnsRows], tuple[str, Any]] = {}
"""The SQL of each statement for each database, and the type of its rows."""


class Database:
    """Where the tables are: a file, or a PostgreSQL server."""

    def __init__(self, where: Path | URL) -> None:
        self.is_file = isinstance(where, Path)
        self._engine = _sqlite(where) if isinstance(where, Path) else _postgresql(where)
        self._pid = os.getpid()
        self._failed = False
        self._driver: Any = self._engine.dialect.dbapi
        self._path = where if isinstance(where, Path) else Path()
        self._lock = (
            where.resolve().with_name(f"{where.resolve().name}.lock")
            if isinstance(where, Path)
            else None
        )
        self._own_turns: dict[str | None, Turn] = {}
        finalize(self, _dispose, self._engine, self._pid)

    def is_busy(self, study: str) -> bool:
        """Whether another thread writes to the study now: our last entry will be outdated."""
        return self._turn_of(study).taken

    @contextmanager
    def transaction(self, study: str | None = None) -> Iterator[Connection]:
        """A connection in a transaction, with the study's row locked; errors roll it back."""
        with self._turn(study), self._connected() as connection, connection.begin():
            self._begin(connection, "BEGIN IMMEDIATE" if self.is_file else _writing(study))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction for reading; it blocks nobody, except a file's writers."""
        turn = self._turn(None, spent=False) if self.is_file else self._translating(spent=False)
        with turn, self._connected() as connection, connection.begin():
            self._begin(
                connection,
                "BEGIN" if self.is_file else "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
            )
            yield connection

    def _begin(self, connection: Connection, words: str) -> None:
        if self.is_file:  # by the driver, which takes a fifth of the time
            connection.connection.dbapi_connection.execute(words)  # type: ignore[union-attr]
            if _file_number(str(self._engine.url.database)) != connection.info["file"]:
                raise replaced()
        else:
            connection.exec_driver_sql(words)

    def run(self, connection: Connection, statement: ReturnsRows, **values: Any) -> list[Any]:
        """The rows of a statement, a constant of a module, so that it is compiled to SQL once."""
        cursor, row = self._execute(connection.connection, statement, values)
        return [] if row is None else [row(*values) for values in cursor.fetchall()]

    def run_alone(self, statement: ReturnsRows, *, server: str, **values: Any) -> int:
        """How many rows a statement has changed in its own transaction; 0 on another server."""
        with self._turn(values["study"]):
            with self._connecting():
                connection = self._engine.raw_connection()
            with closing(connection):
                if connection.info.get("server", "") != server:
                    return 0
                try:
                    count: int = self._execute(connection, statement, values)[0].rowcount
                except self._driver.Error:
                    # else the pool would print the driver's words, if it is lost
                    connection.invalidate()
                    raise
                return count

    def _turn_of(self, study: str | None) -> Turn:
        key = None if self.is_file else study
        return self._own_turns.get(key) or self._own_turns.setdefault(key, Turn(self._lock))

    @contextmanager
    def _turn(self, study: str | None, *, spent: bool | None = None) -> Iterator[None]:
        with ExitStack() as stack:
            with _refusing(_of_turn):
                stack.enter_context(self._turn_of(study).taking())
            with self._translating(spent=spent):
                yield

    @contextmanager
    def _translating(self, *, spent: bool | None) -> Iterator[None]:
        """Within the block the database's errors are ours; `spent` is what they say where a commit
        may have been.
        """
        if self._failed:
            raise EngineFailed("the ledger's disk has failed: repair it and open the ledger again")
        if self._pid != os.getpid():  # a forked child: the connections belong to its parent
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        with _refusing(lambda failure: self._translate(failure, spent)):
            yield

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._connecting():
            connection = self._engine.connect()
        with connection:
            yield connection

    def _connecting(self) -> AbstractContextManager[None]:
        """Within the block nothing is sent but settings: nothing can be spent."""
        return _refusing(lambda failure: self._translate(failure, spent=False, connecting=True))

    def _execute(
        self, connection: PoolProxiedConnection, statement: ReturnsRows, values: dict[str, Any]
    ) -> Any:
        key = self._engine.dialect.name, statement
        if key not in _words:
            names = [column.name for column in statement.exported_columns]
            _words[key] = (
                str(statement.compile(self._engine)),
                (namedtuple("Row", names) if names else None),
            )
        words, row = _words[key]
        return connection.dbapi_connection.execute(words, values), row  # type: ignore[union-attr]

    def fingerprint(self, connection: Connection) -> str:
        """The hash of a file's tables, so that a changed CHECK is noticed; "" for a server."""
        if not self.is_file:
            return ""
        rows = connection.exec_driver_sql(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
        )
        return sha256(repr([tuple(row) for row in rows]).encode()).hexdigest()

    def check(self, connection: Connection) -> None:
        """Refuse a truncated file, or a server whose commits may be lost."""
        if self.is_file:
            pages, size = (
                connection.exec_driver_sql(f"PRAGMA page_{name}").scalar_one()
                for name in ("count", "size")
            )
            if pages * size != os.path.getsize(str(self._engine.url.database)):
                raise damaged()
            return
        syncs, unheard, keys, _ = connection.exec_driver_sql(_SOUND).one()
        if not syncs:
            raise EngineFailed(
                "the ledger's server runs with fsync off and may lose what was spent: set fsync"
                " = on"
            )
        if unheard:
            raise EngineFailed(
                "the ledger's server has a standby that no commit waits for, so a failover may lose"
                " what was spent: set synchronous_standby_names on the server"
            )
        if keys < _KEYS:
            raise other_tables()

    def refuse_full(self, room: int = 0) -> None:
        """Refuse a file whose disk lacks room for so many bytes; of a server it is not known."""
        if self.is_file and _room(self._path) < room + _SPARE:
            raise _unspent_full()

    def probe(self, room: int) -> None:
        """Refuse a database that cannot store so many bytes now; nothing stays written."""
        self.refuse_full(room)
        if self.is_file:
            with self.reading():
                _write_elsewhere(self._path, room)
        else:
            with self.transaction() as connection:
                connection.exec_driver_sql(_PROBE, {"room": room})
                connection.exec_driver_sql("ROLLBACK")

    def check_pages(self, connection: Connection) -> None:
        """Refuse a file whose pages or indexes are inconsistent; this reads the whole file."""
        if self.is_file and connection.exec_driver_sql(
            "PRAGMA integrity_check"
        ).scalars().all() != ["ok"]:
            raise damaged()

    def close(self) -> None:
        _dispose(self._engine, self._pid)

    def _translate(
        self, failure: BaseException | None, spent: bool | None, *, connecting: bool = False
    ) -> DiscreetError | None:
        """What an error of the database means; None if it is no error of the database."""
        if isinstance(failure, TimeoutError):  # all connections to the server are in use
            return _busy()
        # the input was checked, so the stored text is at fault
        if isinstance(failure, UnicodeError):
            return damaged()
        failure = failure.orig if isinstance(failure, DBAPIError) else failure
        if not isinstance(failure, self._driver.Error):
            return None
        if not self.is_file:
            return _of_server(failure, self._driver, spent, connecting=connecting)
        code = int(getattr(failure, "sqlite_errorcode", 0))
        self._failed |= code & 0xFF == _IOERR  # after a failed fsync no earlier write is reliable
        return _of_file(code & 0xFF, getattr(failure, "sqlite_errorname", ""), spent)


@contextmanager
def _refusing(meaning: Callable[[Exception], DiscreetError | None]) -> Iterator[None]:
    """Within the block an error that has a meaning is raised as one of ours."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception as failure:
        refusal = meaning(failure)
        if refusal is None:
            raise
        raise refusal from None


def _of_turn(failure: Exception) -> DiscreetError | None:
    """What it means that a turn did not come."""
    if isinstance(failure, Busy):
        return _busy()
    if not isinstance(failure, OSError):
        return None
    full = failure.errno == errno.ENOSPC
    return _of_file(_FULL if full else _CANTOPEN, errno_code(failure.errno or 0), spent=False)


def _writing(study: str | None) -> str:
    """The beginning of a transaction on a writing server, and the study's lock, in one message."""
    words = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO on"
    if study is None:
        return words
    # so that no name can inject SQL
    name = f"convert_from(decode('{study.encode().hex()}', 'hex'), 'UTF8')"
    return f"{words}; SELECT name FROM {STUDY.name} WHERE name = {name} FOR UPDATE"  # noqa: S608


def _dispose(engine: Engine, pid: int) -> None:
    """Close all connections, unless this is a forked child: they belong to its parent."""
    if pid == os.getpid():
        engine.dispose()


_SERVER_STATES = {
    "57014": "stopped the statement: ask again",
    "57P01": (
        "ended the connection, and did not answer: see whether it runs, and ask again with the same"
        " request_id"
    ),
    "53100": "has no disk space left: make room there and ask again with the same request_id",
    "53200": "has no memory left: see its log and ask again with the same request_id",
    "25P03": (
        "ended a transaction that had waited too long, and did not answer: ask again with the same"
        " request_id"
    ),
    "40P01": "had to choose between two transactions: ask again with the same request_id",
}
"""What a ledger's server does when it fails, by SQLSTATE."""


def _of_server(  # noqa: PLR0911 - one case for each kind of failure
    failure: Exception, driver: Any, spent: bool | None, *, connecting: bool
) -> DiscreetError:
    # https://www.postgresql.org/docs/current/errcodes-appendix.html
    state = getattr(failure, "sqlstate", None) or ""
    unheard = isinstance(
        failure, driver.OperationalError | driver.InterfaceError | driver.InternalError
    )
    code = f"SQLSTATE {state}" if state else type(failure).__name__
    match state:
        case "" if connecting:
            reason = reason_of(failure)
            return EngineFailed(
                f"the ledger's PostgreSQL server cannot be used: {reason.words}", code=reason.code
            )
        case "25006":  # READ ONLY SQL TRANSACTION
            return _read_only()
        case "54000":  # PROGRAM LIMIT EXCEEDED
            return too_large()
        case "55P03":  # LOCK NOT AVAILABLE
            return _busy(code)
        case "42501":  # INSUFFICIENT PRIVILEGE
            words = "does not permit this user to read and write its tables: ask its administrator"
            return EngineFailed(f"the ledger's database {words}", code=code)
        case _ if unheard:
            words = _SERVER_STATES.get(
                state, "did not answer: see whether it runs, and ask again with the same request_id"
            )
            return EngineFailed(f"the ledger's server {words}", spent=spent, code=code)
    return LedgerDamaged(
        "this database has no complete ledger that this user can see: connect to the right one as"
        " the right user, or put back a copy",
        code=code,
    )


_IOERR, _FULL, _CANTOPEN = 10, 13, 14


def _of_file(number: int, code: str, spent: bool | None) -> DiscreetError:  # noqa: PLR0911 - one case for each result
    """What a result of SQLite means: https://sqlite.org/rescode.html."""
    match number:
        case 5 | 6:  # BUSY, LOCKED
            return _busy(code)
        case 8 | 14:  # READONLY, CANTOPEN
            return LedgerDamaged(
                "the ledger cannot be written, or its file was moved while open: "
                "make the file, its folder and their disk writable, then open it again",
                code=code,
            )
        case 10:  # IOERR
            words = (
                "the ledger's disk failed: nothing is released; repair it and open the ledger again"
            )
            return EngineFailed(words, spent=spent, code=code)
        case 13:  # FULL
            words = "the ledger's disk is full: nothing is released; make room and ask again"
            return EngineFailed(words, spent=spent, code=code)
        case 7:  # NOMEM
            words = (
                "there is no memory for the ledger: nothing is released; ask again when there is"
            )
            return EngineFailed(words, spent=spent, code=code)
        case 18:  # TOOBIG
            return too_large()
    return LedgerDamaged(
        "this is not a complete ledger: put back the right file from a copy, "
        "or, if there was never a ledger here, create one with Ledger.open(…, new=True)",
        code=code,
    )


def server_of(connection: Connection) -> str:
    """The system identifier and the timeline of a server; "" for a file."""
    return str(connection.info.get("server", ""))


def _busy(code: str = "") -> EngineFailed:
    return EngineFailed(
        f"the ledger was busy for {PATIENCE} seconds: ask again when others have finished",
        code=code,
    )


def _room(path: Path) -> float:
    """The free bytes of the disk of a file; infinite where the system does not say."""
    try:
        disk = os.statvfs(path.resolve().parent)
    except OSError:
        return math.inf
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else math.inf


def _write_elsewhere(path: Path, room: int) -> None:
    """Write so many bytes to a new file beside another, wait for the disk, and remove it."""
    new = temporary_name(path.resolve())
    try:
        with os.fdopen(private_file(new), "wb") as file:
            for _ in range(0, room + 1, _SPARE):
                file.write(bytes(_SPARE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as failure:
        if failure.errno == errno.ENOSPC:
            raise _unspent_full() from None
        raise _of_file(_IOERR, errno_code(failure.errno or 0), spent=False) from None
    finally:
        new.unlink(missing_ok=True)


def _unspent_full() -> EngineFailed:
    return EngineFailed("the ledger's disk has too little room for the answer: make room")


def _read_only() -> EngineFailed:
    return EngineFailed(
        "the ledger's database is read-only: connect to the one that can be written",
        code="SQLSTATE 25006",
    )


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False},
        paramstyle="named",
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
    )

    def prepare(connection: Any, record: Any) -> None:
        connection.create_function("sha256", 1, sha256_of, deterministic=True)
        for pragma in (
            "journal_mode=TRUNCATE",
            "synchronous=FULL",
            "trusted_schema=OFF",
            "cell_size_check=ON",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()

        record.info["file"] = _file_number(str(path))

    event.listen(engine, "connect", prepare)
    return engine


def _file_number(path: str) -> tuple[int, int] | None:
    """The device and inode of a file; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _postgresql(url: URL) -> Engine:
    keepalive = {name: value for name, value in _KEEPALIVE.items() if name not in url.query}
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=keepalive,
            pool_size=4,
            max_overflow=12,
            pool_timeout=PATIENCE,
            use_native_hstore=False,  # the query for it costs a round trip
        )
    except (ImportError, NoSuchModuleError):
        raise InvalidParameter(
            "a PostgreSQL ledger needs psycopg: pip install 'discreet[postgres]'"
        ) from None
    except ArgumentError:
        raise InvalidParameter(
            "where must be an address such as postgresql://user@host/database"
        ) from None

    def prepare(connection: Any, record: Any) -> None:
        connection.autocommit = True  # we begin the transaction, with its settings, in one message
        connection.execute(
            "SET plan_cache_mode TO force_generic_plan;"  # every statement is a look-up by an index
            "SET default_transaction_isolation TO 'read committed'; SET synchronous_commit TO on;"
            # it would end a commit's wait for a standby as if the standby had answered
            "SET statement_timeout TO 0;"
            f"SET lock_timeout TO '{PATIENCE}s'; SET idle_in_transaction_session_timeout TO"
            f" '{PATIENCE}s'"
        )
        standby, system, timeline = connection.execute(_SERVER).fetchone()
        if standby:
            connection.close()
            raise _read_only()
        record.info["server"] = f"{system or ''}/{timeline or ''}"

    event.listen(engine, "connect", prepare)
    return engine
