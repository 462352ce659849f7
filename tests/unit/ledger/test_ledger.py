"""What the ledger's verbs do, on both databases."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import BudgetExceeded, InvalidParameter, Ledger, LedgerDamaged
from discreet.ledger.questions import entry_text


@pytest.fixture
def ledger(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        yield ledger


def test_a_spend_is_charged_and_its_answer_kept(ledger):
    """TRUST 4: the spend is in the ledger before there is an answer."""
    grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
    assert (grant.repeated, grant.answer, grant.epsilon) == (False, None, Fraction(1, 10))
    assert ledger.spent("s") == Fraction(1, 10)
    assert ledger.answer(study="s", request_id="r") is None
    assert ledger.record(grant, b"\x00 42") == b"\x00 42"
    assert ledger.answer(study="s", request_id="r") == b"\x00 42"
    assert ledger.answer(study="s", query="q", data_version="1") == b"\x00 42"
    assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "answer"]


def test_ten_tenths_are_one(ledger):
    """TRUST 21: exact to the last unit, and one beyond."""
    for number in range(10):
        ledger.spend(f"r{number}", "q", 0.1, study="s")
    assert ledger.remaining("s") == 0
    with pytest.raises(BudgetExceeded, match=r"0 is left, 0\.000000001 was asked for"):
        ledger.spend("one more", "q", "1e-9", study="s")


def test_a_charge_is_rounded_up(ledger):
    """TRUST 21: a third costs 333333334 units, so three of them do not fit."""
    ledger.spend("a", "q", "1/3", study="s")
    ledger.spend("b", "q", "1/3", study="s")
    assert ledger.spent("s") == 2 * Fraction(333333334, 10**9)
    with pytest.raises(BudgetExceeded):
        ledger.spend("c", "q", "1/3", study="s")


def test_tiny_spends_after_exhaustion_are_refused(ledger):
    """TRUST 22: a refusal changes nothing, so the hundredth is refused like the first, and so is
    the millionth.
    """
    ledger.spend("all", "q", 1, study="s")
    before = ledger.export()
    for number in range(100):
        with pytest.raises(BudgetExceeded):
            ledger.spend(f"r{number}", "q", "1e-9", study="s")
    assert ledger.export() == before


@pytest.mark.parametrize(
    "epsilon",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        0,
        -1,
        True,
        "0.1x",
        "1e400",
        5e-324,
        "1" * 5000,
        None,
        "-0.1",
        b"1",
    ],
)
def test_an_epsilon_that_is_none_is_refused(ledger, epsilon):
    """TRUST 9: refused by every verb that takes one, and the ledger is unchanged."""
    before = ledger.export()
    for verb in (
        lambda: ledger.spend("r", "q", epsilon, study="s"),
        lambda: ledger.create("t", epsilon),
        lambda: ledger.allot("ann", epsilon, study="s"),
    ):
        with pytest.raises(InvalidParameter, match="epsilon"):
            verb()
    assert ledger.export() == before


@pytest.mark.parametrize("text", ["", "a\0b", "x" * 101, "\ud800", None, 7, b"r", "line\x1b[0m"])
def test_a_name_that_cannot_be_kept_is_refused(ledger, text):
    """TRUST 9: before anything is spent."""
    for verb in (
        lambda: ledger.spend(text, "q", 1, study="s"),
        lambda: ledger.create(text, 1),
        lambda: ledger.allot(text, 1, study="s"),
    ):
        with pytest.raises(InvalidParameter, match="must be printable text"):
            verb()
    with pytest.raises(InvalidParameter):
        ledger.record(ledger.spend("r", "q", "0.5", study="s"), "text")
    assert ledger.spent("s") == Fraction(1, 2)


def test_odd_names_are_kept_as_they_are(ledger):
    name = "'; DROP TABLE discreet_entry; -- 100% \\ ünïcode 🎲"
    ledger.create(name, 2)
    ledger.allot(name, 1, study=name)
    ledger.spend(name, name, 1, study=name, analyst=name, data_version=name)
    assert ledger.studies() == sorted([name, "s"])
    assert (ledger.spent(name), ledger.remaining(name, analyst=name), ledger.verify()) == (1, 0, 4)


def test_a_study_gets_its_total_once(ledger):
    with pytest.raises(InvalidParameter, match="'s', which has a total already"):
        ledger.create("s", 100)
    assert ledger.total("s") == 1


def test_a_study_that_is_not_there_is_refused(ledger, place):
    """TRUST 25: a foreign study never gets a budget by being asked about."""
    for verb in (
        lambda: ledger.spend("r", "q", 1, study="other"),
        lambda: ledger.spent("other"),
        lambda: ledger.remaining("other"),
        lambda: ledger.answer(study="other", request_id="r"),
        lambda: place.open(study="other"),
    ):
        with pytest.raises(LedgerDamaged, match="'other' is not in this ledger"):
            verb()
    place.open(study="s").close()


def test_a_request_with_a_changed_body_is_refused(ledger):
    """TRUST 26: another query, ε, data version or analyst under the same request id."""
    ledger.allot("ann", 1, study="s")
    ledger.spend("r", "q", "0.1", study="s", data_version="1")
    before = ledger.export()
    for change in (
        {"query": "q2"},
        {"epsilon": "0.2"},
        {"epsilon": Fraction(1, 10) - Fraction(1, 10**20)},  # the same charge, another noise
        {"data_version": "2"},
        {"data_version": None},
        {"analyst": "ann"},
    ):
        body = {"query": "q", "epsilon": "0.1", "data_version": "1", "study": "s", **change}
        with pytest.raises(InvalidParameter, match="request_id must be new"):
            ledger.spend("r", **body)
    assert ledger.export() == before


def test_the_same_question_is_free_for_everybody(ledger):
    """TRUST 28: one charge and one answer; new data, or another ε, is a new charge."""
    ledger.allot("ann", "0.5", study="s")
    grant = ledger.spend("r1", "q", "0.1", study="s", data_version="1")
    ledger.record(grant, b"answer")
    again = ledger.spend("r2", "q", Fraction(1, 10), study="s", data_version="1", analyst="ann")
    assert (again.repeated, again.answer, ledger.spent("s")) == (True, b"answer", Fraction(1, 10))
    assert ledger.spent("s", analyst="ann") == 0
    assert ledger.answer(study="s", request_id="r2") == b"answer"
    assert not ledger.spend("r3", "q", "0.1", study="s", data_version="2").repeated
    assert not ledger.spend("r4", "q", "0.2", study="s", data_version="1").repeated
    assert ledger.spent("s") == Fraction(4, 10)
    with pytest.raises(InvalidParameter, match="request_id must be new"):
        ledger.spend("r2", "q", "0.3", study="s", data_version="1", analyst="ann")


def test_what_was_answered_is_known_by_its_versions(ledger):
    tenth = Fraction(1, 10)
    for request, version in {"a": "1", "b": "2", "c": None}.items():
        ledger.record(ledger.spend(request, "q", "0.1", study="s", data_version=version), b"{}")
    ledger.spend("d", "unanswered", "0.1", study="s", data_version="1")
    # of an unknown version nothing is free
    assert sorted(ledger.answered("q", tenth, study="s")) == ["1", "2"]
    assert (
        ledger.answered("q", 2 * tenth, study="s")
        == ledger.answered("unanswered", tenth, study="s")
        == []
    )
    ledger.create("t", 1)
    assert ledger.answered("q", tenth, study="t") == []


def test_a_stored_answer_is_free_after_exhaustion(ledger):
    """TRUST 28."""
    ledger.record(ledger.spend("r1", "q", 1, study="s", data_version="1"), b"answer")
    assert ledger.spend("r2", "q", 1, study="s", data_version="1").answer == b"answer"


def test_data_of_unknown_version_are_charged_every_time(ledger):
    """TRUST 28: without a version nobody knows that the data are the same."""
    ledger.record(ledger.spend("r1", "q", "0.1", study="s"), b"answer")
    assert ledger.spend("r2", "q", "0.1", study="s").answer is None
    assert ledger.spent("s") == Fraction(2, 10)
    assert ledger.spend("r1", "q", "0.1", study="s").answer == b"answer"


def test_the_first_answer_is_the_only_one(ledger):
    """TRUST 26: a second answer to one spend is never stored, and never shown."""
    grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
    assert ledger.record(grant, b"first") == b"first"
    assert ledger.record(grant, b"second") == b"first"
    assert ledger.spend("r", "q", "0.1", study="s", data_version="1").answer == b"first"


def test_the_answer_of_a_query_is_the_one_at_the_largest_epsilon(ledger):
    for request, epsilon in (("a", "0.1"), ("b", "0.3"), ("c", "1/5")):
        ledger.record(
            ledger.spend(request, "q", epsilon, study="s", data_version="1"), request.encode()
        )
    assert ledger.answer(study="s", query="q", data_version="1") == b"b"
    assert ledger.answer(study="s", query="q", data_version="2") is None
    with pytest.raises(InvalidParameter, match="takes a request_id, or a query"):
        ledger.answer(study="s", query="q")


def test_a_grant_of_another_ledger_is_refused(ledger, tmp_path):
    """TRUST 4: no answer without a spend."""
    with Ledger.open(tmp_path / "other", new=True) as other:
        other.create("s", 1)
        grant = other.spend("r", "q", "0.1", study="s")
    with pytest.raises(InvalidParameter, match="grant must come from a spend of this ledger"):
        ledger.record(grant, b"answer")


def test_analysts_share_the_cap(ledger):
    """TRUST 21: shares are limits under the one total; together analysts gain nothing."""
    ledger.allot("ann", "0.6", study="s")
    ledger.allot("bob", "0.7", study="s")
    ledger.spend("r1", "q", "0.6", study="s", analyst="ann")
    with pytest.raises(BudgetExceeded, match="share of analyst 'ann': 0 is left"):
        ledger.spend("r2", "q", "0.1", study="s", analyst="ann")
    assert ledger.remaining("s", analyst="bob") == Fraction(4, 10)
    with pytest.raises(BudgetExceeded, match=r"study 's': 0\.4 is left"):
        ledger.spend("r3", "q", "0.5", study="s", analyst="bob")
    ledger.spend("r4", "q", "0.4", study="s", analyst="bob")
    assert (ledger.spent("s"), ledger.spent("s", analyst="bob")) == (1, Fraction(4, 10))
    ledger.verify()


def test_an_analyst_without_a_share_is_refused(ledger):
    """TRUST 21: also where the answer would be free."""
    ledger.record(ledger.spend("r1", "q", "0.1", study="s", data_version="1"), b"answer")
    with pytest.raises(BudgetExceeded, match="'eve' has no share"):
        ledger.spend("r2", "q", "0.1", study="s", data_version="1", analyst="eve")


def test_a_share_can_be_changed_within_what_was_spent_and_the_total(ledger):
    ledger.allot("ann", "0.5", study="s")
    ledger.spend("r", "q", "0.3", study="s", analyst="ann")
    for wrong in ("0.2", "1.1"):
        with pytest.raises(InvalidParameter, match="between what 'ann' has spent"):
            ledger.allot("ann", wrong, study="s")
    ledger.allot("ann", "0.3", study="s")
    assert ledger.remaining("s", analyst="ann") == 0
    assert ledger.remaining("s", analyst="nobody") == 0


def test_studies_have_budgets_of_their_own(ledger):
    ledger.create("t", 2)
    ledger.spend("r", "q", 1, study="s")
    ledger.spend("r", "q", 1, study="t")
    assert (ledger.remaining("s"), ledger.remaining("t")) == (0, 1)


def test_everything_is_there_after_a_restart(ledger, place):
    """TRUST 26: also the stored answer, byte for byte."""
    ledger.record(ledger.spend("r", "q", "0.1", study="s", data_version="1"), b"\xff\x00")
    with place.open(study="s") as again:
        assert again.export() == ledger.export()
        assert again.spend("r", "q", "0.1", study="s", data_version="1").answer == b"\xff\x00"


def test_the_export_is_json_and_holds_every_entry(ledger):
    ledger.record(ledger.spend("r", "q", "0.1", study="s"), "äther".encode())
    ledger.record(ledger.spend("r2", "q", "0.1", study="s"), b"\xff")
    exported = json.loads(ledger.export())
    assert [entry["kind"] for entry in exported["entry"]] == [
        "create",
        "spend",
        "answer",
        "spend",
        "answer",
    ]
    assert exported["entry"][2]["answer"] == "äther"
    assert exported["entry"][4]["answer"] == {"base64": "/w=="}
    assert exported["entry"][-1]["spent"] == 200_000_000


def test_a_grant_and_an_entry_do_not_print_their_answer(ledger):
    """TRUST 11: what was released is shown where it is asked for, not in logs."""
    grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
    ledger.record(grant, b"canary")
    assert "canary" not in repr(ledger.spend("r", "q", "0.1", study="s", data_version="1"))
    assert "canary" not in repr(ledger.entries())


@pytest.mark.parametrize("amount", ["NULL", "'abc'", "-1", "0", "'NaN'", "1.5", "9e99", "x'00'"])
def test_the_schema_refuses_raw_rows(ledger, place, amount):
    """TRUST 23: no float, text, NULL, zero or negative spend can be in the table. PostgreSQL rounds
    1.5 to an integer itself; then the row is refused for its hash instead."""
    row = (
        "INSERT INTO discreet_entry (study, number, kind, request_id, query, question, epsilon,"
        " amount, spent, total, time, nonce, before, hash) VALUES ('s', 2, 'spend', 'x', 'q', 'k',"
        " '1', AMOUNT, 1, 1000000000, 't', 'NONCE', HASH, HASH)"
    )
    row = row.replace("AMOUNT", amount).replace("HASH", f"'{'0' * 64}'").replace("NONCE", "0" * 32)
    if (place.kind, amount) == ("postgresql", "1.5"):
        place.execute(row)
        with pytest.raises(LedgerDamaged, match="entry 2 of study 's' was changed"):
            ledger.verify()
        return
    with pytest.raises(
        Exception, match=r"(?i)constraint|cannot store|invalid input|out of range|is of type"
    ):
        place.execute(row)
    assert ledger.verify() == 1


def test_the_schema_holds_the_cap_and_the_uniqueness(ledger, place):
    """TRUST 23: raw rows that pass the total, use a number, a request or a question twice."""
    ledger.spend("r", "q", "0.1", study="s", data_version="1")
    copy = (
        "INSERT INTO discreet_entry SELECT study, {number}, kind, {request}, analyst, query,"
        " data_version, {question}, epsilon, amount, {spent}, total, answer, terms, asked, time,"
        " nonce, before, hash FROM discreet_entry WHERE number = 2"
    )
    good = {"number": "3", "request": "'new'", "question": "'new'", "spent": "spent"}
    for change in (
        {"number": "2"},
        {"request": "request_id"},
        {"question": "question"},
        {"spent": "total + 1"},
    ):
        with pytest.raises(Exception, match=r"(?i)constraint"):
            place.execute(copy.format(**{**good, **change}))
    assert ledger.verify() == 2


def test_an_entry_keeps_what_was_typed(ledger):
    """The spend and each repeat have their own spelling, in printable text; the question is one."""
    for request, typed in (
        ("r1", "SELECT  count(*)\n"),
        ("r2", "select count(*) -- \x1b\ud800"),
        ("r3", None),
    ):
        ledger.spend(request, "q", "0.1", study="s", data_version="1", asked=typed)
    ledger.spend("r4", "q2", "0.1", study="s", data_version="1", asked="x" * 30_000)
    entries = {
        entry.request_id: entry
        for entry in ledger.entries("s")
        if entry.kind in ("spend", "repeat")
    }
    asked = [entries[request].asked for request in ("r1", "r2", "r3")]
    assert asked == ["SELECT  count(*)\n", "select count(*) -- \\x1b\\ud800", None]
    assert [entries[request].kind for request in ("r1", "r2", "r3")] == [
        "spend",
        "repeat",
        "repeat",
    ]
    assert entry_text(entries["r1"]) == "SELECT count(*)"
    assert len(entries["r4"].asked) == 20_000
    ledger.spend("r5", "q2", "0.1", study="s", data_version="1", asked="x" * 30_000)
    assert len(ledger.entry("r5", study="s").asked) == 1_000  # it is free, and stays small
    assert ledger.spent("s") == Fraction(1, 5)
    assert ledger.verify() == 6


def test_a_new_ledger_is_made_only_where_there_is_none(ledger, place):
    """TRUST 24: never a fresh budget over an old one."""
    with pytest.raises(InvalidParameter, match="open it without new"):
        place.open(new=True)
    assert ledger.verify() == 1


def test_addresses_that_are_none_are_refused(tmp_path):
    for where in ("mysql://host/x", "sqlite:///x", "://", "postgres://u:hidden@h/x"):
        with pytest.raises(InvalidParameter, match="postgresql://") as refusal:
            Ledger.open(where, anchor=tmp_path / "a")
        assert "hidden" not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="anchor must be given"):
        Ledger.open("postgresql://host/x")


def test_a_server_that_does_not_answer_is_an_engine_failure(tmp_path):
    """TRUST 29: and its password is not in the error."""
    from discreet import EngineFailed

    with pytest.raises(EngineFailed) as refusal:
        Ledger.open(
            "postgresql://u:hidden@127.0.0.1:1/x?connect_timeout=2", anchor=tmp_path / "a", new=True
        )
    assert "hidden" not in str(refusal.value)
    assert not (tmp_path / "a").exists()


def test_a_commit_waits_for_the_disk(place):
    """TRUST 5: whatever the default of the server or of SQLite is."""
    if place.kind == "postgresql":
        place = replace(place, where=place.where + "%20-csynchronous_commit%3Doff")
    with place.open(new=True) as ledger, ledger._book.database.transaction() as connection:
        if place.kind == "postgresql":
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        else:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "truncate"
