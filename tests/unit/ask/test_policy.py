"""Policies: read from TOML or made in Python, each error one sentence that names the key and what
to write.
"""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from asking import COLUMNS, POLICY, SCHEMA
from discreet.ask.declared import Declared
from discreet.ask.policy import Policy
from discreet.ask.scope import check_schema
from discreet.errors import InvalidParameter
from scripted import Odd

STUDY = """
source    = "visits.parquet"
unit      = "patient"          # whom we protect: all rows of one patient
max_rows  = 4                  # rows of one patient that may count
neighbors = "change-one"       # the number of patients is public
epsilon   = "1"                # for this data, for ever
[columns]
county = { keys = "counties.csv" }          # a public list; every county gets a row, also empty ones
age    = { bounds = [0, 120], missing = "drop" }
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "counties.csv").write_text('county\nSuffolk\n"Kings, NY"\n\n')
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_the_file_of_the_guide_loads_as_it_is(study: Path) -> None:
    policy = Policy.load(study)
    assert policy.source == str(study.parent / "visits.parquet")
    assert (policy.unit, policy.unit_column, policy.max_rows, policy.max_groups) == (
        "patient",
        "patient",
        4,
        None,
    )
    assert (policy.neighbors, policy.epsilon, policy.delta) == ("change-one", 1, None)
    assert list(policy.columns["county"].keys) == ["Suffolk", "Kings, NY"]
    assert policy.columns["age"].bounds == (0, 120)
    assert policy.columns["age"].missing is None


def test_a_policy_reads_back_from_its_own_text(study: Path, tmp_path: Path) -> None:
    policy = Policy.load(study)
    again = tmp_path / "again.toml"
    again.write_text(policy.to_toml())
    assert Policy.load(again) == policy
    rich = Policy(
        source="x.csv",
        delta="1e-6",
        epsilon="1/3",
        version="é\x7f\n",
        neighbors="add-remove",
        columns=COLUMNS,
    )
    again.write_text(rich.to_toml())
    loaded = Policy.load(again)
    assert loaded.columns == rich.columns
    assert (loaded.epsilon, loaded.delta, loaded.version) == (
        Fraction(1, 3),
        Fraction(1, 10**6),
        "é\x7f\n",
    )


def test_only_a_named_source_can_be_written() -> None:
    with pytest.raises(InvalidParameter, match="source: only a path"):
        Policy(source=Odd(), epsilon=1, columns=COLUMNS).to_toml()


def test_keys_come_from_a_table_of_a_database(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "public.db")) as opened:
        opened.execute('CREATE TABLE "the places" (code INTEGER, county TEXT)')
        opened.executemany(
            'INSERT INTO "the places" VALUES (?, ?)', [(1, "Suffolk"), (2, 'Kings" NY'), (3, None)]
        )
        opened.execute("CREATE TABLE months (month INTEGER)")
        opened.execute("INSERT INTO months VALUES (1), (2)")
        opened.commit()
    (tmp_path / "no.db").write_text("nothing of the kind, and longer than a header of a file")

    def keys(written: str) -> object:
        return tuple(Declared(keys=written, name="county", folder=tmp_path).keys)

    assert (
        keys("public.db#the places.county")
        == keys("public.db#the places")
        == ("Suffolk", 'Kings" NY')
    )
    assert keys("public.db#the places.code") == ("1", "2", "3")
    assert keys("public.db#months") == ("1", "2")
    for written, message in {
        "public.db": "say which table of 'public.db' holds the keys",
        "public.db#nothing": "say which table of 'public.db' holds the keys",
        "public.db#the places.name": "has 2 columns; say which holds the keys",
        "no.db#months": "must be an SQLite file",
    }.items():
        with pytest.raises(InvalidParameter, match=message):
            keys(written)


def test_keys_may_be_a_column_of_any_library() -> None:
    for column in (
        np.array(["a", "b"]), pd.Series(["a", "b"]), pl.Series(["a", "b"]), pa.array(["a", "b"])
    ):  # fmt: skip
        assert list(Declared(keys=column).keys) == ["a", "b"]
    assert list(Declared(keys=np.arange(3)).keys) == [0, 1, 2]


def test_a_list_of_files_is_read_once_and_written_again(study: Path) -> None:
    study.write_text(STUDY.replace('"visits.parquet"', '["2023.parquet", "old/2024.parquet"]'))
    policy, folder = Policy.load(study), study.parent
    assert policy.source == (str(folder / "2023.parquet"), str(folder / "old/2024.parquet"))
    study.write_text(policy.to_toml())
    assert 'source = ["2023.parquet", "old/2024.parquet"]' in study.read_text()
    assert Policy.load(study) == policy
    files: list[str | Path] = ["2023.parquet", Path("2024.parquet")]
    policies = [Policy(source=kind(files), epsilon=1, columns=COLUMNS) for kind in (list, tuple)]
    files.clear()
    assert [policy.source for policy in policies] == [("2023.parquet", "2024.parquet")] * 2


@pytest.mark.parametrize(
    "listed", [[], (), [7319.5], ["a.csv", 7319], [["a.csv"]], [{"age": 7319}]]
)
def test_a_list_of_anything_but_files_is_refused_and_not_shown(listed: object) -> None:
    with pytest.raises(InvalidParameter, match="source: a list must name files, as in") as refused:
        Policy(source=listed, epsilon=1, columns=COLUMNS)
    assert "7319" not in str(refused.value)


@pytest.mark.parametrize("odd", ["SELECT 1", "postgresql://me:secret@host/x#t", "spark:people"])
def test_what_is_no_file_is_in_no_list(odd: str) -> None:
    with pytest.raises(InvalidParameter, match="an address or a SELECT is alone") as refused:
        Policy(source=["a.csv", odd], epsilon=1, columns=COLUMNS)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "source", ["https://x/y.parquet", "SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a"]
)
def test_addresses_and_selects_are_no_paths(study: Path, source: str) -> None:
    study.write_text(STUDY.replace("visits.parquet", source))
    assert Policy.load(study).source == source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": None}, "source: it must be a path"),
        ({"source": " "}, "source: it must be a text"),
        ({"unit": 3}, "unit: it must be a text"),
        (
            {"max_rows": None},
            "max_rows: it must say how many rows of one patient may count; write max_rows=1",
        ),
        ({"max_rows": 0}, "max_rows: max_rows must be a whole number"),
        ({"max_rows": True}, "max_rows: max_rows must be a whole number"),
        ({"unit": "row"}, "max_rows: each row is a unit"),
        ({"max_groups": 5}, "max_groups: it must not exceed max_rows, got 5 and 4"),
        ({"neighbors": "bounded"}, "neighbors: neighbors must be 'change-one' or 'add-remove'"),
        *[
            ({"epsilon": bad}, "epsilon: epsilon must")
            for bad in (
                0,
                -1,
                True,
                math.nan,
                math.inf,
                "0.1x",
                "1e400",
                "5e-324",
                "9" * 5000,
                None,
            )
        ],
        ({"delta": 1}, "delta: delta must lie strictly between 0 and 1"),
        ({"version": 3}, "version: it must be a text"),
        ({"columns": {}}, "columns: it must name at least one column"),
        ({"columns": [1]}, "columns: it must name at least one column"),
        (
            {"columns": {"age": 3}},
            r"columns.age: write columns=\{\"age\": \{\"bounds\": \(0, 120\)\}\}, got 3",
        ),
        ({"columns": {"patient": {"bounds": [0, 1]}}}, "columns.patient: the column of the unit"),
        ({"columns": {"": {}}}, "columns: a name must be a text"),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused_by_its_key(
    change: dict[str, object], message: str
) -> None:
    options: dict[str, object] = {
        "source": "x",
        "unit": "patient",
        "max_rows": 4,
        "epsilon": 1,
        "columns": COLUMNS,
    }
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        Policy(**{**options, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [120, 0]}, "bounds: lower must not exceed upper, got lower=120 and upper=0"),
        ({"bounds": [1, 1]}, "bounds: lower and upper must differ"),
        ({"bounds": [0, math.nan]}, "bounds: upper must be a finite number"),
        ({"bounds": [-math.inf, 0]}, "bounds: lower must be a finite number"),
        ({"bounds": [0, 1.7e308]}, "bounds: upper must be 0 or between"),
        ({"bounds": 3}, "bounds: bounds must be a pair"),
        ({"bounds": [date(2021, 1, 1), date(2020, 1, 1)]}, "bounds: lower must come before upper"),
        ({"bound": [0, 1]}, "bound is not a key of a policy; did you mean bounds?"),
        ({"zzz": 1}, "zzz is not a key of a policy; the keys are type, format"),
        ({"keys": []}, "keys: keys must have at least one value"),
        ({"keys": ["a", "a"]}, "keys: keys must differ, got 'a' twice"),
        ({"keys": [1, 1.0]}, "keys: keys must differ, got 1 twice"),
        ({"keys": ["a", 1]}, "keys: keys must be of one kind"),
        ({"keys": [math.nan]}, "keys: a key must be a finite number"),
        ({"keys": 3}, "keys: keys must be a list"),
        ({"keys": "12..1"}, "keys: a range must be"),
        ({"keys": "1..100000000"}, "keys: a range must be"),
        ({"keys": "none.csv"}, "keys: the file 'none.csv' must exist"),
        ({"keys": "a.exe"}, "keys: keys must be a list, a range"),
        ({"bins": [0]}, "bins: bins must be at least two edges"),
        ({"bins": [0, 2, 1]}, "bins: edges must increase, got 2 before 1"),
        ({"bins": [0, 1], "keys": ["a"]}, "bins: a column has keys or bins, not both"),
        ({"precision": 1}, "precision: it is a step between two bounds"),
        ({"precision": 0, "bounds": [0, 1]}, "precision: precision must be positive"),
        ({"precision": 2, "bounds": [0, 1]}, "precision: it must not exceed"),
        ({"missing": 2, "bounds": [0, 1]}, "missing: it must lie within the bounds, got 2"),
        ({"missing": math.inf, "bounds": [0, 1]}, "missing: a key must be a finite number"),
        ({"other": "x"}, "other: it is the label of values that are not keys"),
        ({"other": "a", "keys": ["a"]}, "other: it must not be one of the keys"),
        ({"other": 3, "keys": ["a"]}, "other: it must be a label"),
    ],
)
def test_a_column_that_contradicts_itself_is_refused_by_its_key(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        Policy(source="x", epsilon=1, columns={"age": options})
    assert str(refusal.value).startswith(f"columns.age.{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilon = 1", "study.toml: source is missing; write source = "),
        ('source = "x"\n[columns]', "study.toml: epsilon is missing"),
        (
            STUDY.replace("epsilon", "epsilom"),
            "study.toml: epsilom is not a key of a policy; did you mean epsilon?",
        ),
        (STUDY + "\nage = {}", "study.toml: the file must be TOML"),
        ("= 3", "study.toml: the file must be TOML"),
        ("[" * 5000, "study.toml: the file must be TOML"),
        (
            STUDY.replace("[0, 120]", "[0, nan]"),
            "study.toml: columns.age.bounds: upper must be a finite number",
        ),
        (STUDY.replace('"1" ', "inf"), "study.toml: epsilon: epsilon must be"),
    ],
)
def test_an_error_names_the_file_and_the_key(study: Path, text: str, message: str) -> None:
    study.write_text(text)
    with pytest.raises(InvalidParameter) as refusal:
        Policy.load(study)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidParameter, match=r"none\.toml: there is no such file; `discreet init` writes one"
    ):
        Policy.load(tmp_path / "none.toml")
    with pytest.raises(InvalidParameter, match="must be a plain file"):
        Policy.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "written", "keys"),
    [
        ("k.csv", "county\nA\nB\n", "k.csv", ("A", "B")),
        ("k.csv", "A\nB", "k.csv", ("A", "B")),
        ("k.csv", "\ufeffCOUNTY\r\nA\r\n", "k.csv", ("A",)),
        ("k.csv", "id,place\n1,A\n2,B\n", "k.csv#place", ("A", "B")),
        ("k.tsv", "id\tplace\n1\tA, a\n", "k.tsv#place", ("A, a",)),
        ("k.txt", 'A, "quoted"\nB', "k.txt", ('A, "quoted"', "B")),
    ],
)
def test_a_public_file_gives_keys(
    tmp_path: Path, name: str, content: str, written: str, keys: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(content)
    declared = Declared(keys=written, name="county", folder=tmp_path)
    assert tuple(declared.keys) == keys
    assert declared.keys_from == written


@pytest.mark.parametrize(
    ("content", "written", "message"),
    [
        ("id,place\n1,A\n", "k.csv", '"k.csv#id"'),
        ("id,place\n1,A\n", "k.csv#town", "must name a column 'town'"),
        ("id,place\n1\n", "k.csv#id", "must have 2 fields"),
        ("A\nA\n", "k.csv", "must differ"),
        ("", "k.csv", "at least one value"),
        ("A\0\n", "k.csv", "NUL|must be UTF-8"),
        ('"A\n', "k.csv", "must be UTF-8 text that can be read"),
    ],
)
def test_a_file_without_keys_is_refused(
    tmp_path: Path, content: str, written: str, message: str
) -> None:
    (tmp_path / "k.csv").write_text(content)
    with pytest.raises(InvalidParameter, match=message):
        Declared(keys=written, name="county", folder=tmp_path)


def test_parquet_gives_keys(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"county": ["A", None, "B"], "n": [1, 2, 3]}), tmp_path / "k.parquet"
    )
    assert list(Declared(keys="k.parquet", name="county", folder=tmp_path).keys) == ["A", "B"]
    assert list(Declared(keys="k.parquet#n", name="county", folder=tmp_path).keys) == [
        "1",
        "2",
        "3",
    ]
    with pytest.raises(InvalidParameter, match=r'"k\.parquet#county"'):
        Declared(keys="k.parquet", name="x", folder=tmp_path)
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(InvalidParameter, match="must be a Parquet file"):
        Declared(keys="bad.parquet", folder=tmp_path)


def test_a_policy_of_many_keys_prints_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("".join(f"place {at}\n" for at in range(10**4)))
    policy = Policy(source="x", epsilon=1, columns={"county": {"keys": "k.csv"}}, folder=tmp_path)
    assert "Keys(10,000 of kind text)" in repr(policy)
    assert "place" not in repr(policy)
    assert len(repr(policy)) < 1000


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"agee": {}},
            "columns.agee: the data has no such column; did you mean age?",
        ),
        (
            {"age": {"bounds": [date(2020, 1, 1), date(2021, 1, 1)]}},
            "columns.age.bounds: they must be of the column's",
        ),
        (
            {"name": {"bounds": [0, 1], "keys": ["a"]}},
            "columns.name.keys: a key must be a finite number",
        ),
        (
            {"name": {"bounds": [0, 1], "keys": "discover"}},
            "columns.name.keys: only texts and whole numbers",
        ),
        ({"name": {"bins": [0, 1], "missing": "none"}}, "columns.name.missing"),
        ({"age": {"keys": ["a"]}}, "columns.age.keys: a key must be a finite number"),
        ({"age": {"missing": "none"}}, "columns.age.missing"),
    ],
)
def test_a_policy_must_fit_its_data(columns: dict[str, object], message: str) -> None:
    check_schema(POLICY, SCHEMA)
    with pytest.raises(InvalidParameter) as refusal:
        check_schema(Policy(source="x", epsilon=1, columns=columns), SCHEMA)
    assert str(refusal.value).startswith(message)
    with pytest.raises(InvalidParameter, match="unit: the data has no column 'who'"):
        check_schema(
            Policy(source="x", unit="who", max_rows=1, epsilon=1, columns={"age": {}}), SCHEMA
        )
