"""Trust 4: whatever fails between a request and its answer, if a row was read, a committed spend
exists.

An exception is thrown at every step, one at a time, before it and after it; then the ledger is
opened again from disk. The control reads first and spends afterwards, and must be caught.
"""

import contextlib
import sqlite3
from fractions import Fraction
from unittest import mock

import pytest

from discreet import BudgetExceeded, EngineFailed, InvalidParameter
from discreet.engines.duckdb import DuckDB
from discreet.ledger.grant import Grant
from discreet.ledger.ledger import Ledger as Book
from discreet.records import Record
from discreet.release import answer as answers
from discreet.release import mechanism, plan, study
from discreet.release.statistics import families
from studies import select, study_of

ROWS = [
    {"who": f"u{at % 4}", "place": "north", "age": at, "pay": 1.0, "well": True} for at in range(8)
]
QUESTION = select("place, count(*) AS people, avg(age), median(age)", "GROUP BY place")
STEPS = [
    (study, "parse"),
    (study.Study, "version"),
    (Book, "spend"),
    (plan, "Request"),
    (DuckDB, "fetch"),
    (DuckDB, "_run"),
    (families, "noisy_columns"),
    (mechanism, "noisy_each"),
    (mechanism, "choose"),
    (plan.json, "dumps"),
    (Book, "record"),
    (Record, "pack"),
    (Grant, "remaining"),
    (plan, "Answer"),
    (answers, "unpack"),
]


class Broken(Exception):
    """What goes wrong."""


@contextlib.contextmanager
def failing(owner, name, *, before):
    real = getattr(owner, name)
    if isinstance(real, property):
        failed = property(lambda _self: (_ for _ in ()).throw(Broken))
    else:

        def failed(*given, **named):
            if not before:
                real(*given, **named)
            raise Broken

    with mock.patch.object(owner, name, failed):
        yield


@contextlib.contextmanager
def watched():
    """The statements that were run."""
    reads = []
    real = DuckDB._tables

    def queried(self, sql, *given):
        reads.append(sql)
        return real(self, sql, *given)

    with mock.patch.object(DuckDB, "_tables", queried):
        yield reads


def on_disk(path):
    """Spends that another process would find, and answers; the first spend creates the file."""
    if not path.exists():
        return 0, 0
    with contextlib.closing(sqlite3.connect(path)) as connection:
        kinds = [
            kind
            for (kind,) in connection.execute("SELECT kind FROM discreet_entry ORDER BY number")
        ]
    return kinds.count("spend"), kinds.count("answer")


def kept(reads, spends) -> bool:
    """Whether a spend stands for what was read."""
    return not reads or spends == 1


def asked(here):
    found = here.sql(QUESTION, epsilon="0.3").release(request_id="one")
    return found.rows


def broken(here, owner, name, *, before) -> list[str]:
    """What was read by a release that fails at this step."""
    with watched() as reads, failing(owner, name, before=before), pytest.raises(Broken):
        asked(here)
    return reads


def reported(here):
    tables = {
        "places": select("place, count(*), avg(age)", "GROUP BY place"),
        "all": select("count(*)"),
    }
    return here.report(tables, epsilon="0.3").release(request_id="one")


def spent_before_every_read(here, path, ask=asked) -> bool:
    """Whether each read found a spend on disk."""
    real, fine = DuckDB.fetch, []

    def fetch(self, request):
        fine.append(on_disk(path)[0] >= 1)
        return real(self, request)

    with mock.patch.object(DuckDB, "fetch", fetch), contextlib.suppress(Broken):
        ask(here)
    return bool(fine) and all(fine)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_failure_at_any_step_leaves_no_row_read_without_a_spend(tmp_path, owner, name, before):
    path = tmp_path / "study.ledger"
    with study_of(ROWS, path, unit="who", max_rows=2, epsilon=1, version="1") as here:
        reads = broken(here, owner, name, before=before)
    spends, answered = on_disk(path)
    assert kept(reads, spends)
    assert answered <= spends <= 1
    with study_of(ROWS, path, unit="who", max_rows=2, epsilon=1, version="1") as again:
        assert again.spent == Fraction(3, 10) * spends
        first = asked(again)
        assert again.spent == Fraction(3, 10)  # never charged twice, and never free
        assert asked(again) == first


