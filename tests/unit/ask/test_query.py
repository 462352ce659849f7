"""Queries as values: one text, private names by content."""

from __future__ import annotations

import pytest

from asking import POLICY, SCHEMA, one_text, query
from discreet.ask.policy import Policy
from discreet.ask.query import Count, Group, Named, Query, canonical, released
from discreet.ask.sql import parse


def test_what_is_done_afterwards_is_not_in_the_text() -> None:
    plain = "SELECT county, count(*) FROM t GROUP BY county"
    assert one_text(plain) == one_text(f"{plain} HAVING count(*) > 3 ORDER BY 2 LIMIT 1")
    assert one_text(plain) == one_text("SELECT 2 * count(*) AS twice FROM t GROUP BY county")


def test_two_queries_of_one_text_name_their_numbers_alike() -> None:
    left = query("SELECT sex, county, sum(age) s, count(*) n FROM t GROUP BY sex, county")
    right = query("SELECT count(*) n, sum(age) s, county, sex FROM t GROUP BY county, sex, county")
    assert canonical(left) == canonical(right)
    assert left.aggregates == right.aggregates
    assert left.groups == right.groups
    assert dict(left.outputs) == dict(right.outputs)


def test_a_quantile_of_several_shares_releases_a_number_for_each() -> None:
    [(name, one)] = query("SELECT quantile(age, [0.1, 0.5]), median(age) m FROM t").aggregates
    assert released(name, one) == ("a1.0", "a1.1")
    assert released("a1", Count()) == ("a1",)


@pytest.mark.parametrize(
    "change",
    [
        {"age": {"bounds": [0, 121]}},
        {"age": {"bounds": [0, 120], "missing": 0}},
        {"age": {"bounds": [0, 120], "precision": 2}},
        {"county": {"keys": ["Suffolk", "Kings"], "other": "elsewhere"}},
        {"county": {"keys": ["Kings", "Suffolk", "Bronx"], "other": "elsewhere"}},
        {"county": {"keys": ["Suffolk", "Kings", "Bronx"]}},
    ],
)
def test_what_the_policy_says_is_in_the_text(change: dict[str, object]) -> None:
    text = "SELECT county, sum(age) FROM t GROUP BY county"
    other = Policy(
        source="x",
        table="t",
        unit="patient",
        max_rows=4,
        epsilon=1,
        columns={**POLICY.columns, **change},
    )
    assert canonical(parse(text, other, SCHEMA)) != one_text(text)


def test_many_keys_are_in_the_text_by_their_hash() -> None:
    def text(last: int) -> str:
        policy = Policy(source="x", table="t", epsilon=1, columns={"age": {"keys": f"0..{last}"}})
        return canonical(parse("SELECT age, count(*) FROM t GROUP BY age", policy, SCHEMA))

    assert len(text(10**4)) < 200
    assert text(10**4) != text(10**4 + 1)


def test_truths_and_numbers_are_different_keys() -> None:
    from discreet.ask.expression import Column

    def text(keys: tuple[object, ...]) -> str:
        group = Group("g1", Column("x", "number"), keys)
        return canonical(
            Query(aggregates=(("a1", Count()),), outputs=(("n", Named("a1")),), groups=(group,))
        )

    assert text((False, True)) != text((0, 1))


def test_a_group_has_a_label_for_each_row() -> None:
    from discreet.ask.expression import Column

    group = Group("g1", Column("x", "number"), (2, 1), "rest")
    assert group.size == len(group.labels()) == 3
    assert group.labels().to_pylist() == ["2", "1", "rest"]
    assert Group("g1", Column("x", "number"), (2, 1)).labels().to_pylist() == [2, 1]
