"""A parent column follows from its children, wherever it is asked: the file of keys decides, not
the rows.
"""

import psycopg
import pyarrow as pa
import pytest

from discreet import Policy, Study
from discreet.errors import InvalidParameter, QueryRefused

LARGEST = 10_000
DATA = {
    "county": [*"aaaaaaaabbbbccd", None, "elsewhere"],
    "state": ["B"] * 17,  # which contradicts the file for most rows
    "country": ["Y"] * 17,
    "number": [1] * 8 + [2] * 4 + [3] * 2 + [4, None, 99],
}
TABLES = {
    "counties": "SELECT county, count(*) AS n FROM data GROUP BY county",
    "states": "SELECT state, count(*) AS n FROM data GROUP BY state",
    "countries": "SELECT country, count(*) AS n FROM data GROUP BY country",
    "one": "SELECT count(*) AS n FROM data WHERE state = 'A'",
    "others": "SELECT count(*) AS n FROM data WHERE state IN ('B', 'C')",
    "far": "SELECT county, count(*) AS n FROM data WHERE country IN ('X') GROUP BY county",
}
EXACT = {
    "counties": [8, 4, 2, 1],
    "states": [12, 2, 1],
    "countries": [14, 1],
    "one": [12],
    "others": [3],
    "far": [8, 4, 2],
}
COLUMNS = {
    "county": {"keys": "counties.csv#county", "parent": "state"},
    "state": {"keys": "states.csv#state", "parent": "country"},
    "country": {"keys": ["X", "Y"]},
}


def study_in(folder, columns=COLUMNS, *, states="AABC", **terms):
    for name, lines in {
        "counties": [
            "county,state",
            *(f"{county},{state}" for county, state in zip("abcd", states, strict=True)),
        ],
        "numbers": ["number,state", "1,A", "2,A", "3,B", "4,C"],
        "states": ["state,country", "A,X", "B,X", "C,Y"],
    }.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    told = {"epsilon": 10**6, "version": "1", "neighbors": "add-remove", **terms}
    policy = Policy(source=pa.table(DATA), columns=columns, folder=folder, **told)
    return Study(policy, ledger=folder / "study.ledger")


def rounded(answer):
    return [round(number) for number in answer["n"]]


@pytest.mark.parametrize("unit", [{}, {"unit": "number", "max_rows": 20}])
def test_a_parent_is_that_of_the_listed_key_alone_and_in_a_report(tmp_path, unit):
    with study_in(tmp_path, **unit) as study:
        alone = {
            name: rounded(study.sql(text, epsilon=LARGEST).release())
            for name, text in TABLES.items()
        }
        report = study.report(TABLES, epsilon=LARGEST).release()
        assert {name: rounded(report[name]) for name in TABLES} == EXACT
        [negated] = study.sql(
            "SELECT count(*) AS n FROM data WHERE NOT (state = 'A')", epsilon=LARGEST
        ).release()["n"]
        assert round(negated) == 3  # of rows without a listed county it is missing, as in SQL
        far = alone.pop("far")
        assert far == [8, 4, 2, 0]  # asked alone, it lists every county
        assert alone == {name: EXACT[name] for name in alone}
        for name in ("states", "one"):  # in a report of its own, without the counties
            again = study.report({name: TABLES[name]}, epsilon=LARGEST - 1).release()
            assert rounded(again[name]) == EXACT[name]


def test_a_level_between_that_nobody_asks_for_is_passed_over(tmp_path):
    with study_in(tmp_path) as study:
        report = study.report(
            {name: TABLES[name] for name in ("counties", "countries")}, epsilon=LARGEST
        ).release()
        assert [axis["cells"] for axis in report.record["axes"]] == [[1, 3, 5]]
        assert rounded(report["countries"]) == EXACT["countries"]
        nested = study.report(
            {"all": "SELECT country, state, county, count(*) AS n FROM data GROUP BY 1, 2, 3"},
            epsilon=9,
        )
        columns = nested.release()["all"].to_dict()
        assert [columns[name] for name in COLUMNS] == [list("abcd"), list("AABC"), list("XXXY")]


def test_children_with_a_label_for_missing_values_take_their_parent_along(tmp_path):
    columns = {**COLUMNS, "county": {**COLUMNS["county"], "missing": "d"}}
    with study_in(tmp_path, columns) as study:
        report = study.report(TABLES, epsilon=LARGEST).release()
        for name in ("states", "countries", "others"):
            exact = [*EXACT[name][:-1], EXACT[name][-1] + 1]
            assert (
                rounded(report[name])
                == rounded(study.sql(TABLES[name], epsilon=LARGEST).release())
                == exact
            )


def test_children_may_be_numbers_and_the_rest_has_the_label_of_the_parent(tmp_path):
    columns = {
        "number": {"keys": "numbers.csv#number", "parent": "state"},
        "state": {"keys": list("ABC"), "other": "-"},
    }
    tables = {name: TABLES[name] for name in ("states", "one", "others")}
    with study_in(tmp_path, columns) as study:
        for name, text in tables.items():
            exact = [*EXACT[name], 2] if name == "states" else EXACT[name]
            assert rounded(study.sql(text, epsilon=LARGEST).release()) == exact
        tables["numbers"] = "SELECT number, count(*) AS n FROM data GROUP BY number"
        report = study.report(tables, epsilon=LARGEST).release()
        assert rounded(report["states"]) == [*EXACT["states"], 2]
        assert rounded(report["numbers"]) == EXACT["counties"]


