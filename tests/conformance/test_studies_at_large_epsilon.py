"""At ε = 10⁶ every answer is what plain DuckDB says of the same rows, clamped alike, within a step
of the grid.

Several hundred questions are made by a seeded generator over the grammar: aggregates × expressions
× WHERE × GROUP BY. Counts, and sums of integers, are equal. Other numbers lie within their own
interval at 1 − 10⁻¹², which is narrow here, and a step of the grid beside it, so that one in 10⁸
runs of them all fails by chance. A quantile lies between the neighbours of its rank. Minimum and
maximum aim a little inside on purpose, and need only lie in the range of the data.
"""

import math
import random
from collections import Counter
from dataclasses import replace

import duckdb
import pytest

from discreet.ask.query import Count, Extreme, Moment, Named, Quantiles
from studies import Paper, select, study_of, table_of

QUESTIONS = 120
LARGEST = 10**6
LEVEL = "0.999999999"
PLACES, LEVELS = ["north", "south", "west"], [1, 2]
COLUMNS = {
    "place": {"keys": PLACES, "other": "elsewhere"},
    "level": {"keys": LEVELS},
    "age": {"bounds": [0, 90]},
    "pay": {"bounds": [-50, 150]},
}


def table(rows: int = 600) -> list[dict]:
    rng = random.Random(7)
    special = [None, math.nan, math.inf, -math.inf, -0.0, 1e300, -50.0, 150.0, 1e-7]
    return [
        {
            "who": f"u{rng.randrange(rows // 2)}",
            "place": rng.choice([*PLACES, *PLACES, "nowhere", "", None]),
            "level": rng.choice([1, 2, 2, 3, None]),
            "age": rng.choice([None, -3, 120, 2**40, *range(91)]),
            "pay": rng.choice(special) if rng.random() < 0.2 else rng.gauss(40, 60),
            "well": rng.choice([True, False, None]),
        }
        for _ in range(rows)
    ]


ROWS = table()

NUMBERS = [
    "age",
    "pay",
    "age * 2 - 10",
    "pay / 4",
    "abs(pay)",
    "least(age, 30)",
    "greatest(pay, 0) + age",
    "CASE WHEN well THEN age ELSE 0 END",
    "coalesce(age, 7)",
    "floor(pay / 10)",
    "CASE WHEN pay > 40 THEN 1 WHEN pay <= 40 THEN 0 END",
]
MEANT = {
    "least(age, 30)": "CASE WHEN age < 30 THEN age WHEN age >= 30 THEN 30 END",
    "greatest(pay, 0) + age": "CASE WHEN pay > 0 THEN pay WHEN pay <= 0 THEN 0 END + age",
}
"""DuckDB's own LEAST and GREATEST skip what is missing; here a function of a missing value is
missing.
"""
TRUTHS = [
    "well",
    "age >= 30",
    "pay > 0 OR well",
    "place = 'north'",
    "age BETWEEN 10 AND 60",
    "NOT well",
]
CONDITIONS = [
    *TRUTHS,
    "age IS NOT NULL",
    "pay IS NULL",
    "level IN (1, 3)",
    "place LIKE 'n%'",
    "place <> 'south' AND pay < 90",
    "lower(place) = 'west' OR age < 5",
    "age * 2 > pay",
    "length(place) = 5",
    "coalesce(age, 0) <= 45",
]
MOMENTS = ["sum", "avg", "var_pop", "variance", "stddev", "stddev_pop", "var_samp"]
SHARES = ["0.1", "0.25", "0.5", "0.9"]
GROUPS = {
    "": [],
    "place": [
        ("place", "CASE WHEN place IN ('north', 'south', 'west') THEN place ELSE 'elsewhere' END")
    ],
    "level": [("level", "CASE WHEN level IN (1, 2) THEN level END")],
    "well": [("well", "well")],
    "bin(age, 0, 18, 65, 90)": [
        (
            "bin(age, 0, 18, 65, 90)",
            (
                "CASE WHEN age >= 0 AND age < 18 THEN '[0, 18)' WHEN age >= 18 AND age < 65 THEN"
                " '[18, 65)' WHEN age >= 65 AND age <= 90 THEN '[65, 90]' END"
            ),
        )
    ],
}
GROUPS["place, level"] = GROUPS["place"] + GROUPS["level"]
GROUPS["well, place"] = GROUPS["well"] + GROUPS["place"]


