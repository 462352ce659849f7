"""Over HTTP a failure is a plain sentence without names of files, hosts and tables; the log has the
reason and its code (TRUST 11, 32, 40).
"""

import itertools
import logging
import math
import os
import sqlite3
import subprocess
from contextlib import closing

import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.errors import EngineFailed, InvalidParameter
from discreet.ledger import database
from discreet.serve.refusals import FAILURE, UNUSABLE
from discreet.serve.store import REQUESTS, Requests
from failures import CANARY, disk, fill
from serving import BY_COUNTY, body, folder_in_memory, people, served

_numbers = itertools.count()
PLACE = "secretplace"
"""In the name of every file, host, table and user here: no analyst may see it."""


def rows(folder):
    file = folder / f"{PLACE}.parquet"
    parquet.write_table(people(), file)
    return file


def cut(file):
    os.truncate(file, 100)


def other_columns(file):
    parquet.write_table(pa.table({PLACE: [1]}), file)


FILES = {
    "gone": (os.unlink, FAILURE, f"{PLACE}.parquet is gone", "errno 2 (ENOENT)"),
    "cut": (cut, FAILURE, f"{PLACE}.parquet is shorter than it says", "InvalidInputException"),
    "other columns": (
        other_columns,
        UNUSABLE,
        "the files no longer have the columns and types",
        "",
    ),
}


def report(site):
    question = {
        "study": "people",
        "tables": {"by_county": BY_COUNTY},
        "epsilon": "0.05",
        "request_id": "first",
    }
    return site.client("ann").post("/report", json=question)


def asked(site, caplog, refusal, words, code):
    """A question that fails before the spend: a plan is refused, or is free; a release has failed."""
    plan = {
        "study": "people",
        "sql": BY_COUNTY,
        "epsilon": "0.01",
    }  # it is in the report, if that is of the same data
    before = site.study.spent
    for path, question, expected in (("/plan", plan, refusal), ("/release", body(), FAILURE)):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            answer = site.client("ann").post(path, json=question)
        assert (answer.status_code, answer.json()) == (expected.status, expected.body), path
        assert words in caplog.text
        assert code in caplog.text
        assert CANARY not in caplog.text
    for path in ("/studies", "/ledger"):
        assert PLACE not in site.client("ann").get(path).text
    assert site.study.spent == before


@pytest.mark.parametrize("situation", FILES)
def test_a_file_that_fails_is_told_to_the_operator_alone(situation, caplog):
    harm, refusal, words, code = FILES[situation]
    with (
        folder_in_memory() as folder,
        served(folder, table=str(rows(folder)), version=None) as site,
    ):
        assert report(site).status_code == 200
        harm(folder / f"{PLACE}.parquet")
        asked(site, caplog, refusal, words, code)


TABLES = {
    "gone": ("DROP TABLE t", UNUSABLE, "is gone since the study was opened", ""),
    "right": ("REVOKE SELECT ON t FROM ROLE_", UNUSABLE, "may not read the columns", ""),
    "type": ("ALTER TABLE t ALTER age TYPE text", UNUSABLE, "the column 'age' was", ""),
    "log-in": ("ALTER ROLE ROLE_ NOLOGIN", FAILURE, "may not log in", "SQLSTATE 28000"),
}


@pytest.mark.parametrize("situation", TABLES)
def test_a_table_that_fails_is_told_to_the_operator_alone(postgres, situation, caplog):
    change, refusal, words, code = TABLES[situation]
    name = f"{PLACE}_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as server, folder_in_memory() as folder:
        server.execute(
            f"CREATE SCHEMA {name}; CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {name} TO"
            f" {name}"
        )
        server.execute(f"SET search_path = {name}")
        server.execute(
            "CREATE TABLE t AS SELECT 'Essex' AS county, i % 90 + 0.5::float8 AS age FROM"
            " generate_series(1, 99) i"
        )
        server.execute(f"GRANT SELECT ON t TO {name}")
        try:
            source = f"{postgres}#{name}.t".replace("//postgres", f"//{name}:{CANARY}")
            with served(folder, table=source, version=None) as site:
                assert report(site).status_code == 200
                server.execute(change.replace("ROLE_", name))
                asked(site, caplog, refusal, words, code)
        finally:
            server.execute(f"DROP SCHEMA {name} CASCADE; DROP OWNED BY {name}; DROP ROLE {name}")


def test_control_an_answer_with_the_reason_would_be_seen(monkeypatch):
    monkeypatch.setattr("discreet.serve.refusals.SourceUnusable", ())
    with (
        folder_in_memory() as folder,
        served(folder, table=str(rows(folder)), version=None) as site,
    ):
        assert report(site).status_code == 200
        other_columns(folder / f"{PLACE}.parquet")
        plan = {"study": "people", "sql": BY_COUNTY, "epsilon": "0.01"}
        assert "the files no longer have" in site.client("ann").post("/plan", json=plan).text


def test_a_full_disk_under_the_server_s_files_is_called_that(tmp_path, caplog, monkeypatch):
    """The room of the ledger is not seen before the spend, as behind a quota."""
    monkeypatch.setattr(database, "_room", lambda _: math.inf)
    with disk(tmp_path) as small, served(small) as site:
        assert site.client("ann").post("/release", json=body(epsilon="0.01")).status_code == 200
        fill(small)
        with caplog.at_level(logging.INFO):
            answers = [
                site.client("ann").post("/release", json=body(epsilon="0.01")) for _ in range(30)
            ]
        failed = [answer for answer in answers if answer.status_code != 200]
        assert failed
        assert all(
            (answer.status_code, answer.json()) == (FAILURE.status, FAILURE.body)
            for answer in failed
        )
        assert "disk is full" in caplog.text
        assert "SQLITE_" in caplog.text
        assert str(small) not in caplog.text


def test_requests_and_tokens_on_a_full_disk_say_so(tmp_path):
    with disk(tmp_path) as small:
        requests = Requests(small / REQUESTS)
        fill(small)
        says = r"the file discreet.requests cannot grow: its disk is full; make room"

        def claim() -> None:
            for number in range(99):
                requests.claim("people", f"ann:{number}", body=bytes(32), view={"x": "y" * 9000})

        with pytest.raises(EngineFailed, match=f"{says}; nothing was spent") as caught:
            claim()
        assert caught.value.code.startswith("SQLITE_")
        requests.close()
        with pytest.raises(EngineFailed, match="its disk is full; make room") as caught:
            Requests(small / "new")
        assert caught.value.code in ("SQLITE_FULL", "errno 28 (ENOSPC)")


def test_a_read_only_disk_under_the_server_s_files_says_so(tmp_path):
    with disk(tmp_path) as small:
        Requests(small / REQUESTS).close()
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        for name in (REQUESTS, "new"):
            with pytest.raises(
                EngineFailed, match=r"cannot be (written|opened): make the file"
            ) as caught:
                Requests(small / name).claim("people", "ann:1", body=bytes(32), view={})
            assert caught.value.code


def test_a_file_that_is_not_the_server_s_says_so(tmp_path):
    (tmp_path / REQUESTS).write_text(CANARY)
    with pytest.raises(
        InvalidParameter, match="must be a file that discreet serve created; restore it"
    ):
        Requests(tmp_path / REQUESTS)
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(
        InvalidParameter, match="must be a file that discreet serve created; restore it"
    ):
        Requests(tmp_path / "other")
