"""`discreet init` looks at names and types alone, and writes a policy that loads."""

import os
import pty
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Policy
from shell import CANARY, Ended, contents, discreet, one_after_another, visits

FLAGS = ["--unit", "patient", "--max-rows", "2", "--bounds", "age=0:120", "--epsilon", "0.5"]


@pytest.fixture
def unreadable(tmp_path):
    """A table of which only the schema can be read."""
    pq.write_table(visits(), tmp_path / "visits.parquet")
    data = bytearray((tmp_path / "visits.parquet").read_bytes())
    end = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    data[4:end] = b"\xff" * (end - 4)
    (tmp_path / "visits.parquet").write_bytes(data)
    return tmp_path


def test_it_reads_no_value_and_writes_a_policy_that_loads(unreadable):
    (unreadable / "counties.csv").write_text("Dukes\nEssex\n", "utf-8")
    more = ["--keys", "county=counties.csv", "--bounds", "born=2000-01-01:2030-12-31", "--neighbors", "add-remove"]
    told = discreet("init", "visits.parquet", *FLAGS, *more, cwd=unreadable)
    assert told.code == 0, told.err
    assert "5 columns (patient varchar, county varchar, age double" in told.out
    assert "No values were read." in told.out
    policy = Policy.load(unreadable / "study.toml")
    assert (policy.unit, policy.max_rows, policy.neighbors) == ("patient", 2, "add-remove")
    assert list(policy.columns["county"].keys) == ["Dukes", "Essex"]
    assert list(policy.columns) == ["age", "born", "county"]
    text = (unreadable / "study.toml").read_text("utf-8")
    assert "# well = {}" in text
    assert CANARY not in text + told.out

    before = contents(unreadable)
    discreet("init", "visits.parquet", *FLAGS, cwd=unreadable).refused(2, "study.toml must not be overwritten")
    assert contents(unreadable) == before


def test_what_is_not_said_and_has_no_default_is_refused_by_name(unreadable):
    told = discreet("init", "visits.parquet", "--unit", "patient", cwd=unreadable)
    told.refused(2, "--epsilon", "--max-rows", "--bounds")
    assert not (unreadable / "study.toml").exists()


def test_a_key_with_a_comma_stands_in_quotes_and_the_keys_are_counted(unreadable):
    apart, held = ["county=Dukes, Essex,Ear, Nose & Throat"], ['county=Dukes, "Ear, Nose & Throat" ,"a ""b"" "']
    told = one_after_another(
        [
            ["init", "visits.parquet", *FLAGS, "--keys", *keys, "-o", f"{name}.toml", "--another-budget"]
            for name, keys in {"apart": apart, "held": held, "open": ['county=Dukes,"Essex']}.items()
        ],
        unreadable,
    )
    assert "\ncounty: 4 keys\nwrote apart.toml" in told[0].out
    assert "\ncounty: 3 keys\nwrote held.toml" in told[1].out
    assert list(Policy.load(unreadable / "held.toml").columns["county"].keys) == [
        "Dukes",
        "Ear, Nose & Throat",
        'a "b" ',
    ]
    assert told[2].code == 2
    assert "in quotes" in told[2].err


def test_capitals_of_a_column_do_not_matter_where_there_is_no_doubt(unreadable):
    flags = ["--max-rows", "2", "--bounds", "Age=0:120", "--epsilon", "1"]
    right, wrong = one_after_another(
        [
            ["init", "visits.parquet", "--unit", unit, *flags, "-o", f"{unit}.toml", "--another-budget"]
            for unit in ("PATIENT", "patent")
        ],
        unreadable,
    )
    assert right.code == 0, right.err
    policy = Policy.load(unreadable / "PATIENT.toml")
    assert (policy.unit, list(policy.columns)) == ("patient", ["age"])
    assert "did you mean patient? It has patient, county" in wrong.err


WRONG = [
    (["--bounds", "height=0:1"], ["height", "age"]),
    (["--bounds", "age=120:0"], ["lower"]),
    (["--bounds", "age"], ["column="]),
    (["--bounds", "well=0:1"], ["well"]),
    (["--bounds", "born=2000-13-41:2030-01-01"], ["days"]),
    (["--keys", "county=gone.csv"], ["gone.csv"]),
    (["--neighbors", "all"], ["neighbors"]),
    (["--max-rows", "0"], ["max-rows"]),
    (["--epsilon", "nan"], ["epsilon"]),
    (["--unit", "nobody"], ["nobody"]),
    (["--output", "nowhere/study.toml"], ["study.toml"]),
]


def test_a_flag_that_cannot_hold_is_refused(unreadable):
    told = one_after_another([["init", "visits.parquet", *FLAGS, *flags] for flags, _ in WRONG], unreadable)
    for ended, (_, words) in zip(told, WRONG, strict=True):
        assert ended.code == 2
        Ended(2, "", ended.err).refused(2, *words)
    assert not (unreadable / "study.toml").exists()


def test_a_csv_gives_its_columns_and_none_of_its_values(tmp_path):
    (tmp_path / "people.csv").write_text(f"name,age\n{CANARY},34.5\n{CANARY},71.25\n", "utf-8")
    told = discreet("init", "people.csv", "--bounds", "age=0:120", "--epsilon", "1", cwd=tmp_path)
    assert told.code == 0, told.err
    text = (tmp_path / "study.toml").read_text("utf-8")
    for value in (CANARY, "34.5", "71.25"):
        assert value not in told.out + text
    assert Policy.load(tmp_path / "study.toml").unit == "row"


def test_on_a_terminal_it_asks_and_asks_again_after_a_wrong_answer(unreadable):
    answers = ["nobody", "patient", "2", "", "0.5", "Dukes,Essex", "120:0", "0:120", "yes", "-"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", "init", "visits.parquet"],
        cwd=unreadable,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as asked:
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        out = asked.communicate(timeout=60)[0].decode()
    os.close(ours)
    os.close(theirs)
    assert asked.returncode == 0, out
    assert "Whose rows are they?" in out
    assert "got 'nobody'" in out
    assert "lower must not exceed upper" in out
    policy = Policy.load(unreadable / "study.toml")
    assert (policy.unit, policy.max_rows, policy.neighbors) == ("patient", 2, "change-one")
    assert list(policy.columns) == ["county", "age", "well"]


def test_it_says_why_a_column_is_not_read(tmp_path):
    times = pa.array([0, 1000], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"age": [30, 40], "seen": times, "tags": [["a"], []]}), tmp_path / "people.parquet")
    told = discreet("init", "people.parquet", "--unit", "row", "--bounds", "age=0:120", "--epsilon", "1", cwd=tmp_path)
    assert told.code == 0, told.err
    assert "1 column (age bigint)" in told.out
    assert "seen is not read: its times are in milliseconds" in told.out
    assert 'coerce_timestamps="us"' in told.out
    assert "tags is not read: its type is list" in told.out
