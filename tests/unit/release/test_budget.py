"""The first spend creates the ledger: what refuses a plan fixes nothing, and nothing spent may be
corrected.
"""

import threading
from multiprocessing import get_context
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import BudgetExceeded, InvalidParameter, Ledger, LedgerDamaged, Policy, Study
from discreet.errors import SourceChanged
from discreet.release.budget import Budget
from shell import one_after_another

DATA = pa.table({"who": ["a", "b", "b"], "home": ["x", "x", "y"], "age": [1.0, 2.0, 3.0]})
ASKED = "SELECT avg(age) FROM people"
TOML = 'source = "people.parquet"\nepsilon = "{}"\n{}\n[columns]\n{} = {{ bounds = [0, 9] }}\n'


@pytest.fixture
def folder(tmp_path):
    pq.write_table(DATA, tmp_path / "people.parquet")
    return tmp_path


def write(folder, epsilon="1", unit="", column="age"):
    (folder / "study.toml").write_text(TOML.format(epsilon, unit, column))
    return folder / "study.toml"


def policy(**terms):
    return Policy(
        source=DATA, table="people", columns={"age": {"bounds": (0, 9)}}, **{"epsilon": 1, **terms}
    )


def entries(folder):
    return sorted(file.name for file in folder.glob("*.ledger*"))


def test_a_refused_plan_creates_nothing_and_its_policy_can_be_corrected(folder):
    with discreet.open(write(folder, column="agee")) as study:
        with pytest.raises(InvalidParameter, match="the data has no such column"):
            study.sql(ASKED, epsilon=1)
        assert (study.spent, study.remaining) == (0, 1)
    assert entries(folder) == []
    with discreet.open(write(folder, "2", 'unit = "who"\nmax_rows = 2')) as study:
        answer = study.sql(ASKED, epsilon=1).release()
        assert (answer.remaining, study.spent, study.remaining) == (1, 1, 1)
        assert study.ledger.promise("study") == study.policy.promise
    with pytest.raises(InvalidParameter, match="epsilon of the policy must be 2"):
        discreet.open(write(folder, "3", 'unit = "who"\nmax_rows = 2'))
    with pytest.raises(InvalidParameter, match=r"the policy must promise what .*: max_rows = 2"):
        discreet.open(write(folder, "2", 'unit = "who"\nmax_rows = 1'))


def test_nothing_that_is_free_and_nothing_that_is_refused_creates_a_ledger(folder):
    with discreet.open(write(folder)) as study:
        plan = study.sql(ASKED, epsilon="0.5")
        assert all(
            [
                repr(plan),
                repr(study),
                study.card(),
                study.kept,
                study.report({"a": ASKED}, epsilon=1).table,
            ]
        )
        assert plan.asked_before == ""
        assert study.card().content["accounting"]["at_entry"] == 0
        assert study.sql("SELECT count(*) FROM people", epsilon=1).release()["count(*)"] == [3]
        for refused in (
            study.sql(ASKED, epsilon=2),
            study.sql(f"{ASKED} WHERE age > 1", epsilon=2),
        ):
            with pytest.raises(
                BudgetExceeded, match="what is left of study 'study': 1 is left, 2 was asked for"
            ):
                refused.release()
        with pytest.raises(BudgetExceeded, match="analyst 'ann' has no share of study 'study'"):
            plan.release(analyst="ann")
        pq.write_table(pa.table({"age": ["x"]}), folder / "people.parquet")
        with pytest.raises(SourceChanged):
            plan.release()
    assert entries(folder) == []


def test_a_missing_ledger_beside_its_anchor_stays_refused(folder):
    with discreet.open(write(folder)) as study:
        study.sql(ASKED, epsilon="0.5").release()
    (folder / "study.ledger").rename(folder / "away")
    with pytest.raises(LedgerDamaged, match=r"there is no ledger in study\.ledger"):
        discreet.open(folder / "study.toml")
    with Study(policy(), ledger=folder / "b") as study:
        plan = study.sql(ASKED, epsilon="0.5")
        (folder / "b.anchor").write_bytes((folder / "study.ledger.anchor").read_bytes())
        with pytest.raises(LedgerDamaged, match="there is no ledger in b"):
            plan.release()


