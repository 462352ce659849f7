"""A file that cannot be read says why, what to do and whether ε is spent, and shows no row (TRUST
11, 44).
"""

import itertools
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
from contextlib import closing

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import Policy, Study
from discreet.engines import sqlite
from discreet.engines.choose import engine_of
from discreet.engines.textfiles import Layout
from failures import CANARY, REFUSED, disk, fill, nobody, told

_numbers = itertools.count()
ROWS = range(20_000)


@pytest.fixture(autouse=True)
def _alone(own_duckdb):
    """With a DuckDB of its own for each engine."""


@pytest.fixture
def folder(in_memory):
    """A folder that others may enter, too, with the same rows in each kind of file."""
    in_memory.chmod(0o755)
    parquet.write_table(
        pa.table({"x": list(ROWS), "name": [CANARY] * len(ROWS)}), in_memory / "t.parquet"
    )
    (in_memory / "t.csv").write_text(
        "x,name\n" + "".join(f"{number},{CANARY}\n" for number in ROWS)
    )
    (in_memory / "t.jsonl").write_text(
        "".join(f'{{"x": {number}, "name": "{CANARY}"}}\n' for number in ROWS)
    )
    with duckdb.connect(str(in_memory / "t.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT range AS x, '{CANARY}' AS name FROM range({len(ROWS)})"  # noqa: S608
        )
    with closing(sqlite3.connect(in_memory / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x INTEGER, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(number, CANARY) for number in ROWS])
    return in_memory


KINDS = ["t.parquet", "t.csv", "t.jsonl", "t.duckdb", "t.db"]
COLUMNS = Layout(("x",))


def opened(file):
    return engine_of(str(file), COLUMNS)


def changed(file, **bytes_at):
    """The file with other bytes at some places."""
    content = bytearray(file.read_bytes())
    for place, values in bytes_at.items():
        content[int(place[1:]) : int(place[1:]) + len(values)] = values
    file.write_bytes(content)


def newer_duckdb(file):
    """The file with a later version of the storage, and the checksum that it must have."""
    content = bytearray(file.read_bytes())
    content[12:20] = struct.pack("<Q", 5000)
    sum_ = 5381
    for (word,) in struct.iter_unpack("<Q", content[8:4096]):
        sum_ ^= word * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    content[:8] = struct.pack("<Q", sum_)
    file.write_bytes(content)


def encrypted_duckdb(file):
    file.unlink()
    with duckdb.connect() as connection:
        connection.execute("SET force_mbedtls_unsafe = 'true'")
        connection.execute(
            f"ATTACH '{file}' AS e (ENCRYPTION_KEY '{CANARY}'); CREATE TABLE e.t AS SELECT 1 AS x;"
            " DETACH e"
        )


def encrypted_parquet(file):
    with duckdb.connect() as connection:
        connection.execute(
            "SET force_mbedtls_unsafe = 'true'; PRAGMA add_parquet_key('k', '0123456789112345')"
        )
        connection.execute(
            f"COPY (SELECT 1 AS x) TO '{file}' (ENCRYPTION_CONFIG {{footer_key: 'k'}})"
        )


def cut(size):
    return lambda file: os.truncate(file, size if size > 0 else file.stat().st_size + size)


CUT = "is shorter than it says, since its copying or writing was cut off: copy or write it again"
NO_PARQUET = "is no Parquet file: write it as Parquet, or give it the ending of what it is"
NO_BASE = (
    "must be a database of SQLite or DuckDB, and is none, or is encrypted: name another file, or"
    " export"
)
DAMAGED = "the DuckDB file of the source is damaged or cut: put back an intact copy"

BROKEN = {
    "a Parquet file without its end": ("t.parquet", cut(-100), CUT, False),
    "half a Parquet file": ("t.parquet", cut(5000), CUT, False),
    "three bytes of Parquet": ("t.parquet", cut(3), NO_PARQUET, False),
    "text called Parquet": (
        "t.parquet",
        lambda file: file.write_text(CANARY * 9),
        NO_PARQUET,
        False,
    ),
    "zeros called Parquet": (
        "t.parquet",
        lambda file: file.write_bytes(bytes(999)),
        NO_PARQUET,
        False,
    ),
    "an encrypted Parquet file": (
        "t.parquet",
        encrypted_parquet,
        "is encrypted: name a copy without encryption",
        False,
    ),
    "an empty Parquet file": (
        "t.parquet",
        lambda file: file.write_bytes(b""),
        "t.parquet is empty; write it",
        REFUSED,
    ),
    "an empty CSV": (
        "t.csv",
        lambda file: file.write_bytes(b""),
        "t.csv is empty; write it again",
        REFUSED,
    ),
    "a cut DuckDB file": ("t.duckdb", cut(20_000), DAMAGED, False),
    "the head of a DuckDB file": ("t.duckdb", cut(30), CUT, False),
    "a damaged DuckDB file": (
        "t.duckdb",
        lambda file: changed(file, _13000=os.urandom(500)),
        DAMAGED,
        False,
    ),
    "a newer DuckDB file": (
        "t.duckdb",
        newer_duckdb,
        "of a newer version of DuckDB: upgrade duckdb",
        False,
    ),
    "an encrypted DuckDB file": (
        "t.duckdb",
        encrypted_duckdb,
        "is encrypted: name a copy without encryption",
        False,
    ),
    "text called DuckDB": (
        "t.duckdb",
        lambda file: file.write_text(CANARY),
        f"t.duckdb {NO_BASE}",
        REFUSED,
    ),
    "text called SQLite": (
        "t.db#t",
        lambda file: file.write_text(CANARY),
        f"t.db {NO_BASE}",
        REFUSED,
    ),
    "an encrypted SQLite file": (
        "t.db#t",
        lambda file: file.write_bytes(os.urandom(9000)),
        NO_BASE,
        REFUSED,
    ),
    "an empty SQLite file": ("t.db", lambda file: file.write_bytes(b""), NO_BASE, REFUSED),
    "a cut SQLite file": ("t.db", cut(9000), CUT, False),
    "the head of an SQLite file": ("t.db", cut(16), CUT, False),
    "a damaged SQLite file": (
        "t.db",
        lambda file: changed(file, _8192=os.urandom(4000)),
        "the SQLite file of the source is damaged: check it with PRAGMA integrity_check",
        False,
    ),
    "a newer SQLite file": (
        "t.db",
        lambda file: changed(file, _18=b"\x09\x09"),
        "of a newer version of SQLite",
        False,
    ),
    "a newer SQLite schema": (
        "t.db",
        lambda file: changed(file, _47=b"\x09"),
        "of a newer version of SQLite",
        False,
    ),
}


@pytest.mark.parametrize("situation", BROKEN)
def test_a_broken_file_says_what_it_is(folder, situation):
    name, harm, says, spent = BROKEN[situation]
    harm(folder / name.partition("#")[0])
    told(lambda: opened(folder / name), says, spent=spent, code=None if spent is REFUSED else ".")


@pytest.mark.parametrize("kind", KINDS)
def test_control_an_unbroken_file_is_read(folder, kind):
    assert "x" in opened(folder / kind).schema()


ABSENT = {
    "nothing.parquet": (
        "must be a file, a folder or a glob that names files, got .*: there is no such file"
    ),
    "nothing.db#t": "must be a file, a folder or a glob .*: there is no such file",
    "t.db#nothing": "must name a table, as in file.db#table, got 'nothing'; the file has t",
    "t.duckdb#nothing": "must name a table, as in file.db#table, got 'nothing'; the file has t",
    "empty": "the folder empty must have CSV, JSON lines or Parquet in it, and has none",
    "empty#t": "empty must be a database of SQLite or DuckDB, and is a folder: name a file",
    "t.weird": "the files must all be CSV, JSON lines or Parquet, got .weird",
    "SELECT * FROM 'nothing.parquet'": (
        "must be a file, a folder or a glob that names files, got 'nothing.parquet'"
    ),
}


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_not_there_is_refused_by_name(folder, name):
    (folder / "empty").mkdir()
    (folder / "t.weird").write_text("x")
    told(
        lambda: opened(name if name.startswith("SELECT") else folder / name),
        ABSENT[name],
        spent=REFUSED,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_may_not_be_read_says_so_with_its_errno(folder, kind):
    (folder / kind).chmod(0o600)
    opened(folder / kind)  # loads what is read later as nobody
    with nobody():
        told(
            lambda: opened(folder / kind),
            f"{kind} may not be read by this user: change its permissions",
            code="EACCES",
        )


@pytest.mark.parametrize("kind", ["t.parquet", "t.db#t", ""])
def test_a_folder_that_may_not_be_entered_says_so(folder, kind):
    shut = folder / "shut"
    shut.mkdir(0o700)
    for name in ("t.parquet", "t.db"):
        shutil.copy(folder / name, shut)
    opened(shut / "t.parquet")
    with nobody():
        told(
            lambda: opened(shut / kind),
            "may not be read by this user: .* or those of its folder",
            code="EACCES",
        )


def writer(program, *arguments):
    """A process that holds a file open, until its input ends."""
    command = [
        sys.executable,
        "-c",
        f"{program}\nprint(flush=True); sys.stdin.read()",
        *map(str, arguments),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def test_a_duckdb_file_that_another_process_writes_to_says_so(folder):
    process = writer("import duckdb, sys; held = duckdb.connect(sys.argv[1])", folder / "t.duckdb")
    try:
        told(
            lambda: opened(folder / "t.duckdb"),
            "DuckDB file of the source is open in a process that may write",
            code="IO",
        )
    finally:
        process.communicate()
    assert "x" in opened(folder / "t.duckdb").schema()


def test_a_duckdb_file_that_this_process_writes_to_says_so(folder):
    with duckdb.connect(str(folder / "t.duckdb")):
        told(
            lambda: opened(folder / "t.duckdb"),
            "is open in a process that may write to it: close it there",
        )


def test_an_sqlite_file_that_another_process_writes_to_says_so(folder, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite.sqlite3, "connect", lambda *args, **options: connect(*args, **options, timeout=0.1)
    )
    program = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1]); held.execute('BEGIN EXCLUSIVE')"
    )
    process = writer(program, folder / "t.db")
    try:
        told(
            lambda: opened(folder / "t.db"),
            "SQLite file of the source is locked by a process that writes",
            code="BUSY",
        )
    finally:
        process.communicate()


