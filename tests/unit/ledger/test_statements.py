"""A spend in one statement: when it does, when it leaves the decision to the ordinary way, and that
both agree.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from fractions import Fraction

import psycopg
import pytest
from sqlalchemy.dialects.postgresql.psycopg import dialect

from discreet import BudgetExceeded, EngineFailed, InvalidParameter, Ledger, LedgerDamaged
from discreet.ledger import database
from discreet.ledger.anchor import AnchorFile
from discreet.ledger.book import Book
from discreet.ledger.chain import question_of
from discreet.ledger.statements import APPEND, APPEND_SHARED
from discreet.parameters import charge
from ledgers import UNIT


@pytest.fixture
def place(server_place):
    return server_place


@pytest.fixture
def ledger(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.allot("ann", "0.5", study="s")
        yield ledger


@pytest.fixture
def ways(monkeypatch):
    """Which way each spend went."""
    taken, at_once = [], Book.append_at_once

    def observed(*arguments, **columns):
        head = at_once(*arguments, **columns)
        taken.append("at once" if head else "ordinary")
        return head

    monkeypatch.setattr(Book, "append_at_once", observed)
    return taken


def added_elsewhere(
    place, ledger, request_id, query="q", epsilon="0.1", analyst=None, version=None
):
    """Add a spend behind the head that the anchor knows, from a connection of its own and without
    the anchor.
    """
    exact = Fraction(epsilon)
    columns = {
        "kind": "spend",
        "request_id": request_id,
        "query": query,
        "data_version": version,
        "question": question_of(query, version, request_id),
        "epsilon": str(exact),
        "analyst": analyst,
        "amount": charge(exact),
    }
    values, _ = ledger._book._next(ledger._book._read_anchor("s").heads["s"], columns)
    words = str((APPEND if analyst is None else APPEND_SHARED).compile(dialect=dialect()))
    with psycopg.connect(place.where, autocommit=True) as connection:
        return connection.execute(words, values).rowcount


@pytest.mark.parametrize("analyst", [None, "ann"])
def test_a_spend_is_one_statement_and_anchored(place, ledger, ways, analyst):
    """TRUST 4, 25: the chain, the share and the anchor are those of an ordinary spend."""
    grant = ledger.spend("r", "q", "0.1", study="s", analyst=analyst, data_version="1")
    assert (ways, grant.repeated, grant.answer) == (["at once"], False, None)
    assert AnchorFile(ledger._book.anchor.path).read().heads["s"].hash == ledger.entries()[-1].hash
    assert (ledger.spent("s"), ledger.spent("s", analyst="ann")) == (
        Fraction(1, 10),
        Fraction(analyst == "ann", 10),
    )
    assert ledger.record(grant, b"answer") == b"answer"
    with place.open() as again:
        assert again.verify() == 4


def test_both_ways_write_the_same_entries(ledger, ways, tmp_path):
    """TRUST 21, 26, 28: whatever is asked; compared with a file, where there is only the ordinary
    way.
    """
    requests = [
        ("a", "q", "0.1", None, "1"),
        ("b", "q", "0.1", "ann", "1"),  # the same question
        ("c", "q", "1/3", "ann", "1"),
        ("a", "q", "0.1", None, "1"),  # the same request
        ("a", "q", "0.2", None, "1"),  # with another body
        ("d", "q", "0.3", "ann", None),  # beyond the share
        ("e", "q", "0.3", "eve", None),  # no share
        ("f", "q", "0.1666666661", "ann", None),  # the last of the share, rounded up
        ("g", "q", "0.5", None, None),  # beyond the total
        ("h", "q", "0.4", None, None),
        ("i", "q", "1e-9", None, None),
    ]

    def outcomes(book):
        rows = []
        for request, query, epsilon, analyst, version in requests:
            try:
                grant = book.spend(
                    request, query, epsilon, study="s", analyst=analyst, data_version=version
                )
                rows.append(grant.repeated)
            except (BudgetExceeded, InvalidParameter) as refusal:
                rows.append(str(refusal))
        changing = {"time": "", "nonce": "", "before": "", "hash": "", "terms": ""}
        return rows, [{**asdict(entry), **changing} for entry in book.entries()], book.verify()

    with Ledger.open(tmp_path / "file", new=True) as other:
        other.create("s", 1)
        other.allot("ann", "0.5", study="s")
        expected = outcomes(other)
    ways.clear()
    assert outcomes(ledger) == expected
    assert ways.count("at once") == 4


def test_two_machines_take_turns_to_the_last_unit(place, ledger, ways):
    """TRUST 6, 21: each finds its anchor behind the other's spends; the budget is one."""
    with place.elsewhere("other").open() as other:
        for number in range(10):
            (ledger, other)[number % 2].spend(f"r{number}", "q", "0.1", study="s")
            (ledger, other)[number % 2].spend(f"r{number}", "q", "0.1", study="s")
        assert "at once" in ways
        assert "ordinary" in ways
        for machine in (ledger, other):
            with pytest.raises(BudgetExceeded, match="0 is left"):
                machine.spend("one more", "q", UNIT, study="s")
    assert (ledger.spent("s"), ledger.verify()) == (1, 12)