def questions():
    """(aggregates, WHERE, GROUP BY), each aggregate as (how it is asked, what it is of, or None).

    Those of one question are about few columns and conditions, so that some of them are joined.
    """
    rng = random.Random(11)
    for _ in range(QUESTIONS):
        asked = []
        numbers, truths = rng.sample(NUMBERS, 2), rng.sample(TRUTHS, 1)
        for _ in range(rng.randint(1, 4)):
            number = rng.choice(numbers)
            kind = rng.randrange(10)
            if kind == 0:
                asked.append(("count(*)", None))
            elif kind == 1:
                of = rng.choice(numbers + truths)
                asked.append((f"count({of})", of))
            elif kind == 2:
                of = truths[0]
                asked.append((f"count(*) FILTER (WHERE {of})", of))
            elif kind == 3:
                of = truths[0]
                asked.append((f"avg({of})", of))
            elif kind == 4:
                asked.append((f"quantile({number}, {rng.choice(SHARES)})", number))
            elif kind == 5:
                asked.append((f"{rng.choice(['min', 'max', 'median'])}({number})", number))
            else:
                asked.append((f"{rng.choice(MOMENTS)}({number})", number))
        where = f"WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.5 else ""
        yield list(dict(asked).items()), where, rng.choice(list(GROUPS))


ALL = list(questions())


@pytest.fixture(scope="module")
def plain():
    """The rows in plain DuckDB, where NaN is a number; here it is missing."""
    connection = duckdb.connect()
    connection.register("given", table_of(ROWS))
    connection.execute(
        "CREATE TABLE data AS SELECT * REPLACE (CASE WHEN NOT isnan(pay) THEN pay END AS pay) FROM"
        " given"
    )
    return connection


STUDIES = {
    "rows": {},
    "units": {"unit": "who", "max_rows": max(Counter(row["who"] for row in ROWS).values())},
    "add-remove": {"neighbors": "add-remove"},
}


def values_of(plain, of, aggregate, where, keys):
    """By group, the sorted values that count: clamped to the bounds that the policy gives them."""
    of = MEANT.get(of, of)
    term = f"CAST({of} AS DOUBLE)"
    if not isinstance(aggregate, Count):
        term = f"least(greatest({term}, {float(aggregate.lower)!r}), {float(aggregate.upper)!r})"
        term = f"CASE WHEN ({of}) IS NOT NULL THEN {term} END"
    query = ", ".join([*(text for _, text in keys), f"{term} AS value"])
    found: dict = {}
    for *key, value in plain.execute(select(query, where)).fetchall():
        if value is not None:
            found.setdefault(tuple(key), []).append(value)
    return {key: sorted(values) for key, values in found.items()}