def asked(source, folder):
    columns = {
        "x": (
            {"type": "integer", "bounds": (0, 9)}
            if str(source).endswith(("csv", "jsonl"))
            else {"bounds": (0, 9)}
        )
    }
    policy = Policy(source=str(source), epsilon=9, columns=columns, version="1")
    return Study(policy, ledger=folder / f"{next(_numbers)}.ledger")


def to_folder(file):
    file.unlink()
    file.mkdir()


def replaced_by_garbage(file):
    content = file.read_bytes()
    file.write_bytes(content[:200] + os.urandom(2000) + content[2200:])


LATER = {
    "vanished": (
        lambda file: file.unlink(),
        "is gone: put it back, or name another source",
        "ENOENT",
    ),
    "a folder": (to_folder, "is a folder now: put the file back", "EISDIR"),
    "cut": (cut(-200), CUT, "."),
    "damaged": (replaced_by_garbage, "a file of the source is damaged, .* write it again", "."),
}
CASES = [(kind, situation) for kind in ("t.csv", "t.jsonl", "t.parquet") for situation in LATER]


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize(
    ("kind", "situation"), [case for case in CASES if case[0] == "t.parquet" or case[1][0] in "va"]
)
def test_a_file_that_changes_after_opening_says_so_before_and_after_the_spend(
    folder, kind, situation, paid, monkeypatch
):
    harm, says, code = LATER[situation]
    with asked(folder / kind, folder) as study:
        plan = study.sql("SELECT sum(x) FROM t", epsilon=1)
        spend = study.ledger.spend

        def spent(*arguments, **options):
            grant = spend(*arguments, **options)
            harm(folder / kind)
            return grant

        if paid:
            monkeypatch.setattr(study.ledger, "spend", spent)
        else:
            harm(folder / kind)
        # the declared version says that the content is the same
        is_paid = paid or situation == "damaged"
        told(plan.release, says, spent=is_paid, code=code)
        assert study.spent == is_paid


