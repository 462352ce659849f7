"""Trust 28: one question in fifty spellings is one charge and one answer; when the data change, it
is a new one.
"""

import itertools
import json
from fractions import Fraction
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from discreet import Count, Mean, Policy, Study
from discreet.engines.duckdb import DuckDB
from studies import study_of, table_of

ROWS = [
    {"place": "north" if at % 3 else "south", "level": 1 + at % 2, "age": at % 11, "pay": 1.5}
    for at in range(40)
]

HEADS = [
    "SELECT place, count(*) AS people, avg(age) AS mean",
    "select place,COUNT(*) people , AVG ( age ) mean",
]
TABLES = ["FROM data", "from DATA", 'FROM "data" AS d']
WHERES = [
    "WHERE age >= 2 AND pay > 1",
    "where pay > 1.0 and (age >= 2)",
    "WHERE NOT (age < 2) AND 1 < pay",
    "WHERE (2 <= age) AND ((pay > 1e0)) /* the same */",
    "WHERE pay > 1 AND age >= 2 AND TRUE",
]
ENDS = ["GROUP BY place", "group by 1 -- by place"]
SPELLINGS = ["\n".join(parts) for parts in itertools.product(HEADS, TABLES, WHERES, ENDS)][:50]


def test_fifty_spellings_are_one_charge_and_one_answer_byte_for_byte(tmp_path):
    assert len(set(SPELLINGS)) == 50
    epsilons = itertools.cycle(["0.2", 0.2, "1/5", Fraction(1, 5), "2e-1", "0.20"])
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1) as here:
        contents = {here.sql(text, epsilon=next(epsilons)).release().content for text in SPELLINGS}
        asked = (
            here.where("age >= 2")
            .where("pay > 1")
            .by("place")
            .ask(people=Count(), mean=Mean("age"))
        )
        contents.add(asked.plan(epsilon="0.2").release().content)
        assert len(contents) == 1
        assert here.spent == Fraction(1, 5)
        kinds = [entry.kind for entry in here.ledger.entries()]
        assert (kinds.count("spend"), kinds.count("answer")) == (1, 1)


def test_what_is_done_to_released_numbers_is_no_new_question(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1) as here:
        base = "SELECT place, count(*) AS people, avg(age) AS mean FROM data GROUP BY place"
        first = here.sql(base, epsilon="0.2").release()
        for more in (
            "ORDER BY people DESC",
            "HAVING count(*) > 3",
            "LIMIT 1",
            "ORDER BY 3 LIMIT 2",
        ):
            again = here.sql(f"{base} {more}", epsilon="0.2").release()
            assert again.content == first.content
        other = here.sql(
            "SELECT avg(age) - 1 AS less, count(*) * 2 AS twice FROM data GROUP BY place",
            epsilon="0.2",
        )
        assert other.release()["twice"] == [2.0 * people for people in first["people"]]
        assert here.spent == Fraction(1, 5)


DIFFERENT = [
    ("SELECT count(*) FROM data GROUP BY place", {}),
    ("SELECT count(*) FROM data GROUP BY level", {}),
    ("SELECT count(*) FROM data WHERE age > 2 GROUP BY place", {}),
    ("SELECT count(*) FROM data WHERE age > 2.5 GROUP BY place", {}),
    ("SELECT count(age) FROM data GROUP BY place", {}),
    ("SELECT count(*), avg(age) FROM data GROUP BY place", {}),
    ("SELECT count(*), avg(age) FROM data GROUP BY place", {"weights": {"count(*)": 1000}}),
    ("SELECT count(*), avg(age) FROM data GROUP BY place", {"confidence": "0.9"}),
    ("SELECT count(*), avg(age) FROM data GROUP BY place", {"simultaneous": True}),
]