def test_a_ledger_that_another_process_made_meanwhile_decides(tmp_path):
    first, second = (
        Study(policy(**terms), ledger=tmp_path / "l")
        for terms in ({}, {"unit": "who", "max_rows": 2})
    )
    plan = second.sql(ASKED, epsilon="0.5")
    first.sql(ASKED, epsilon="0.25").release()
    with pytest.raises(
        InvalidParameter, match="the policy must promise what the ledger was created with"
    ):
        plan.release()
    with Ledger.open(tmp_path / "l") as ledger:
        assert ledger.spent("study") == ledger.total("study") / 4


def test_a_spender_that_was_open_before_a_correction_is_refused(place):
    """Also right at the lock: what a process saw when it opened the study may have been corrected
    since.
    """
    with place.open(new=True) as ledger, place.open() as other:
        ledger.create("study", 1, promise=policy().promise)
        study = Study(policy(), ledger=ledger)
        plan = study.sql(ASKED, epsilon="0.5")
        other.correct("study", 2, promise=policy(unit="who", max_rows=2).promise)
        for _ in range(2):
            with pytest.raises(InvalidParameter, match="epsilon of the policy must be 2"):
                plan.release()
        other.correct("study", 1, promise=policy(unit="who", max_rows=2).promise)
        with pytest.raises(
            InvalidParameter, match="promise what the ledger was created with: max_rows = 2"
        ):
            plan.release()
        assert other.spent("study") == 0
        other.correct("study", 1, promise=policy().promise)
        plan.release()
        assert (other.spent("study"), other.verify()) == (plan.epsilon, 6)
    with place.open() as ledger:
        assert ledger.promised("study") == (1, policy().promise)
        assert ledger.verify() == 6


@pytest.mark.parametrize("use", ["spend", "allot"])
def test_once_something_was_spent_or_allotted_nothing_is_corrected(place, use):
    with place.open(new=True) as ledger:
        ledger.create("study", 1, promise=policy().promise)
        if use == "spend":
            ledger.spend("one", "q", "0.1", study="study")
        else:
            ledger.allot("ann", "0.1", study="study")
        with pytest.raises(InvalidParameter, match="of which something was spent or allotted"):
            ledger.correct("study", 2, promise=policy().promise)
        assert ledger.promised("study") == (1, policy().promise)


def test_an_edited_correction_is_noticed(place):
    with place.open(new=True) as ledger:
        ledger.create("study", 1, promise=policy().promise)
        ledger.correct("study", 1, promise=policy(unit="who", max_rows=2).promise)
        place.execute("UPDATE discreet_entry SET terms = replace(terms, '2', '9') WHERE number = 2")
        with pytest.raises(LedgerDamaged, match="entry 2 of study 'study' was changed"):
            ledger.promise("study")


def test_a_total_that_was_lowered_is_the_one_that_counts(place):
    with place.open(new=True) as ledger:
        ledger.create("study", 5, promise=policy().promise)
        ledger.correct("study", 1, promise=policy().promise)
        ledger.spend("one", "q", "0.9", study="study")
        with pytest.raises(BudgetExceeded):
            ledger.spend("two", "p", "0.2", study="study")
    with place.open() as ledger:
        assert ledger.remaining("study") * 10 == 1
        assert ledger.verify() == 3


def first_spender(where, total, results):
    study = Study(policy(epsilon=total, version="1"), ledger=where)
    plan = study.sql(ASKED, epsilon="0.5")
    results.put("open")
    while not where.with_name("go").exists():
        pass
    try:
        results.put(plan.release()["avg(age)"])
    except InvalidParameter as refusal:
        results.put(str(refusal))