@pytest.mark.parametrize("kind", ["t.csv", "t.jsonl", "t.parquet"])
def test_a_file_that_may_no_longer_be_read_says_so(folder, kind):
    with asked(folder / kind, folder) as study:
        plan = study.sql("SELECT sum(x) FROM t", epsilon=1)
        plan.release()
        (folder / kind).chmod(0)
        engine = study.engine
        with nobody():
            told(engine.check, f"{kind} may not be read by this user", code="EACCES")


COMPUTED = {
    "a cast": "SELECT CAST(name AS INTEGER) AS x FROM 'FOLDER/t.parquet'",
    "a function": "SELECT error(name)::INTEGER AS x FROM 'FOLDER/t.parquet'",
    "an overflow": "SELECT CAST(x * 9223372036854775807 AS BIGINT) AS x FROM 'FOLDER/t.parquet'",
}


@pytest.mark.parametrize("situation", COMPUTED)
def test_a_select_that_fails_on_a_row_shows_no_row(folder, situation):
    with asked(COMPUTED[situation].replace("FOLDER", str(folder)), folder) as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon=1)
        told(
            plan.release,
            "SELECT, view or relation of the source fails on a row, .*use TRY_CAST",
            spent=True,
            code=".",
        )


def test_a_view_of_a_file_that_fails_on_a_row_shows_no_row(folder):
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute("CREATE VIEW v AS SELECT CAST(name AS INTEGER) AS x FROM t")
    with asked(f"{folder / 't.duckdb'}#v", folder) as study:
        plan = study.sql("SELECT sum(x) FROM v", epsilon=1)
        told(
            plan.release,
            "SELECT, view or relation of the source fails on a row",
            spent=True,
            code="Conversion",
        )


