"""`discreet discover`: the price and what δ means first, then the keys, once for each study."""

import csv
import json
from fractions import Fraction
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import open as open_study
from shell import CANARY, contents, discreet, one_after_another

POLICY = """source = "people.parquet"
epsilon = 3
version = "1"
{delta}
[columns]
zip = {{ keys = "discover" }}
job = {{ keys = "discover", other = "another" }}
age = {{ bounds = [0, 120] }}
"""
ASK = ["discover", "study.toml", "zip", "--epsilon", "0.5"]


def study_in(folder, delta='delta = "1e-9"'):
    """A study of 2,001 people, one of whom is alone in a zip."""
    zips = ["02138"] * 1500 + ["02139"] * 500 + [CANARY]
    table = pa.table({"zip": zips, "job": ["nurse"] * 2001, "age": [30.0] * 2001})
    pq.write_table(table, folder / "people.parquet")
    (folder / "study.toml").write_text(POLICY.format(delta=delta), "utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study, its free plan and its discovery; whoever is alone is shown with a chance of 10⁻⁹."""
    folder = study_in(tmp_path_factory.mktemp("discover"))
    return folder, *one_after_another([[*ASK, "--plan"], [*ASK, "-o", "keys.csv"]], folder)


def test_a_plan_says_what_delta_means_and_how_many_a_key_needs(made):
    _, planned, _ = made
    assert planned.code == 0, planned.err
    assert planned.out.splitlines() == [
        (
            "The keys of zip cost ε 0.5 of the 3 left, and all of δ = 1e-09: a study can make only"
            " one discovery."
        ),
        (
            "For each row, the promise e^ε may fail with probability at most δ = 1e-09, as where a"
            " key is shown that only this row has. Of n such keys, up to about n·δ are shown."
        ),
        (
            "A key that 156 rows have is always shown; a key that 78 have, with probability 1/2 or"
            " more."
        ),
    ]


def test_keys_are_shown_saved_and_used_by_questions(made):
    folder, planned, found = made
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert lines[:3] == planned.out.splitlines()
    assert [line.strip() for line in lines[3:6]] == ["zip", "02138", "02139"]
    assert (
        lines[6] == "2 keys of zip. ε 0.5 spent, 2.5 left (entry 2 of the ledger). Saved keys.csv"
    )
    assert (
        lines[8]
        == "discreet plan study.toml 'SELECT zip, count(*) FROM people GROUP BY zip' --epsilon 0.1"
    )
    assert (folder / "keys.csv").read_text("utf-8") == "zip\n02138\n02139\n"
    assert CANARY not in found.out
    planned = discreet(
        "plan",
        "study.toml",
        "SELECT zip, count(*) FROM people GROUP BY zip",
        "--epsilon",
        "0.1",
        cwd=folder,
    )
    assert planned.out.startswith("2 rows · ε 0.1")
    with open_study(folder / "study.toml") as study:
        # Python asks the same, free
        assert study.discover("zip", epsilon="0.5")["zip"] == ("02138", "02139")
        assert study.remaining == Fraction(5, 2)


def test_asked_again_it_is_free_and_another_one_is_refused(made):
    folder = made[0]
    again, other, more = one_after_another(
        [
            [*ASK, "--json"],
            [*ASK[:-1], "0.6"],
            ["discover", "study.toml", "job", "--epsilon", "0.5"],
        ],
        folder,
    )
    found = json.loads(again.out)
    assert (found["keys"], found["spent"], found["delta"]) == (
        {"zip": ["02138", "02139"]},
        "0",
        "1/1000000000",
    )
    assert "discovered before: this is free" in discreet(*ASK, "--plan", cwd=folder).out
    for refused in (other, more):
        assert refused.code == 2
        assert "a study makes one discovery" in refused.err
        assert refused.err.endswith("Nothing was spent.\n")


def test_counts_have_a_price_and_intervals_of_their_own(tmp_path):
    folder, both = study_in(tmp_path), ["discover", "study.toml", "zip", "job", "--epsilon", "1"]
    found = discreet(*both, "--counts", "0.5", "-o", "keys.csv", cwd=folder)
    assert found.code == 0, found.err
    assert "The row counts of the keys cost another ε 0.5." in found.out
    assert "1 key of job, 2 keys of zip. ε 1.5 spent, 1.5 left" in found.out
    with (folder / "keys.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["column", "key", "rows", "rows_low", "rows_high"]
    assert {tuple(row[:2]) for row in rows} == {
        ("job", "nurse"),
        ("job", "another"),
        ("zip", "02138"),
        ("zip", "02139"),
    }
    for _, _, value, low, high in rows:
        assert float(low) <= float(value) <= float(high)
    again = json.loads(discreet(*both, "--counts", "0.5", "--json", cwd=folder).out)
    assert again["spent"] == "0"
    assert [str(count) for count in again["counts"]["zip"]["rows"]] == [
        row[2] for row in rows if row[0] == "zip"
    ]


REFUSED = [
    (2, 'declare age = { keys = "discover" }', ["age", "--epsilon", "0.5"]),
    (2, "did you mean zip?", ["zup", "--epsilon", "0.5"]),
    (2, "epsilon", ["zip", "--epsilon", "nan"]),
    (2, "epsilon", ["zip", "--epsilon", "0.5", "--counts", "0"]),
    (2, "-o must end in .csv", ["zip", "--epsilon", "0.5", "-o", "keys.txt"]),
    (2, "taken.csv", ["zip", "--epsilon", "0.5", "-o", "taken.csv"]),
    (2, "people.parquet", ["zip", "--epsilon", "0.5", "-o", "people.parquet", "--force"]),
    (
        2,
        "--delta must be 1e-09, as study.toml declares",
        ["zip", "--epsilon", "0.5", "--delta", "1e-6"],
    ),
    (3, "this needs 3.5", ["zip", "--epsilon", "3", "--counts", "0.5"]),
]


def test_what_is_refused_spends_nothing(tmp_path):
    folder = study_in(tmp_path)
    (folder / "taken.csv").write_text("mine\n", "utf-8")
    discreet(*ASK, "--plan", cwd=folder)  # makes the ledger
    before = contents(folder)
    cases = [["discover", "study.toml", *terms] for _, _, terms in REFUSED]
    for ended, (code, words, _) in zip(one_after_another(cases, folder), REFUSED, strict=True):
        ended.refused(code, words, "Nothing was spent")
    assert contents(folder) == before


def test_delta_may_be_said_where_the_policy_leaves_it_out(tmp_path):
    folder = study_in(tmp_path, delta="")
    discreet(*ASK, cwd=folder).refused(2, "delta", "Nothing was spent")
    found = discreet(*ASK, "--delta", "1e-6", "--json", cwd=folder)
    assert json.loads(found.out)["delta"] == "1/1000000"


def test_it_asks_first_on_a_terminal_and_no_leaves_everything(tmp_path, capsys):
    from discreet.cli.discover import run

    folder = study_in(tmp_path)
    nothing = dict.fromkeys(("delta", "counts", "output", "ledger", "anchor"))
    terms = {
        **nothing,
        "force": False,
        "only_plan": False,
        "asks": True,
        "as_json": False,
        "epsilon": "0.5",
    }
    with mock.patch("typer.confirm", return_value=False) as asked:
        run(str(folder / "study.toml"), ["zip"], **terms)
    assert asked.call_count == 1
    assert capsys.readouterr().out.endswith("\nNothing was spent.\n")
    assert not (folder / "study.ledger").exists()


def test_a_question_by_such_a_column_names_the_command(tmp_path):
    folder = study_in(tmp_path)
    ask = ["plan", "study.toml", "SELECT zip, count(*) FROM people GROUP BY zip", "--epsilon", "1"]
    discreet(*ask, cwd=folder).refused(
        2, "discover its keys first: discreet discover study.toml zip --epsilon 0.1."
    )


def test_where_no_key_is_shown_it_says_so(tmp_path):
    folder = study_in(tmp_path)
    pq.write_table(
        pa.table({"zip": ["a", "b"], "job": ["x", "y"], "age": [1.0, 2.0]}),
        folder / "people.parquet",
    )
    found = discreet(*ASK, "--counts", "0.5", cwd=folder)
    assert found.code == 0, found.err
    assert found.out.endswith(
        "ε 0.5 spent, 2.5 left (entry 2 of the ledger).\nNo key has enough rows to be shown.\n"
    )
