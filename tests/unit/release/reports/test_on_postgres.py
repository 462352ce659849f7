"""A report of a table of PostgreSQL whose texts have odd collations: keys and parents compare by their bytes."""

import psycopg
import pytest

from discreet import Policy, Study

LARGEST = 10_000
ROWS = [("a", 5), ("A", 3), ("á", 2), ("ß", 4), ("ss", 1), ("a ", 1), (None, 2)]
TABLES = {
    "counties": "SELECT county, count(*) AS n FROM t GROUP BY county",
    "states": "SELECT state, count(*) AS n FROM t GROUP BY state",
    "sexes": "SELECT sex, count(*) AS n FROM t WHERE county IN ('a', 'ß') GROUP BY sex",
    "in_x": "SELECT count(*) AS n FROM t WHERE state = 'x'",
}
EXACT = {"counties": [5, 3, 2, 4], "states": [8, 6], "sexes": [9, 0], "in_x": [8]}


def _collation(connection):
    """One that takes a, A and á for equal; where the server has no ICU, that of a language, or at least another."""
    try:
        connection.execute("CREATE COLLATION odd (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    except psycopg.Error:
        query = (
            "SELECT collname FROM pg_collation WHERE collcollate ~ 'UTF|utf' OR collname = 'ucs_basic' ORDER BY 1 DESC"
        )
        [name, *_] = connection.execute(query).fetchone()
        return f'"{name}"'
    return "odd"


@pytest.fixture(params=["C", "other"])
def address(postgres, request):
    """A table whose texts have the collation C, or that of some language, which servers with ICU can make lenient."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS collated CASCADE; CREATE SCHEMA collated; SET search_path = collated")
        name = '"C"' if request.param == "C" else _collation(connection)
        connection.execute(
            f"CREATE TABLE t (county text COLLATE {name}, state text COLLATE {name}, sex varchar(9) COLLATE {name})"
        )
        rows = [(county, "y", "f") for county, many in ROWS for _ in range(many)]
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
        alone = {name: study.sql(text, epsilon=LARGEST).release()["n"] for name, text in TABLES.items()}
        report = study.report(TABLES, epsilon=LARGEST).release()
        for name, exact in EXACT.items():
            assert [round(n) for n in report[name]["n"]] == [round(n) for n in alone[name]] == exact