@pytest.mark.parametrize(
    "failure", [EngineFailed("DuckDB could not do it"), KeyboardInterrupt(), MemoryError()]
)
def test_what_fails_after_the_spend_stays_spent_and_can_be_asked_again_for_nothing(
    tmp_path, failure
):
    told = EngineFailed if isinstance(failure, MemoryError) else type(failure)
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        plan_ = here.sql(QUESTION, epsilon="0.3")
        with mock.patch.object(DuckDB, "fetch", side_effect=failure), pytest.raises(told):
            plan_.release()
        assert here.spent == Fraction(3, 10)
        answer = plan_.release()
        assert here.spent == Fraction(3, 10)
        assert plan_.release().content == answer.content


def test_a_repeated_request_gives_the_stored_bytes_and_reads_nothing(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        plan_ = here.sql(QUESTION, epsilon="0.3")
        answer = plan_.release(request_id="one")
        with mock.patch.object(DuckDB, "fetch", side_effect=AssertionError("a row was read")):
            assert plan_.release(request_id="one").content == answer.content
            assert plan_.release(request_id="two").content == answer.content
        with pytest.raises(InvalidParameter, match="request_id must be new"):
            here.sql(QUESTION, epsilon="0.2").release(request_id="one")
        assert here.spent == Fraction(3, 10)


def test_what_is_too_dear_reads_nothing(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        plan_ = here.sql(QUESTION, epsilon="1.1")
        unread = mock.patch.object(DuckDB, "fetch", side_effect=AssertionError("a row was read"))
        with unread, pytest.raises(BudgetExceeded):
            plan_.release()
        assert here.spent == 0


def test_planning_and_printing_read_nothing_and_spend_nothing(tmp_path):
    with study_of(
        ROWS, tmp_path / "study.ledger", unit="who", max_rows=2, epsilon=1, version="1"
    ) as here:
        with mock.patch.object(DuckDB, "_run", side_effect=AssertionError("a row was read")):
            repr(here.sql(QUESTION, epsilon="0.3"))
            repr(here.sql(select("count(*)", "GROUP BY place"), within=5))
            repr(here)
        assert on_disk(tmp_path / "study.ledger") == (0, 0)


def test_the_spend_is_on_disk_when_the_engine_is_called(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        assert spent_before_every_read(here, tmp_path / "study.ledger")


def test_the_spend_of_a_report_is_on_disk_when_the_engine_is_called(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        assert spent_before_every_read(here, tmp_path / "study.ledger", reported)


@pytest.mark.parametrize(
    "failure", [EngineFailed("DuckDB could not do it"), KeyboardInterrupt(), MemoryError()]
)
def test_a_report_that_fails_after_the_spend_can_be_asked_again_for_nothing(tmp_path, failure):
    told = EngineFailed if isinstance(failure, MemoryError) else type(failure)
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        with mock.patch.object(DuckDB, "fetch", side_effect=failure), pytest.raises(told):
            reported(here)
        assert here.spent == Fraction(3, 10)
        content = reported(here).content
        assert here.spent == Fraction(3, 10)
        assert reported(here).content == content


def test_control_reading_first_and_spending_afterwards_is_caught(tmp_path):
    real = plan.Plan.release

    def read_first(self, **named):
        content = self._answered(self._blank())
        with mock.patch.object(plan.Plan, "_answered", return_value=content):
            return real(self, **named)

    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as here:
        mistaken = mock.patch.object(plan.Plan, "release", read_first)
        with mistaken:
            assert not spent_before_every_read(here, tmp_path / "study.ledger")


def test_control_a_refund_on_error_is_caught(tmp_path):
    """A ledger whose spend goes away when the release fails would let it be asked without end."""
    path = tmp_path / "study.ledger"

    def spend_in_memory(_self, request_id, _query, epsilon, *, study, **_):
        return Grant(
            study=study,
            request_id=request_id,
            question="",
            epsilon=epsilon,
            analyst=None,
            repeated=False,
            answer=None,
        )

    forgetful = mock.patch.object(Book, "spend", spend_in_memory)
    with study_of(ROWS, path, epsilon=1, version="1") as here, forgetful:
        reads = broken(here, DuckDB, "_run", before=False)
    assert not kept(reads, on_disk(path)[0])
