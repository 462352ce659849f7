import sqlite3
from contextlib import closing

import pytest

from discreet.errors import EngineFailed
from discreet.serve import store
from discreet.serve.store import REQUESTS, Requests

BODY = bytes(32)


@pytest.fixture
def requests(tmp_path):
    requests = Requests(tmp_path / REQUESTS)
    yield requests
    requests.close()


def test_a_full_disk_is_called_that(requests, monkeypatch):
    """With SQLite's own limit on the pages of a file, which fails as a full disk does."""
    connect = requests._connect

    def full():
        connection = connect()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(requests, "_connect", full)
        with pytest.raises(
            EngineFailed, match=r"discreet\.requests cannot grow: its disk is full; make room"
        ):
            requests.claim("people", "ann:1", body=BODY, view={"words": "x" * 10_000})
    assert requests.claim("people", "ann:1", body=BODY, view={})


def test_a_file_that_another_process_holds_is_busy(requests, monkeypatch):
    monkeypatch.setattr(store, "_PATIENCE", 0.01)
    with closing(sqlite3.connect(requests.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            EngineFailed,
            match=r"discreet\.requests is busy: another process has held it for 0\.01 s",
        ):
            requests.claim("people", "ann:1", body=BODY, view={})
    assert requests.claim("people", "ann:1", body=BODY, view={})


def test_a_file_that_cannot_be_written_is_called_that(requests, monkeypatch):
    connect = requests._connect

    def protected():
        connection = connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(requests, "_connect", protected)
    with pytest.raises(
        EngineFailed,
        match=(
            r"discreet\.requests cannot be written: make the file, its folder and their disk"
            r" writable"
        ),
    ):
        requests.claim("people", "ann:1", body=BODY, view={})
