"""TRUST 50, the ledger's part: repeats, held locks, large answers and many entries stall and fill
nothing.
"""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from discreet import EngineFailed, Ledger, LedgerDamaged
from discreet.ledger import book, database, grant, turns
from waiting import wait


def test_a_repeat_stores_no_question_and_only_so_many_are_kept(place, one_day, monkeypatch):  # noqa: ARG001
    """Each under a new request id, all free; the ledger stops growing."""
    monkeypatch.setattr(grant, "_REPEATS", 3)
    with place.open(new=True) as opened:
        opened.create("s", 1)
        opened.allot("ann", 1, study="s")
        paid = opened.spend("r", "q" * 16_000, "0.1", study="s", data_version="1")
        opened.record(paid, b"answer")
        for number in range(20):
            for analyst in (None, "ann"):
                asked = {"study": "s", "data_version": "1", "analyst": analyst}
                assert (
                    opened.spend(f"{analyst} {number}", "q" * 16_000, "0.1", **asked).answer
                    == b"answer"
                )
        repeats = [entry for entry in opened.entries() if entry.kind == "repeat"]
        assert [entry.analyst for entry in repeats] == [None, "ann"] * 3
        assert {entry.query for entry in repeats} == {None}
        assert all(
            entry.query == "q" * 16_000 for entry in opened.recent("s", last=6)
        )  # shown to a reader, all the same
        assert opened.answer(study="s", request_id="ann 2") == b"answer"
        assert opened.verify() == 10


def test_an_unanswered_question_is_answered_under_a_request_that_was_not_kept(place, monkeypatch):
    monkeypatch.setattr(grant, "_REPEATS", 0)
    with place.open(new=True) as opened:
        opened.create("s", 1)
        opened.spend("r", "q", "0.1", study="s", data_version="1")
        granted = opened.spend("r2", "q", "0.1", study="s", data_version="1")
        assert opened.record(granted, b"answer") == b"answer"
        assert opened.answer(study="s", request_id="r") == b"answer"
        assert opened.verify() == 3


LOCKED = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query,"
    " 'discreet_study') > 0"
)


def test_a_wait_for_a_lock_ends(server_place, monkeypatch):
    """Somebody holds the study's row and never lets go."""
    server_place.open(new=True).close()
    with server_place.open() as opened:
        opened.create("s", 1)
    for module in (database, turns):
        monkeypatch.setattr(module, "PATIENCE", 3)
    with psycopg.connect(server_place.where) as holder:
        holder.execute("SELECT * FROM discreet_study WHERE name = 's' FOR UPDATE")
        with (
            server_place.open() as opened,
            pytest.raises(
                EngineFailed,
                match=r"^the ledger was busy for 3 seconds: ask again .*; nothing was spent",
            ),
        ):
            opened.spend("r", "q", "0.1", study="s")


def test_another_study_goes_on_while_threads_wait_for_a_lock(server_place):
    with server_place.open(new=True) as opened:
        opened.create("s", 1)
        opened.create("t", 1)
        with ThreadPoolExecutor(2) as pool:
            with psycopg.connect(server_place.where) as holder:
                holder.execute("SELECT * FROM discreet_study WHERE name = 's' FOR UPDATE")
                waiting = [
                    pool.submit(opened.spend, name, name, "0.1", study="s") for name in ("r1", "r2")
                ]
                wait(lambda: server_place.execute(LOCKED) >= [(1,)])
                opened.spend("r", "q", "0.1", study="t")
                assert (opened.remaining("s"), [one.done() for one in waiting]) == (
                    1,
                    [False, False],
                )
            assert [one.result().repeated for one in waiting] == [False, False]


def test_a_session_that_stops_in_a_transaction_is_ended_by_the_server(server_place, monkeypatch):
    """So that a machine that freezes does not keep the lock for ever."""
    with server_place.open(new=True) as other:
        other.create("s", 1)
        for module in (database, turns):
            monkeypatch.setattr(module, "PATIENCE", 2)

        def freeze() -> None:
            with server_place.open() as opened, opened._book.page("s") as page:
                own = page.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                wait(
                    lambda: (
                        not server_place.execute(
                            "SELECT 1 FROM pg_stat_activity WHERE pid = ?", own
                        )
                    )
                )
                page.analyst("ann")

        with pytest.raises(EngineFailed, match="did not answer"):
            freeze()
        other.spend("r", "q", "0.1", study="s")