@pytest.mark.parametrize("totals", [(1, 1, 1), (1, 2, 3)])
def test_of_first_spenders_at_once_one_creates_the_ledger(tmp_path, totals):
    context = get_context("spawn")
    results = context.Queue()
    workers = [
        context.Process(target=first_spender, args=(tmp_path / "l", total, results))
        for total in totals
    ]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=60) for _ in workers] == ["open"] * 3
    (tmp_path / "go").touch()
    told = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    with Ledger.open(tmp_path / "l") as ledger:
        assert ledger.spent("study") * 2 == 1
        assert [entry.kind for entry in ledger.entries("study")].count("create") == 1
    answers = [one for one in told if not isinstance(one, str)]
    assert len({str(answer) for answer in answers}) == 1
    assert len(answers) == (3 if len(set(totals)) == 1 else 1), told


def test_threads_of_one_study_create_one_ledger(tmp_path):
    study, barrier = Study(policy(version="1"), ledger=tmp_path / "l"), threading.Barrier(4)

    def ask(at: int) -> None:
        barrier.wait()
        study.sql(f"{ASKED} WHERE age > {at}", epsilon="0.25").release()

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (study.remaining, study.ledger.verify()) == (0, 9)


def test_after_its_first_spend_a_study_looks_at_its_promise_no_more(tmp_path):
    with Study(policy(version="1"), ledger=tmp_path / "l") as study:
        study.sql(ASKED, epsilon="0.25").release()
        with (
            mock.patch.object(Ledger, "spend", side_effect=RuntimeError) as spend,
            pytest.raises(RuntimeError),
        ):
            study.sql(ASKED, epsilon="0.5").release()
        assert spend.call_args.kwargs["promised"] is None


def test_a_ledger_in_memory_is_created_by_the_first_spend_and_removed():
    study = Study(policy(version="1"), ledger="memory")
    database, anchor = study.budget.files
    assert not database.exists()
    study.sql(ASKED, epsilon="0.25").release()
    assert database.exists()
    assert anchor.exists()
    study.close()
    assert not database.parent.exists()


def test_a_name_or_a_total_that_no_ledger_holds_is_refused_when_the_study_is_opened(tmp_path):
    for terms in ({"name": "a\0"}, {"name": ""}):
        with pytest.raises(InvalidParameter, match="study must be printable text"):
            Study(policy(), ledger=tmp_path / "l", **terms)
    with pytest.raises(InvalidParameter):
        Study(policy(epsilon="1e-12"), ledger=tmp_path / "l")


def test_the_command_corrects_a_promise_of_which_nothing_was_spent(folder):
    write(folder, "5")
    created, shown = one_after_another(
        [["ledger", "create", "study.toml"], ["ledger", "show", "study.toml"]], folder
    )
    assert (created.code, shown.code) == (0, 0)
    assert "study has a total of ε 5." in created.out
    write(folder, "2", 'unit = "who"\nmax_rows = 2')
    question = ["study.toml", ASKED, "--epsilon", "1", "--size", "3"]
    commands = [["plan", *question], ["ledger", "create", "study.toml"], ["release", *question]]
    refused, corrected, released = one_after_another(commands, folder)
    refused.refused(
        2,
        "epsilon of the policy must be 5",
        "if nothing was spent or allotted yet, discreet ledger create",
    )
    assert "study now has a total of ε 2." in corrected.out
    assert "ε 1 spent, 1 left" in released.out
    write(folder, "3", 'unit = "who"\nmax_rows = 2')
    [late] = one_after_another([["ledger", "create", "study.toml"]], folder)
    late.refused(2, "something was spent or allotted")


def test_the_budget_of_a_ledger_that_is_given_is_of_that_ledger(tmp_path):
    with Ledger.open(tmp_path / "l", new=True) as ledger:
        ledger.create("a", 1, promise=policy().promise)
        assert Budget(ledger, "a", policy()).files == ledger.files
        with pytest.raises(LedgerDamaged, match="study 'b' is not in this ledger"):
            Budget(ledger, "b", policy())