def test_a_table_of_a_report_under_other_parents_is_another_question(tmp_path):
    for states, spent, exact in (("AABC", 1_000, EXACT["states"]), ("ABAC", 2_000, [10, 4, 1])):
        with study_in(tmp_path, states=states) as study:
            plan = study.sql(TABLES["states"], epsilon=1_000)
            assert plan.cost == 1_000  # a report of other parents has another table of that name
            report = study.report(TABLES, epsilon=1_000).release()
            assert study.spent == spent
            for name in ("states", "one", "counties", "far"):
                assert study.sql(TABLES[name], epsilon=1_000).cost == 0
            assert (
                rounded(study.sql(TABLES["states"], epsilon=1_000).release())
                == rounded(report["states"])
                == exact
            )
    with study_in(
        tmp_path, states="AABB", columns={**COLUMNS, "state": {"keys": ["A", "B"]}}
    ) as study:
        assert study.sql(TABLES["states"], epsilon=1_000).cost == 1_000
        assert study.sql(TABLES["one"], epsilon=1_000).cost == 1_000
        assert study.sql(TABLES["counties"], epsilon=1_000).cost == 0  # whose cells are the same


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"state": {"keys": "circle.csv#state", "parent": "county"}}, "must not lead back"),
        (
            {"number": {"keys": "numbers.csv#number", "parent": "state"}},
            "can be the parent of one column only",
        ),
    ],
)
def test_parents_in_a_circle_or_of_two_columns_are_refused(tmp_path, columns, words):
    (tmp_path / "circle.csv").write_text("state,county\nA,a\n")
    with pytest.raises(InvalidParameter, match=words):
        study_in(tmp_path, {**COLUMNS, **columns})


def test_conditions_on_a_parent_of_very_many_are_refused_before_the_spend(tmp_path):
    lines = [f"{number},{'ABC'[number % 3]}" for number in range(1_001)]
    with study_in(tmp_path, {"state": {"keys": list("ABC")}, "number": {"keys": [1]}}):
        pass
    (tmp_path / "many.csv").write_text("\n".join(["number,state", *lines]) + "\n")
    columns = {
        "number": {"keys": "many.csv#number", "parent": "state"},
        "state": {"keys": list("ABC")},
    }
    with study_in(tmp_path, columns) as study:
        with pytest.raises(QueryRefused, match="conditions may use up to 1,000"):
            study.sql(TABLES["one"], epsilon=1)
        # groups are joined
        assert rounded(study.sql(TABLES["states"], epsilon=LARGEST).release()) == [3, 9, 4]
        assert study.spent == LARGEST


COLLATED_ROWS = [("a", 5), ("A", 3), ("á", 2), ("ß", 4), ("ss", 1), ("a ", 1), (None, 2)]
COLLATED_TABLES = {
    "counties": "SELECT county, count(*) AS n FROM t GROUP BY county",
    "states": "SELECT state, count(*) AS n FROM t GROUP BY state",
    "sexes": "SELECT sex, count(*) AS n FROM t WHERE county IN ('a', 'ß') GROUP BY sex",
    "in_x": "SELECT count(*) AS n FROM t WHERE state = 'x'",
}
COLLATED_EXACT = {"counties": [5, 3, 2, 4], "states": [8, 6], "sexes": [9, 0], "in_x": [8]}


def _collation(connection):
    """One that takes a, A and á for equal; where the server has no ICU, that of a language, or at
    least another.
    """
    try:
        connection.execute(
            "CREATE COLLATION odd (provider = icu, locale = 'und-u-ks-level1', deterministic ="
            " false)"
        )
    except psycopg.Error:
        query = (
            "SELECT collname FROM pg_collation WHERE collcollate ~ 'UTF|utf' OR collname ="
            " 'ucs_basic' ORDER BY 1 DESC"
        )
        [name, *_] = connection.execute(query).fetchone()
        return f'"{name}"'
    return "odd"


@pytest.fixture(params=["C", "other"])
def address(postgres, request):
    """A table whose texts have the collation C, or that of some language, which servers with ICU
    can make lenient.
    """
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "DROP SCHEMA IF EXISTS collated CASCADE; CREATE SCHEMA collated; SET search_path ="
            " collated"
        )
        name = '"C"' if request.param == "C" else _collation(connection)
        connection.execute(
            f"CREATE TABLE t (county text COLLATE {name}, state text COLLATE {name}, sex varchar(9)"
            f" COLLATE {name})"
        )
        rows = [(county, "y", "f") for county, many in COLLATED_ROWS for _ in range(many)]
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
        yield f"{postgres}#collated.t"
        connection.execute("DROP SCHEMA collated CASCADE")


def test_keys_and_parents_compare_by_their_bytes(address, tmp_path):
    (tmp_path / "counties.csv").write_text("county,state\na,x\nA,x\ná,y\nß,y\n", "utf-8")
    columns = {
        "county": {"keys": "counties.csv#county", "parent": "state"},
        "state": {"keys": ["x", "y"]},
        "sex": {"keys": ["f", "F"]},
    }
    terms = {"epsilon": 10**6, "neighbors": "add-remove", "version": "1", "folder": tmp_path}
    policy = Policy(source=address, columns=columns, **terms)
    with Study(policy, ledger=tmp_path / "study.ledger") as study:
        alone = {
            name: study.sql(text, epsilon=LARGEST).release()["n"]
            for name, text in COLLATED_TABLES.items()
        }
        report = study.report(COLLATED_TABLES, epsilon=LARGEST).release()
        for name, exact in COLLATED_EXACT.items():
            assert [round(n) for n in report[name]["n"]] == [round(n) for n in alone[name]] == exact