def test_a_statement_that_is_stopped_says_so(folder):
    with asked(
        "SELECT a.range * b.range AS x FROM range(100000) AS a, range(100000) AS b", folder
    ) as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon=1)
        timer = threading.Timer(0.5, study.engine.interrupt)
        timer.start()
        told(plan.release, "the statement was stopped by a person", spent=True, code="interrupted")
        timer.join()


def test_a_statement_without_memory_says_so(folder):
    with asked("SELECT range % 1000003 AS x, range AS y FROM range(3000000)", folder) as study:
        connection = study.engine._connection
        connection.execute("SET memory_limit = '4MB'; SET threads = 1")
        query = "SELECT count(*) FROM (SELECT DISTINCT range FROM range(3000000))"
        says = "DuckDB has too little memory for the statement: ask for fewer groups"
        told(
            lambda: study.engine._guarded("fetch", lambda: connection.execute(query).fetchall()),
            says,
            code="OutOfMemory",
        )


ADDRESSES = {
    f"s3://key:{CANARY}@bucket/t.parquet": (
        "a file on another machine is not read from there, .*copy it here"
    ),
    "s3://bucket/folder": "a file on another machine is not read from there",
    "https://data.example/t.parquet?token=1": "a file on another machine is not read from there",
    "abfss://box@account/t.parquet#part": "a file on another machine is not read from there",
    "file:///srv/t.parquet": "a file must be named by its path, without file://",
    "sqlite:///t.db": "a file must be named by its path, .* as in people.db#table",
    f"jdbc:postgresql://h/d?password={CANARY}#t": (
        "an address of PostgreSQL must begin with postgresql://, as in"
    ),
    f"mysql://me:{CANARY}@h/d": (
        "must begin with postgresql://; from other databases, export the table to Parquet"
    ),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_no_source_is_refused_with_what_to_do(address):
    told(lambda: engine_of(address), ADDRESSES[address], spent=REFUSED)


TYPES = {
    "list": ("[1, 2]", "list"),
    "array": ("[1, 2]::INTEGER[2]", "array"),
    "struct": ("{'part': 1}", "struct"),
    "map": ("MAP {'key': 1}", "map"),
    "time": ("TIME '10:00'", "time"),
    "interval": ("INTERVAL 1 DAY", "interval"),
    "blob": ("'ab'::BLOB", "blob"),
    "json": ("""'{"field": "a"}'::JSON""", "JSON"),
}


@pytest.mark.parametrize("situation", TYPES)
def test_a_column_that_exists_and_cannot_be_used_says_its_type_and_the_view_helps(
    folder, situation
):
    value, kind = TYPES[situation]
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE typed AS SELECT 1 AS x, {value} AS c")
    shutil.copy(folder / "t.duckdb", folder / "copy.duckdb")
    source = f"{folder / 't.duckdb'}#typed"
    error = told(
        lambda: engine_of(source, Layout(("c",))),
        f"the column 'c' exists, and must be a number, text, date or .*: its type is {kind}; put .*"
        " into a view",
        spent=REFUSED,
    )
    assert engine_of(source).unread["c"] in str(error)
    form = str(error).partition("; put ")[2].partition(", or what else")[0]
    with duckdb.connect(str(folder / "copy.duckdb")) as connection:
        connection.execute(f"CREATE VIEW cast_ AS SELECT x, {form} AS c FROM typed")  # noqa: S608
    assert "c" in engine_of(f"{folder / 'copy.duckdb'}#cast_", Layout(("c",))).schema()


@pytest.mark.parametrize("situation", [name for name in TYPES if name != "array"])
def test_a_column_of_parquet_that_cannot_be_used_says_its_type(folder, situation):
    value, kind = TYPES[situation]
    file = folder / "typed.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS x, {value} AS c) TO '{file}'")
    says = (
        f"the column 'c' exists, .*: its type is {kind}; put .* into (the file, when|a SELECT that"
        " is the source, of)"
    )
    error = told(lambda: engine_of(str(file), Layout(("c",))), says, spent=REFUSED)
    form = str(error).partition("; put ")[2].partition(", or what else")[0]
    select = f"SELECT {form} AS c FROM '{file}'"  # noqa: S608
    if "into a SELECT" in str(error):
        assert "c" in engine_of(select, Layout(("c",))).schema()
    else:  # a SELECT cannot reach it either, and says so
        told(lambda: engine_of(select), says, spent=REFUSED)


