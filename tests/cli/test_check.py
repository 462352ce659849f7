"""`discreet check`: what study.toml does to the data, for the custodian, before anything is spent."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from messy import blocks, hospital
from shell import contents, discreet

ROWS = 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hospital")
    hospital(place, ROWS)
    plain, right = blocks()["study.toml"]
    for name, text in {"plain": plain, "right": right, "clean": blocks()["clean.toml"][0]}.items():
        (place / f"{name}.toml").write_text(text, "utf-8")
    return place


def checked(folder, policy, **cells):
    """What `check --json` says of a small table of texts."""
    (folder / "study.toml").write_text(policy, "utf-8")
    pq.write_table(pa.table(cells), folder / "rows.parquet")
    ended = discreet("check", "study.toml", "--json", cwd=folder)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def only(said):
    [finding] = said["findings"]
    return finding


def test_a_plain_promise_is_warned_about(folder):
    before = contents(folder)
    ended = discreet("check", "plain.toml", cwd=folder)
    assert ended.code == 0, ended.err
    assert contents(folder) == before  # no ledger, no file
    lines = ended.out.splitlines()
    assert (
        lines[0] == "This output has exact counts and cells of your data. It is not private: do not"
        " publish it."
    )
    assert lines[1].startswith("4,000 rows · ")
    table = {line.split()[0]: line for line in lines[3:-1]}
    assert "match no key, but are similar to one (" in table["ward"]
    assert 'trim = true, casefold = true, map = { "geriatrie" = "Gériatrie" } (' in table["ward"]
    assert 'are left: "card", "ent")' in table["ward"]
    assert "are not dates in %Y-%m-%d" in table["admitted"]
    assert table["admitted"].rstrip().endswith('format = ["%Y-%m-%d", "%d/%m/%Y"]')
    assert '("n/a", "' in table["cost"]
    assert table["cost"].rstrip().endswith('thousands = ",", missing_values = ["n/a"]')
    assert "lie outside 0–120 (all below)" in table["age"]
    assert "have more than 4 rows" in table["patient"]
    assert lines[-1].startswith(
        "4 columns need a decision. As declared, a table by ward and month of admitted would "
    )


def test_what_it_says_is_what_a_release_would_leave_out(folder):
    said = json.loads(discreet("check", "plain.toml", "--json", cwd=folder).out)
    lines = (folder / "visits.csv").read_text("utf-8").splitlines()[1:]
    assert said["rows"] == len(lines) == ROWS
    found = {finding["column"]: finding for finding in said["findings"]}
    slashes = sum(line.count("/2025,") + line.count("/2026,") == 2 for line in lines)
    assert found["admitted"]["rows"] == found["discharged"]["rows"] == slashes
    assert found["admitted"]["left"] == 0
    assert 0.5 * ROWS < said["left_out"]["rows"] < 0.6 * ROWS


@pytest.mark.parametrize("name", ["right", "clean"])
def test_the_right_promise_needs_no_decision(folder, name):
    ended = discreet("check", f"{name}.toml", cwd=folder)
    assert ended.code == 0, ended.err
    assert (
        "No column needs a decision. As declared, a mean of cost would leave out 1.9 % of the rows."
        in ended.out
    )
    assert not list(folder.glob("*.ledger"))


POLICY = """source = "rows.parquet"
epsilon = 1
[columns]
x = {{ {} }}
"""


@pytest.mark.parametrize(
    ("options", "cells", "rows", "proposal", "left"),
    [
        ('type = "number"', ["1", "1.234,5", "2,5"], 2, 'decimal = ",", thousands = "."', 0),
        ('type = "number"', ["1", "2 345", "1\u202f000"], 2, 'decimal = ".", thousands = " "', 1),
        ('type = "number"', ["1", "\u00a02", "3\t"], 2, "trim = true", 0),
        ('type = "number"', ["1", "?", "NULL", "x"], 3, 'missing_values = ["?", "NULL"]', 1),
        ('type = "integer"', ["1", "2.5"], 1, 'type = "number"', 0),
        (
            'type = "date"',
            ["2024-01-31", "01/31/2024", "02/03/2024"],
            2,
            'format = ["%Y-%m-%d", "%m/%d/%Y"]',
            0,
        ),
        (
            'type = "date"',
            ["03.02.2024", "1 Feb 2024"],
            2,
            'format = ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y"]',
            0,
        ),
        (
            'type = "truth"',
            ["yes", "ja"],
            1,
            "declare another type, or map = { … } for these values",
            1,
        ),
        ('keys = ["A b", "C"]', ["A b", "A b ", "C"], 1, "trim = true", 0),
        ('keys = ["A b", "C"]', ["a b", "C"], 1, "casefold = true", 0),
        (
            'keys = ["A b", "C"]',
            ["a  b", "n/a"],
            2,
            'missing_values = ["n/a"], map = { "a  b" = "A b" }',
            0,
        ),
        ('keys = ["A", "a"]', ["A", " a"], 1, "trim = true", 0),
    ],
)
def test_proposals_read_what_was_not_read(tmp_path, options, cells, rows, proposal, left):
    finding = only(checked(tmp_path, POLICY.format(options), x=cells))
    assert (finding["rows"], finding["proposal"], finding["left"]) == (rows, proposal, left)
    assert finding["open"]
    if "…" in proposal:
        return
    others = "" if "type = " in proposal else f"{options}, "
    said = checked(tmp_path, POLICY.format(f"{others}{proposal}"), x=cells)
    unread = [
        found["rows"]
        for found in said["findings"]
        if found["problem"] in ("unreadable", "no key", "other")
    ]
    assert sum(unread) == left


def test_days_and_months_that_could_be_either_are_said_to_be(tmp_path):
    finding = only(
        checked(tmp_path, POLICY.format('type = "date"'), x=["01/02/2024", "03/04/2024"])
    )
    said = (
        'format = ["%Y-%m-%d", "%d/%m/%Y"] (or %m/%d/%Y: all of these dates fit both; ask who wrote'
        " them)"
    )
    assert finding["proposal"] == said


def test_other_groups_bounds_and_missing_cells_are_told_and_need_no_decision(tmp_path):
    said = checked(
        tmp_path, POLICY.format('keys = ["a"], other = "rest"'), x=["a", "zebra", "zebra", None]
    )
    assert [(one["problem"], one["rows"], one["open"]) for one in said["findings"]] == [
        ("other", 2, False),
        ("missing", 1, False),
    ]
    assert said["findings"][0]["examples"] == [{"text": "zebra", "rows": 2}]
    said = checked(
        tmp_path, POLICY.format("bounds = [0, 10], missing = 5"), x=[-1.0, 11.0, 12.0, None, 3.0]
    )
    assert [one["text"] for one in said["findings"]] == [
        "3 lie outside 0–10 (1 below, 2 above)",
        "1 are missing",
    ]
    assert [one["proposal"] for one in said["findings"]] == [
        "they count as 0 or 10",
        "they count as 5",
    ]
    assert said["left_out"] is None
    assert said["summary"] == "No column needs a decision."
    said = checked(tmp_path, POLICY.format("bins = [0, 5, 10]"), x=[-1.0, 3.0])
    assert only(said)["proposal"] == "groups leave them out"


def test_units_that_differ_by_spelling_alone_are_named(tmp_path):
    policy = (
        'source = "rows.parquet"\nepsilon = 1\nunit = "who"\nmax_rows = 1\n[columns]\nx = { bounds'
        " = [0, 9] }\n"
    )
    said = checked(tmp_path, policy, who=["a", "A ", "b", "b", "b", None], x=[1.0] * 6)
    assert [(one["problem"], one["text"]) for one in said["findings"]] == [
        ("limit", "1 of 3 have more than 1 rows"),
        ("no unit", "1 rows have no value"),
        ("spelling", "1 of 3 differ from another only by blanks or capitals"),
    ]
    assert (said["rows"], said["units"]) == (6, 3)


def test_control_characters_of_cells_do_not_reach_a_terminal(tmp_path):
    (tmp_path / "study.toml").write_text(POLICY.format('type = "number"'), "utf-8")
    pq.write_table(pa.table({"x": ["\x1b[2J", "\u202eevil\n"]}), tmp_path / "rows.parquet")
    for arguments in (["check", "study.toml"], ["check", "study.toml", "--json"]):
        ended = discreet(*arguments, cwd=tmp_path)
        assert ended.code == 0
        assert "\x1b" not in ended.out
        assert "\u202e" not in ended.out


def test_a_policy_or_a_select_that_is_wrong_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "rows.csv").write_text("x\n1\nWolpertinger\n")
    discreet("check", "study.toml", cwd=tmp_path).refused(2, "there is no such file")
    select = (
        'source = "SELECT {} AS x FROM \'rows.csv\'"\nepsilon = 1\n[columns]\nx = {{ type = "text"'
        " }}\n"
    )
    (tmp_path / "study.toml").write_text(select.format("y"))
    discreet("check", "study.toml", cwd=tmp_path).refused(
        2, "cannot be read: Binder Error", '"y" not found'
    )
    (tmp_path / "study.toml").write_text(
        select.format("CAST(x AS INTEGER)").replace('type = "text"', "bounds = [0, 1]")
    )
    discreet("check", "study.toml", cwd=tmp_path).refused(5, "use TRY_CAST")


def test_a_server_that_does_not_answer_is_no_matter_of_a_cast(tmp_path):
    address = "postgresql://u@127.0.0.1:1/people#t"
    (tmp_path / "study.toml").write_text(
        f'source = "{address}"\nepsilon = 1\n[columns]\nx = {{ bounds = [0, 1] }}\n'
    )
    refused = discreet("check", "study.toml", cwd=tmp_path)
    assert refused.code == 5
    assert "no server listens" in refused.err
    assert "TRY_CAST" not in refused.err


@pytest.mark.server
def test_a_table_on_postgresql_is_checked_too(tmp_path, postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS checked")
        connection.execute(
            "CREATE TABLE checked AS SELECT * FROM (VALUES ('a', 'A b '), ('A', 'n/a')) AS t(who,"
            " ward)"
        )
    promise = 'epsilon = 1\nunit = "who"\nmax_rows = 1\n[columns]\nward = { keys = ["a b"] }\n'
    (tmp_path / "study.toml").write_text(f'source = "{postgres}#checked"\n{promise}', "utf-8")
    ended = discreet("check", "study.toml", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.err
    ward, who = json.loads(ended.out)["findings"]
    assert ward["proposal"] == 'trim = true, casefold = true, missing_values = ["n/a"]'
    assert who["problem"] == "spelling"


def test_a_file_that_is_no_utf_8_is_told_with_what_to_declare(tmp_path):
    (tmp_path / "rows.csv").write_bytes("town;age\nKöln;34\nBonn;35\nKöln;36\n".encode("latin-1"))
    policy = (
        'source = "rows.csv"\nepsilon = 1\n{}\n[columns]\ntown = {{ keys = ["Köln", "Bonn"] }}\n'
    )
    said = {}
    for encoding in ("", 'encoding = "windows-1252"'):
        (tmp_path / "study.toml").write_text(policy.format(encoding), "utf-8")
        said[encoding] = json.loads(discreet("check", "study.toml", "--json", cwd=tmp_path).out)
    finding, missing = said[""]["findings"]
    assert (finding["column"], finding["rows"], finding["open"]) == ("source", 2, True)
    assert finding["proposal"] == 'encoding = "windows-1252"'
    assert (missing["column"], missing["problem"], missing["rows"]) == ("town", "missing", 2)
    assert said[""]["rows"] == said[finding["proposal"]]["rows"] == 3
    assert said[finding["proposal"]]["findings"] == []