def test_a_commit_waits_for_a_standby_however_long_and_a_dead_server_is_noticed(server_place):
    """A statement's time limit would end the wait for a standby as if it had answered."""
    slow = replace(server_place, where=server_place.where + "%20-cstatement_timeout%3D1000")
    with slow.open(new=True) as opened, opened._book.database.transaction() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "0"
        parameters = connection.connection.dbapi_connection.info.get_parameters()
        assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == ("10", "30000")


@pytest.mark.parametrize("setting", ["default_transaction_read_only%3Don", "role%3Dreader"])
def test_a_database_that_cannot_be_written_is_called_just_that(server_place, setting):
    """Never damaged, and never with the advice to make a new ledger."""
    with server_place.open(new=True) as opened:
        opened.create("s", 1)
    schema = server_place.where.partition("search_path%3D")[2]
    for statement in (
        "DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        f"GRANT USAGE ON SCHEMA {schema} TO reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
    ):
        server_place.execute(statement)
    limited = replace(server_place, where=f"{server_place.where}%20-c{setting}")
    with (
        pytest.raises(
            EngineFailed, match=r"database is read-only|does not permit this user"
        ) as refusal,
        limited.open() as opened,
    ):
        opened.spend("r", "q", "0.1", study="s")
    assert "new=True" not in str(refusal.value)
    server_place.execute(f"REVOKE ALL ON SCHEMA {schema} FROM reader")
    with pytest.raises(LedgerDamaged, match="no complete ledger that this user can see") as refusal:
        replace(server_place, where=f"{server_place.where}%20-crole%3Dreader").open()
    assert "new=True" not in str(refusal.value)


def test_opening_and_verifying_hold_no_answers_in_memory(place):
    """40 answers of 1 MB each: a walk has one of them at a time, or none."""
    with place.open(new=True) as opened:
        opened.create("s", 1)
        for number in range(40):
            opened.record(opened.spend(f"r{number}", "q", "0.001", study="s"), bytes(10**6))
        tracemalloc.start()
        opened.verify()
        place.open().close()
        assert tracemalloc.get_traced_memory()[1] < 8e6
        tracemalloc.stop()


def test_opening_reads_the_same_few_entries_however_many_there_are(place, monkeypatch):
    """What the anchor has passed is not walked over again."""
    digests, digest = [], book.digest
    monkeypatch.setattr(
        book, "digest", lambda *given: digests.append(given[1].number) or digest(*given)
    )
    with place.open(new=True) as opened:
        opened.create("s", 1)
        for number in range(30):
            opened.spend(f"r{number}", "q", "0.001", study="s")
    digests.clear()
    with place.open() as opened:
        assert digests == [31]
        assert opened.verify() == 31


def test_a_spend_goes_on_while_the_ledger_is_verified(place, monkeypatch):
    """The walk has short pieces: a writer comes in between any two of them."""
    monkeypatch.setattr(book, "_BATCH", 5)
    with place.open(new=True) as opened, Ledger.open(place.where, anchor=place.anchor) as other:
        opened.create("s", 1)
        for number in range(20):
            opened.spend(f"r{number}", "q", "0.001", study="s")
        replay, spends = book.replay, []

        def spending(*given):
            if len(spends) < 5:
                spends.append(other.spend(f"w{len(spends)}", "q", "0.001", study="s"))
            replay(*given)

        monkeypatch.setattr(book, "replay", spending)
        assert (opened.verify(), len(spends)) == (26, 5)


def test_an_ordinary_spend_and_its_answer_walk_over_no_entries(place, monkeypatch):
    """However many there are; one that goes on with an old spend walks from there, to see that it
    has no answer.
    """
    walked, run = [], database.Database.run

    def counted(self, connection, statement, **values):
        rows = run(self, connection, statement, **values)
        walked.extend([row.number for row in rows] if statement is book.WALK else [])
        return rows

    with place.open(new=True) as opened:
        opened.create("s", 1)
        old = opened.spend("old", "q", "0.1", study="s", data_version="1")
        monkeypatch.setattr(database.Database, "run", counted)
        for number in range(5):
            opened.record(opened.spend(f"r{number}", "q", "0.01", study="s"), b"answer")
        assert walked == []
        opened.record(opened.spend("old", "q", "0.1", study="s", data_version="1"), b"answer")
        assert walked == list(range(2, 13))
        assert opened.record(old, b"another") == b"answer"


def test_a_ledger_on_a_server_is_opened_with_few_messages(server_place, monkeypatch):
    sent, execute = [], psycopg.Cursor.execute

    def counted(self, query, *arguments, **options):
        sent.append(query)
        return execute(self, query, *arguments, **options)

    with server_place.open(new=True) as opened:
        opened.create("s", 1)
    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    server_place.open().close()
    assert len(sent) <= 14
