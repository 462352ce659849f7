"""`discreet profile`: bounds for people who do not know them, and how they come into study.toml."""

import json
import os
import tomllib
from fractions import Fraction
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import InvalidParameter
from discreet.cli import profile as command
from shell import CANARY, contents, discreet

POLICY = """# my promise: do not touch
source = "visits.parquet"
unit = "patient"   # whom
max_rows = 8
epsilon = "1000"
version = "1"

[columns]
cost = { }    # { in euro }
  'age' = {bounds = [0, 7]}  # old
ward = { keys = ["a"] }
"""


@pytest.fixture
def folder(tmp_path):
    n = 1200
    cost = [100.0 + row % 50 for row in range(n)]
    patients = [f"{CANARY}{row // 2}" for row in range(n)]
    rows = {
        "patient": patients,
        "cost": cost,
        "age": [row % 90 for row in range(n)],
        "ward": ["a"] * n,
    }
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "study.toml").write_text(POLICY, "utf-8")
    return tmp_path


def test_a_profile_proposes_and_changes_nothing(folder):
    ended = discreet(
        "profile", "study.toml", "--columns", "cost,age,patient", "--epsilon", "150", cwd=folder
    )
    assert ended.code == 0, ended.err
    first, headings, *rows, promise, accept, again = ended.out.splitlines()
    assert first == "ε 150 spent, 850 left (entry 2 of study.ledger)."
    assert headings.split()[:5] == ["column", "missing", "zero", "negative", "between"]
    assert [row.split()[0] for row in rows] == ["age", "cost", "patient"]
    assert rows[0].rstrip().endswith("age = { bounds = [0, 128] }")
    assert " ".join(rows[1].split()).endswith("64 and 256 cost = { bounds = [64, 256] }")
    assert " ".join(rows[2].split()).endswith("1 and 2 rows max_rows = 2")
    assert (
        promise
        == "max_rows is part of the promise that the ledger records, so the proposal is for a new"
        " study."
    )
    assert accept == "study.toml was not changed. To accept the bounds, free, run:"
    assert again == "discreet profile study.toml --columns age,cost,patient --epsilon 150 --write"
    assert (folder / "study.toml").read_text("utf-8") == POLICY
    assert CANARY not in ended.out + ended.err


def test_what_is_accepted_is_free_and_leaves_all_else_as_it_was(folder):
    (folder / "study.toml").chmod(0o640)
    asked = ("profile", "study.toml", "--columns", "cost,age", "--epsilon", "100")
    assert discreet(*asked, cwd=folder).code == 0
    ended = discreet(*asked, "--write", cwd=folder)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("ε 0 spent (asked before), 900 left")
    assert ended.out.endswith("Wrote the bounds of age, cost to study.toml.\n")
    written = (folder / "study.toml").read_text("utf-8")
    assert written == POLICY.replace("cost = { }", "cost = { bounds = [64, 256] }").replace(
        "[0, 7]", "[0, 128]"
    )
    assert (folder / "study.toml").stat().st_mode & 0o777 == 0o640
    said = json.loads(discreet(*asked, "--write", "--json", cwd=folder).out)
    assert said["written"] == ["age", "cost"]
    assert said["columns"]["cost"]["bounds"] == [64, 256]
    assert said["left"] == "900"
    assert (folder / "study.toml").read_text("utf-8") == written
    assert (
        discreet(
            "plan", "study.toml", "SELECT avg(cost) FROM visits", "--epsilon", "1", cwd=folder
        ).code
        == 0
    )


def test_without_columns_it_is_of_what_has_no_bounds(folder):
    said = json.loads(
        discreet("profile", "study.toml", "--epsilon", "100", "--json", cwd=folder).out
    )
    assert list(said["columns"]) == ["cost"]
    assert said["unit"] == {"column": "patient", "max_rows": 2}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["--epsilon", "0.1"],
            2,
            ["needs about 2,000 units, and there are 600", "Nothing was spent"],
        ),
        (["--epsilon", "1", "--columns", "ward"], 2, ["ward is a text", "Nothing was spent"]),
        (
            ["--epsilon", "1", "--columns", "cost, nothing"],
            2,
            ["declares no column", "Nothing was spent"],
        ),
        (["--epsilon", "2000", "--columns", "cost"], 3, ["nothing was spent"]),
        (["--epsilon", "x"], 2, ["epsilon must be"]),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_spent(folder, arguments, code, words):
    discreet("profile", "study.toml", *arguments, cwd=folder).refused(code, *words)
    assert not (folder / "study.ledger").exists()


