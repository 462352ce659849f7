"""Columns of texts that are declared as numbers or dates: what is declared decides, in every place
of a question.
"""

import csv
from datetime import date, datetime

import duckdb
import pytest

from discreet import Policy, QueryRefused, Study
from discreet.ask.declared import Declared
from discreet.ask.expression import Cast, Column, ColumnType
from discreet.ask.scope import column_under
from discreet.verify import reference
from studies import Paper, select

FIELDS = ("age", "born", "level", "size")
ROWS = [
    ("34", "2020-01-31", "1", "7"),
    ("n/a", "n/a", "01", "big"),
    ("3,5", "2020-02-30", "x", "12"),
    ("", "", "", ""),
    (" 40.5", "2021-05-05 10:00:00", "2.0", "1e1"),
    ("1e400", "31.01.2020", "3", "-4"),
    ("9" * 41, "2021-13-01", "one", "nan"),
] * 3
COLUMNS = {
    "age": {"bounds": (0, 120)},
    "born": {"bounds": [date(2020, 1, 1), date(2021, 12, 31)]},
    "level": {"keys": [1, 2], "other": "rest"},
    "size": {"bins": [0, 10, 20]},
}


def read(name, kind):
    """The cells of a column as the slow twin casts them."""
    place = FIELDS.index(name)
    return [
        reference.evaluate(Cast(Column("cell", "text"), kind), {"cell": row[place] or None})
        for row in ROWS
    ]


@pytest.fixture(params=["file", "select", "relation"])
def study(request, tmp_path):
    file = tmp_path / "people.csv"
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([FIELDS, *ROWS])
    query = f"SELECT * FROM '{file}'"  # noqa: S608
    sources = {
        "file": file,
        "select": query,
        "relation": duckdb.connect().read_csv(str(file)).materialize(),
    }
    policy = Policy(
        source=sources[request.param], table="data", epsilon=10**6, version="1", columns=COLUMNS
    )
    made = Study(policy, ledger=Paper())
    assert {column.kind for column in made.schema.values()} == {"text"}
    return made


def counts(study, asked, clauses=""):
    """Numbers at an ε at which a count has noise once in e^1000 times."""
    answer = study.sql(select(asked, clauses), epsilon=10**4).release()
    return list(zip(*(answer[name] for name in answer.columns), strict=True))


def test_cells_are_read_as_numbers_in_every_place(study):
    ages = [age for age in read("age", "number") if age is not None]
    assert sorted(set(ages)) == [34, 40.5]
    assert counts(study, "count(age) AS n") == [(len(ages),)]
    assert counts(study, "count(*) AS n", "WHERE age > 35") == [(3,)]
    assert counts(study, "count(*) AS n", "WHERE age IS NULL") == [(len(ROWS) - len(ages),)]
    found = study.sql(select("sum(age) AS total, avg(age) AS mean"), epsilon=10**5).release()
    # scales below 0.01, and a step of the grid: 0.5 is missed less than once in e^40 times
    assert abs(found["total"][0] - sum(ages)) < 0.5
    assert abs(found["mean"][0] - sum(ages) / len(ages)) < 0.5


def test_cells_are_read_as_numbers_in_groups(study):
    levels, sizes = read("level", "number"), read("size", "number")
    rest = sum(level not in (1, 2) for level in levels)
    assert counts(study, "level, count(*) AS n", "GROUP BY level") == [
        (1, levels.count(1)), (2, levels.count(2)), ("rest", rest)
    ]  # fmt: skip
    assert levels.count(1) == 6
    inside = [size for size in sizes if size is not None and 0 <= size <= 20]
    small = sum(size < 10 for size in inside)
    assert counts(study, "size, count(*) AS n", "GROUP BY size") == [
        ("[0, 10)", small), ("[10, 20]", len(inside) - small)
    ]  # fmt: skip


def test_cells_are_read_as_dates(study):
    born = [moment for moment in read("born", "date") if moment is not None]
    assert set(born) == {datetime(2020, 1, 31), datetime(2021, 5, 5, 10)}  # noqa: DTZ001
    assert counts(study, "year(born) AS y, count(*) AS n", "GROUP BY year(born)") == [
        (2020, 3),
        (2021, 3),
    ]
    assert counts(study, "count(*) AS n", "WHERE born >= '2021-01-01'") == [(3,)]


def test_a_column_declared_as_numbers_is_no_text(study):
    with pytest.raises(QueryRefused):
        study.sql(select("count(*) AS n", "WHERE age LIKE 'n%'"), epsilon=1)


def test_only_texts_take_the_kind_that_is_declared():
    def kind_under(declared, kind):
        return column_under("x", declared, ColumnType(kind, False, "")).kind

    bounds, days = Declared(bounds=(0, 1)), Declared(bounds=[date(2020, 1, 1), date(2021, 1, 1)])
    assert [kind_under(bounds, kind) for kind in ("text", "number", "date", "truth")] == [
        "number", "number", "date", "truth"
    ]  # fmt: skip
    assert kind_under(days, "text") == "date"
    assert kind_under(Declared(keys="1..3"), "text") == "number"
    assert (
        kind_under(Declared(keys=[True, False]), "text")
        == kind_under(Declared(type="truth"), "text")
        == "truth"
    )
    assert kind_under(Declared(keys=["1", "2"]), "text") == kind_under(Declared(), "text") == "text"
    assert kind_under(Declared(keys=["1", "2"], type="integer"), "text") == "number"