def spend_around(commit, place, ledger, analyst, monkeypatch):
    """A spend whose statement has begun, and seen the tables, before the commit, and goes on after
    it.
    """
    statement = APPEND if analyst is None else APPEND_SHARED
    words = str(statement.compile(dialect=dialect()))
    waiting = words.replace(
        "FROM discreet_study", "FROM (SELECT pg_advisory_xact_lock(1)) AS gate, discreet_study"
    )
    monkeypatch.setitem(database._words, ("postgresql", statement), (waiting, None))
    with psycopg.connect(place.where, autocommit=True) as gate, ThreadPoolExecutor(1) as pool:
        gate.execute("SELECT pg_advisory_lock(1)")
        spend = pool.submit(
            ledger.spend, "r", "q", "0.1", study="s", analyst=analyst, data_version="1"
        )
        while not gate.execute(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchone():
            assert not spend.done()
        assert commit() == 1
        gate.execute("SELECT pg_advisory_unlock(1)")
        return spend.result()


@pytest.mark.parametrize("analyst", [None, "ann"])
@pytest.mark.parametrize(
    ("elsewhere", "outcome", "entries"),
    [
        ({"request_id": "other"}, False, 4),
        ({"request_id": "r", "version": "1"}, True, 3),
        ({"request_id": "other", "version": "1"}, True, 4),
        ({"request_id": "r", "version": "2"}, InvalidParameter, 3),
        ({"request_id": "other", "epsilon": Fraction(9, 10) + UNIT}, BudgetExceeded, 3),
    ],
)
def test_what_was_committed_after_the_statement_began_decides(
    place, ledger, ways, analyst, elsewhere, outcome, entries, monkeypatch
):
    """TRUST 6, 26, 28: though the statement cannot see it. Another spend, the same request, the
    same question, the request id for another question, the last of the budget."""
    charged = analyst if "epsilon" not in elsewhere else None

    def commit() -> int:
        return added_elsewhere(place, ledger, analyst=charged, **elsewhere)

    if isinstance(outcome, bool):
        assert spend_around(commit, place, ledger, analyst, monkeypatch).repeated is outcome
    else:
        with pytest.raises(outcome):
            spend_around(commit, place, ledger, analyst, monkeypatch)
    assert ways == ["ordinary"]
    assert ledger.verify() == entries


def test_a_share_that_was_spent_after_the_statement_began_is_spent(place, ledger, monkeypatch):
    """TRUST 21: the charge of the share follows the entry, never its own reading."""
    with pytest.raises(BudgetExceeded, match=r"share of analyst 'ann': 0\.05 is left"):
        spend_around(
            lambda: added_elsewhere(place, ledger, "x", "q", "0.45", "ann"),
            place,
            ledger,
            "ann",
            monkeypatch,
        )
    assert (ledger.spent("s", analyst="ann"), ledger.verify()) == (Fraction(45, 100), 3)


def test_the_servers_default_isolation_does_not_matter(place, ledger, ways, monkeypatch):
    """TRUST 6: a serializable statement would fail where another was quicker, and the spend with
    it.
    """
    strict = replace(place, where=place.where + "%20-cdefault_transaction_isolation%3Dserializable")
    with strict.open() as other:
        grant = spend_around(
            lambda: added_elsewhere(place, ledger, "x"), place, other, None, monkeypatch
        )
        assert (grant.repeated, ways, other.verify()) == (False, ["ordinary"], 4)


def test_a_locked_study_is_left_alone(place, ledger):
    """TRUST 6: whoever holds the lock has read the head and will add the next entry."""
    with psycopg.connect(place.where) as holder:
        holder.execute("SELECT * FROM discreet_study FOR UPDATE")
        thread = threading.Thread(
            target=ledger.spend, args=("r", "q", "0.1"), kwargs={"study": "s"}
        )
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert place.execute("SELECT count(*) FROM discreet_entry") == [(2,)]
    thread.join()
    assert ledger.verify() == 3


@pytest.mark.parametrize("entry", ["other", None])
def test_a_ledger_without_the_anchored_entry_is_refused(place, ledger, entry):
    """TRUST 25: it was put back, and went on by itself or not."""
    older = AnchorFile(ledger._book.anchor.path).path.read_bytes()
    ledger.spend("r", "q", "0.1", study="s")
    newest = ledger._book.anchor.path.read_bytes()
    place.execute("DELETE FROM discreet_entry WHERE number = 3")
    if entry is not None:
        ledger._book.anchor.path.write_bytes(older)
        assert added_elsewhere(place, ledger, entry) == 1
        ledger._book.anchor.path.write_bytes(newest)
    with pytest.raises(LedgerDamaged, match="do not include the anchored entry, number 3"):
        ledger.spend("r2", "q", "0.1", study="s")


def test_a_lost_entry_after_the_anchored_one_is_not_made_up(place, ledger, ways):
    """TRUST 24: another machine's entries follow, and the first of them is gone."""
    with place.elsewhere("other").open() as other:
        other.spend("r1", "q", "0.4", study="s")
        other.spend("r2", "q", "0.5", study="s")
        place.execute("DELETE FROM discreet_entry WHERE number = 3")
        with pytest.raises(BudgetExceeded):
            ledger.spend("r3", "q", "0.2", study="s")
    assert ways[-1] == "ordinary"


def test_the_balance_is_the_ledgers_not_the_anchors(ledger, ways):
    """TRUST 25: an anchor that was edited to know of no spend, or of a larger total, gives no
    budget.
    """
    ledger.spend("r1", "q", "0.9", study="s")
    anchor = ledger._book.anchor.read()
    for change in ({"spent": 0}, {"total": 2 * 10**9}):
        forged = replace(anchor, heads={"s": replace(anchor.heads["s"], **change)})
        ledger._book.anchor.replace(forged)
        with pytest.raises(LedgerDamaged, match="entry 3 of study 's' was changed"):
            ledger.spend("r2", "q", "0.2", study="s")
        assert ways[-1] == "ordinary"
    ledger._book.anchor.replace(anchor)
    assert ledger.verify() == 3


def test_the_anchor_of_another_ledger_is_refused(place, ledger):
    """TRUST 25: while the ledger is open, too."""
    anchor = ledger._book.anchor.read()
    ledger._book.anchor.replace(replace(anchor, ledger="other"))
    with pytest.raises(LedgerDamaged, match="anchor belongs to another ledger"):
        ledger.spend("r", "q", "0.1", study="s")
    assert place.execute("SELECT count(*) FROM discreet_entry") == [(2,)]


def test_a_lost_reply_is_spent_once(ledger, monkeypatch):
    """TRUST 5, 26: committed, and the connection broke before the server could say so."""
    database = ledger._book.database
    execute = database._execute

    def lost(connection, statement, values):
        rows = execute(connection, statement, values)
        if statement is APPEND:
            connection.dbapi_connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return rows

    monkeypatch.setattr(database, "_execute", lost)
    with pytest.raises(EngineFailed, match="ask again with the same request_id"):
        ledger.spend("r", "q", "0.1", study="s", data_version="1")
    monkeypatch.undo()
    grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
    assert (grant.answer, ledger.spent("s"), ledger.verify()) == (None, Fraction(1, 10), 3)
    # nothing was added, so nothing was anchored
    assert ledger._book.anchor.read().heads["s"].count == 2
    ledger.record(grant, b"answer")
    assert ledger._book.anchor.read().heads["s"].count == 4


def test_a_connection_that_was_cut_is_replaced(place, ledger):
    """TRUST 29: the spend that finds it cut is refused, the next one goes on."""
    place.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with pytest.raises(EngineFailed, match="did not answer"):
        ledger.spend("r", "q", "0.1", study="s")
    ledger.spend("r", "q", "0.1", study="s")
    assert ledger.verify() == 3


@pytest.mark.parametrize("mixed", [False, True])
def test_a_spend_waits_for_the_disk(place, ways, mixed):
    """TRUST 5: whatever the server's default is, and if a pooler hands out sessions with other
    settings.
    """
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
    place.execute("CREATE TABLE seen (setting TEXT)")
    place.execute(
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$"
    )
    place.execute(
        "CREATE TRIGGER look AFTER INSERT ON discreet_entry FOR EACH ROW EXECUTE FUNCTION look()"
    )
    with replace(place, where=place.where + "%20-csynchronous_commit%3Doff").open() as other:
        if mixed:
            connection = other._book.database._engine.raw_connection()
            connection.dbapi_connection.execute("SET synchronous_commit TO off")
            connection.close()
        other.spend("r", "q", "0.1", study="s")
    assert ways == ["ordinary" if mixed else "at once"]
    assert place.execute("SELECT setting FROM seen") == [("on",)]


@pytest.mark.parametrize("key", ["CONSTRAINT discreet_entry_pkey", "discreet_one_request"])
def test_a_ledger_without_its_keys_is_refused(place, key):
    """TRUST 23, 24: a copy that was put back without them."""
    place.open(new=True).close()
    drop = f"ALTER TABLE discreet_entry DROP {key}" if "CONSTRAINT" in key else f"DROP INDEX {key}"
    place.execute(drop)
    with pytest.raises(LedgerDamaged, match="tables are not the ones"):
        place.open()