def test_a_file_that_cannot_be_changed_is_refused_before_anything_is_spent(folder):
    text = POLICY.replace("cost = { }", "").replace("[columns]", "[columns]\ncost.missing = 5")
    (folder / "study.toml").write_text(text, "utf-8")
    ended = discreet(
        "profile", "study.toml", "--columns", "cost", "--epsilon", "50", "--write", cwd=folder
    )
    ended.refused(
        2,
        "the line of cost cannot be changed automatically; add bounds = [0, 1]",
        "Nothing was spent",
    )
    assert (folder / "study.toml").read_text("utf-8") == text
    policy = folder / "linked.toml"
    policy.symlink_to(folder / "study.toml")
    (folder / "study.toml").write_text(POLICY, "utf-8")
    ended = discreet(
        "profile", "linked.toml", "--columns", "cost", "--epsilon", "50", "--write", cwd=folder
    )
    ended.refused(2, "linked.toml is a link", "Nothing was spent")
    assert policy.is_symlink()
    assert (folder / "study.toml").read_text("utf-8") == POLICY


def test_bounds_that_the_policy_does_not_take_are_not_written(folder):
    text = POLICY.replace("cost = { }", 'cost = { bounds = [0, 9999], precision = "500" }')
    (folder / "study.toml").write_text(text, "utf-8")
    ended = discreet(
        "profile", "study.toml", "--columns", "cost", "--epsilon", "50", "--write", cwd=folder
    )
    ended.refused(2, "precision: it must not exceed upper - lower", "study.toml was not changed")
    assert (folder / "study.toml").read_text("utf-8") == text


def test_a_write_that_fails_leaves_the_old_file_and_no_other(folder):
    before = contents(folder)
    with (
        mock.patch.object(os, "fsync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(OSError, match="No space"),
    ):
        command.write_bounds(folder / "study.toml", {"cost": (Fraction(0), Fraction(8))})
    assert contents(folder) == before


BOUNDS = (Fraction(1, 8), Fraction(16))
HEAD = 'source = "x"\nepsilon = "1"\n'
TEXTS = {
    "in braces": '[columns]\nx = { type = "number" } # }',
    "empty braces": "[columns]\nx = {}\ny = {}",
    "in its place": (
        "[columns]\nx = { bounds = [ 1,\t2 ], missing = 1 }\r\ny = { bounds = [1, 2] }\r\n"
    ),
    "quotes": '[columns]\n"x" = { }\n',
    "a heading": '[columns.x]\ntype = "number"\n[columns.y]\n',
    "a heading with bounds": (
        '# [columns.x]\n[columns.x] # here\ntype = "number"\nbounds = [1, 2] # old\n'
    ),
    "a heading at the end": "[columns.y]\nbounds = [3, 4]\n[columns.x]",
    "dotted": 'columns.y = { bounds = [1, 2] }\ncolumns . x = { type = "number" }\n',
    "a comment like it": (
        "# x = {}\n[columns]\n# x = { bounds = [7, 8] }\nx = { trim = true } # x = { bounds = [5] }"
    ),
    "braces in a text": '[columns]\nx = { missing_values = ["}", "#{"], map = { "}" = "{" } } # {}',
    "a mark at the start": "\ufeff[columns]\nx = {}",
    "another x above": '[columns]\ny = { map = { x = "1" } }\nx = { }',
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_line_is_found_and_nothing_else_changes(case):
    text = TEXTS[case]
    text = ("\ufeff" + HEAD + text[1:]) if text.startswith("\ufeff") else HEAD + text
    changed = command.with_bounds(text, {"x": BOUNDS})
    expected = tomllib.loads(text.removeprefix("\ufeff"))
    expected["columns"]["x"]["bounds"] = ["0.125", 16]
    assert tomllib.loads(changed.removeprefix("\ufeff")) == expected
    assert [
        line for line in text.splitlines() if "#" in line and not line.split("#")[0].strip()
    ] == [line for line in changed.splitlines() if "#" in line and not line.split("#")[0].strip()]
    assert abs(len(changed.splitlines()) - len(text.splitlines())) <= 1
    assert command.with_bounds(changed, {"x": BOUNDS}) == changed


@pytest.mark.parametrize(
    "text",
    ["[columns]\nx.trim = true", 'columns = { x = { type = "number" } }\n', "[columns]\ny = {}"],
)
def test_another_form_is_left_to_the_custodian(text):
    with pytest.raises(InvalidParameter, match="by hand"):
        command.with_bounds(HEAD + text, {"x": BOUNDS})