def near(aggregate, text, values, item) -> bool:  # noqa: PLR0911 - one case for each kind of number
    """Whether a released number is what the values say."""
    value, low, high = item
    n = len(values)
    if isinstance(aggregate, Count):
        counted = sum(map(bool, values)) if "FILTER" in text else n
        return value == low == high == counted
    wide = float(aggregate.upper - aggregate.lower)
    step = 0.0 if aggregate.whole and wide < 2**22 else wide * 2.0**-21
    if isinstance(aggregate, Moment) and aggregate.statistic == "sum":
        exact = math.fsum(values)
        narrow = high - low <= wide * 0.02 + 1e-9
        return (
            narrow
            and low - step * n <= exact <= high + step * n
            and (step > 0 or isinstance(value, float) or value == exact)
        )
    if n == 0:
        return True  # of nobody there is no mean, and what is shown is noise alone
    if isinstance(aggregate, Extreme):
        return float(aggregate.lower) <= value <= float(aggregate.upper)
    if isinstance(aggregate, Quantiles):
        rank = float(aggregate.shares[0]) * n
        cell = 0.0 if aggregate.whole else wide * 2.0**-14
        first, last = values[max(math.ceil(rank) - 1, 0)], values[min(math.floor(rank), n - 1)]
        return first - cell <= value <= last + cell and low - cell <= value <= high + cell
    mean = math.fsum(values) / n
    if aggregate.statistic == "mean":
        return (
            low - step <= mean <= high + step
            and abs(value - mean) <= (high - low) + step <= wide * 0.05
        )
    freedom = n - 1 if aggregate.sample else n
    if freedom == 0:
        return True
    variance = math.fsum((one - mean) ** 2 for one in values) / freedom
    exact, error = (
        (math.sqrt(variance), step) if aggregate.statistic == "std" else (variance, 2 * wide * step)
    )
    error *= n / freedom
    return (
        low - error - 1e-9 * wide <= exact <= high + error + 1e-9 * wide
        and high - low <= wide**2 * 0.2
    )


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_answer_equals_plain_duckdb_within_a_step(plain, name):
    study = study_of(ROWS, Paper(LARGEST), columns=COLUMNS, **STUDIES[name])
    checked = 0
    for asked, where, group in ALL[list(STUDIES).index(name) :: len(STUDIES)]:
        by = f"{where} GROUP BY {group}" if group else where
        keys = GROUPS[group]
        shown = [name for name, _ in keys] + [
            f"{text} AS n{at}" for at, (text, _) in enumerate(asked)
        ]
        plan = study.sql(select(", ".join(shown), by), epsilon=LARGEST, confidence=LEVEL)
        answer = plan.release()
        aggregates = dict(plan.query.aggregates)
        for at, (text, of) in enumerate(asked):
            output = dict(plan.query.outputs)[f"n{at}"]
            assert isinstance(output, Named)
            aggregate = aggregates[output.name.split(".")[0]]
            if isinstance(aggregate, Quantiles):
                _, _, index = output.name.partition(".")
                aggregate = replace(aggregate, shares=(aggregate.shares[int(index or 0)],))
            expected = values_of(plain, "1" if of is None else of, aggregate, where, keys)
            for row in answer.rows:
                key = tuple(row[name][0] for name in answer.columns[: len(keys)])
                assert near(aggregate, text, expected.get(key, []), row[f"n{at}"]), (
                    text,
                    by,
                    key,
                    row[f"n{at}"],
                )
                checked += 1
    assert checked > QUESTIONS


def test_the_questions_cover_the_grammar():
    texts = [text for asked, _, _ in ALL for text, _ in asked]
    for word in (
        "count(*)",
        "FILTER",
        "sum(",
        "avg(",
        "var",
        "stddev",
        "median",
        "quantile",
        "min(",
        "max(",
    ):
        assert sum(word in text for text in texts) >= 5, word
    assert {group for _, _, group in ALL} == set(GROUPS)
    assert len({where for _, where, _ in ALL}) == len(CONDITIONS) + 1


@pytest.mark.parametrize("wrong", ["value", "clamp", "where", "group"])
def test_control_another_answer_is_told_apart(plain, wrong):
    study = study_of(ROWS, Paper(LARGEST), columns=COLUMNS)
    plan = study.sql(select("sum(age) AS n0", "WHERE well"), epsilon=LARGEST, confidence=LEVEL)
    [(_, aggregate)] = plan.query.aggregates
    item = plan.release().rows[0]["n0"]
    values = values_of(plain, "age", aggregate, "WHERE well", [])[()]
    assert near(aggregate, "sum(age)", values, item)
    changed = {
        "value": [*values[:-1], values[-1] - 1],
        "clamp": [min(value, 89) for value in values],
        "where": values_of(plain, "age", aggregate, "", [])[()],
        "group": values[:10],
    }
    assert not near(aggregate, "sum(age)", changed[wrong], item)