def test_columns_of_frames_and_of_sqlite_that_cannot_be_used_say_their_type(folder):
    frame = pd.DataFrame({"x": [1], "c": [pd.Timedelta(1)]})
    says = (
        "the column 'c' exists, .*: its type is timedelta64; put a column of its parts, or of its"
        " text, into the frame"
    )
    told(lambda: engine_of(frame, Layout(("c",))), says, spent=REFUSED)
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        connection.execute("CREATE TABLE typed (x INTEGER, c UUID)")
        connection.execute("CREATE TABLE odd (c UUID)")
    told(
        lambda: engine_of(frame[["c"]]),
        "the frame must have a column that can be read; 'c': its type is",
        spent=REFUSED,
    )
    odd = pl.DataFrame({"c": pl.Series([object()], dtype=pl.Object)})
    told(
        lambda: engine_of(odd),
        "the frame must have a column that can be read; 'c': its type is",
        spent=REFUSED,
    )
    says = (
        r"the column 'c' exists, .*: its type is UUID; put CAST\(c AS TEXT\), .*with a declared"
        r" type"
    )
    told(lambda: engine_of(f"{folder / 't.db'}#typed", Layout(("c",))), says, spent=REFUSED)
    told(
        lambda: engine_of(f"{folder / 't.db'}#odd"),
        "odd must have a column that can be read; 'c': its type",
        spent=REFUSED,
    )


def test_a_disk_that_is_full_when_a_file_is_made_says_so(folder, tmp_path, monkeypatch):
    columns = {"x": {"keys": list(range(2000))}}
    policy = Policy(source=str(folder / "t.parquet"), epsilon=9, columns=columns, version="1")
    with disk(tmp_path, "64k") as small, Study(policy, ledger=tmp_path / "a.ledger") as study:
        plan = study.sql("SELECT x, count(*) FROM t GROUP BY x", epsilon=1)
        spend = study.ledger.spend

        def spent(*arguments, **options):
            fill(small)
            return spend(*arguments, **options)

        monkeypatch.setattr(study.ledger, "spend", spent)
        says = "cells.parquet could not be made, since .*its disk is full: make room"
        told(lambda: plan.release(to=small / "cells.parquet"), says, spent=True, code="ENOSPC")
        assert [file.name for file in small.iterdir()] == ["rest"]