def test_questions_that_differ_are_charged_each(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1) as here:
        plans = [here.sql(text, epsilon="0.1", **terms) for text, terms in DIFFERENT]
        assert len({plan.canonical for plan in plans}) == len(DIFFERENT)
        assert len({plan.release().content for plan in plans}) == len(DIFFERENT)
        assert here.spent == Fraction(len(DIFFERENT), 10)


def test_asked_again_by_the_same_plan_it_is_the_same_answer_for_nothing(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1) as here:
        plan = here.sql(SPELLINGS[0], epsilon="0.2")
        answer = plan.release()
        assert plan.release() == answer
        assert here.remaining == Fraction(4, 5)
    with study_of(
        ROWS, tmp_path / "study.ledger", epsilon=1, version=here.policy.version
    ) as reopened:
        assert reopened.sql(SPELLINGS[1], epsilon="0.2").release() == answer
        assert reopened.remaining == Fraction(4, 5)


def test_changed_data_are_charged_anew_and_unchanged_data_are_not(tmp_path):
    source = tmp_path / "people.parquet"
    pq.write_table(table_of(ROWS), source)
    policy = Policy(
        source=str(source),
        epsilon=1,
        columns={"place": {"keys": ["north", "south"]}, "age": {"bounds": (0, 10)}},
    )
    question = "SELECT count(*), avg(age) FROM people GROUP BY place"
    with Study(policy, ledger=tmp_path / "study.ledger") as here:
        first = here.sql(question, epsilon="0.2").release()
        assert here.sql(question, epsilon="0.2").release().content == first.content
        pq.write_table(pa.concat_tables([table_of(ROWS)] * 2), source)
        second = here.sql(question, epsilon="0.2")  # of the same open study
        assert second.release().content != first.content
        assert here.spent == Fraction(2, 5)
        pq.write_table(table_of(ROWS), source)
    with Study(policy, ledger=tmp_path / "study.ledger") as here:
        assert here.sql(question, epsilon="0.2").release().content == first.content
        assert here.spent == Fraction(2, 5)


def test_the_hash_of_the_content_is_not_in_what_is_released(tmp_path):
    # it would tell the whole table to whoever can guess all of it but one row
    source = tmp_path / "people.parquet"
    pq.write_table(table_of(ROWS), source)
    policy = Policy(source=str(source), epsilon=1, columns={"age": {"bounds": (0, 10)}})
    with Study(policy, ledger=tmp_path / "study.ledger") as here:
        answer = here.sql("SELECT sum(age) FROM people", epsilon="0.2").release()
        assert here.version not in json.dumps(answer.full_record)
        assert answer.record["data_version"] is None
        assert here.ledger.entries()[-1].kind == "answer"


def test_control_a_version_that_does_not_move_with_the_data_is_caught(tmp_path):
    source = tmp_path / "people.parquet"
    pq.write_table(table_of(ROWS), source)
    policy = Policy(source=str(source), epsilon=1, columns={"age": {"bounds": (0, 10)}})
    with (
        Study(policy, ledger=tmp_path / "study.ledger") as here,
        mock.patch.object(DuckDB, "version", return_value="1"),
    ):
        here.sql("SELECT sum(age) FROM people", epsilon="0.2").release()
        pq.write_table(table_of(ROWS[:3]), source)
        here.sql("SELECT sum(age) FROM people", epsilon="0.2").release()
        assert here.spent == Fraction(1, 5)  # one charge for two states of the data


def test_other_bounds_are_another_question(tmp_path):
    rows = [{**row, "who": "a"} for row in ROWS]
    terms = {"unit": "who", "max_rows": 2, "epsilon": 1, "version": "1"}
    question = "SELECT avg(age) FROM data"
    with study_of(rows, tmp_path / "study.ledger", **terms) as here:
        here.sql(question, epsilon="0.2").release()
    with study_of(
        rows, tmp_path / "study.ledger", **terms, columns={"age": {"bounds": [0, 9]}}
    ) as here:
        here.sql(question, epsilon="0.2").release()
        assert here.spent == Fraction(2, 5)
