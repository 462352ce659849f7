"""`discreet init` looks at names and types alone, and writes a policy that loads."""

import os
import pty
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Policy
from discreet.ask.expression import ColumnType
from discreet.cli.check.sample import Sample
from discreet.cli.init import interview
from discreet.cli.init.draft import Draft
from messy import hospital
from shell import CANARY, Ended, contents, discreet, one_after_another, visits
from waiting import PATIENCE

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
    more = [
        "--keys",
        "county=counties.csv",
        "--bounds",
        "born=2000-01-01:2030-12-31",
        "--neighbors",
        "add-remove",
    ]
    told = discreet("init", "visits.parquet", *FLAGS, *more, cwd=unreadable)
    assert told.code == 0, told.err
    assert "5 columns (patient text, county text, age number, well truth, born date)" in told.out
    assert "No values were read." in told.out
    policy = Policy.load(unreadable / "study.toml")
    assert (policy.unit, policy.max_rows, policy.neighbors) == ("patient", 2, "add-remove")
    assert list(policy.columns["county"].keys) == ["Dukes", "Essex"]
    assert list(policy.columns) == ["age", "born", "county"]
    text = (unreadable / "study.toml").read_text("utf-8")
    assert "# well = {}" in text
    assert told.out.endswith(
        "Wrote study.toml. Please read it: this is what you promise. Then run: discreet check"
        " study.toml\n"
    )
    assert CANARY not in text + told.out

    before = contents(unreadable)
    discreet("init", "visits.parquet", *FLAGS, cwd=unreadable).refused(
        2, "study.toml exists and is a promise"
    )
    assert contents(unreadable) == before


def test_what_is_not_said_and_has_no_default_is_refused_by_name(unreadable):
    told = discreet("init", "visits.parquet", "--unit", "patient", cwd=unreadable)
    told.refused(2, "--epsilon", "--max-rows", "--bounds")
    assert not (unreadable / "study.toml").exists()


def test_a_key_with_a_comma_stands_in_quotes_and_the_keys_are_counted(unreadable):
    apart = ["county=Dukes, Essex,Ear, Nose & Throat"]
    held = ['county=Dukes, "Ear, Nose & Throat" ,"a ""b"" "']
    told = one_after_another(
        [
            [
                "init",
                "visits.parquet",
                *FLAGS,
                "--keys",
                *keys,
                "-o",
                f"{name}.toml",
                "--another-budget",
            ]
            for name, keys in {
                "apart": apart,
                "held": held,
                "open": ['county=Dukes,"Essex'],
            }.items()
        ],
        unreadable,
    )
    assert (
        '\ncounty: 4 keys: "Dukes", "Essex", "Ear", "Nose & Throat"\nWrote apart.toml'
        in told[0].out
    )
    assert (
        '\ncounty: 3 keys: "Dukes", "Ear, Nose & Throat", "a \\"b\\" "\nWrote held.toml'
        in told[1].out
    )
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
            [
                "init",
                "visits.parquet",
                "--unit",
                unit,
                *flags,
                "-o",
                f"{unit}.toml",
                "--another-budget",
            ]
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
    told = one_after_another(
        [["init", "visits.parquet", *FLAGS, *flags] for flags, _ in WRONG], unreadable
    )
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
        out = asked.communicate(timeout=PATIENCE)[0].decode()
    os.close(ours)
    os.close(theirs)
    assert asked.returncode == 0, out
    assert "Whom do you protect?" in out
    assert "got 'nobody'" in out
    assert "lower must not exceed upper" in out
    policy = Policy.load(unreadable / "study.toml")
    assert (policy.unit, policy.max_rows, policy.neighbors) == ("patient", 2, "change-one")
    assert list(policy.columns) == ["county", "age", "well"]


def test_it_says_why_a_column_is_not_read(tmp_path):
    times = pa.array([0, 1000], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(
        pa.table({"age": [30, 40], "seen": times, "tags": [["a"], []]}), tmp_path / "people.parquet"
    )
    told = discreet(
        "init",
        "people.parquet",
        "--unit",
        "row",
        "--bounds",
        "age=0:120",
        "--epsilon",
        "1",
        cwd=tmp_path,
    )
    assert told.code == 0, told.err
    assert "1 column (age integer)" in told.out
    assert "seen is skipped: its times are in milliseconds" in told.out
    assert 'coerce_timestamps="us"' in told.out
    assert "tags is skipped: its type is list" in told.out


@pytest.fixture(scope="module")
def hospital_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospital")
    hospital(folder, 400)
    return folder


WARDS = 'ward=Cardiology,"Ear, Nose & Throat",Gériatrie,Oncology,Surgery'
MESSY = [
    "--unit",
    "row",
    "--epsilon",
    "3",
    "--keys",
    WARDS,
    "--bounds",
    "admitted=2025-01-01:2025-12-31",
]
MESSY += ["--bounds", "cost=0:20000", "--another-budget"]


def test_it_proposes_how_to_read_cells_and_shows_none(hospital_folder):
    told = discreet("init", "visits.csv", *MESSY, "-o", "told.toml", cwd=hospital_folder)
    assert told.code == 0, told.err
    assert told.out.splitlines()[1:] == [
        'ward: 5 keys: "Cardiology", "Ear, Nose & Throat", "Gériatrie", "Oncology", "Surgery"',
        'admitted: format = ["%Y-%m-%d", "%d/%m/%Y"] would read more cells.',
        'cost: thousands = ",", missing_values = ["n/a"] would read more cells.',
        "ward: trim = true, casefold = true would read more cells.",
        (
            "Wrote told.toml. Please read it: this is what you promise. Then run: discreet check"
            " told.toml"
        ),
    ]
    policy = Policy.load(hospital_folder / "told.toml")
    assert policy.columns["cost"].thousands is None  # nobody has agreed
    taken = discreet("init", "visits.csv", *MESSY, "--yes", "-o", "taken.toml", cwd=hospital_folder)
    assert taken.code == 0, taken.err
    assert "would read" not in taken.out
    columns = Policy.load(hospital_folder / "taken.toml").columns
    assert (columns["cost"].thousands, columns["ward"].trim, columns["ward"].map) == (
        ",",
        True,
        None,
    )
    assert columns["admitted"].format == ("%Y-%m-%d", "%d/%m/%Y")
    text = (hospital_folder / "taken.toml").read_text("utf-8") + taken.out + told.out
    for cell in ("CARD", "GÉRIATRIE", "Geriatrie", "P000"):
        assert cell not in text


def test_columns_that_are_left_out_are_guessed_for_whoever_fills_them_in(hospital_folder):
    discreet(
        "init", "visits.csv", *MESSY[:6], "--another-budget", "-o", "few.toml", cwd=hospital_folder
    )
    text = (hospital_folder / "few.toml").read_text("utf-8")
    assert '# admitted = { type = "date", bounds = [2000-01-01, 2030-12-31] }' in text
    assert '# cost = { type = "number", bounds = [lower, upper] }' in text


def test_a_column_that_names_people_is_warned_about(hospital_folder):
    flags = ["--epsilon", "1", "--delta", "1e-6", "--another-budget", "--keys"]
    people, wards = one_after_another(
        [
            ["init", "visits.csv", *flags, f"{column}=discover", "-o", f"{column}.toml"]
            for column in ("patient", "ward")
        ],
        hospital_folder,
    )
    warning = "warning: nearly every row has a different patient, so it is not a column to group by"
    assert warning in people.out.splitlines()
    assert "warning" not in wards.out
    assert Policy.load(hospital_folder / "ward.toml").delta == Fraction(1, 10**6)


def test_missing_other_delta_and_table_are_written(unreadable):
    flags = [
        "--missing",
        "age=0.5",
        "--keys",
        "county=discover",
        "--other",
        "county=elsewhere",
        "--table",
        "stays",
    ]
    lacking = discreet("init", "visits.parquet", *FLAGS, *flags, cwd=unreadable)
    lacking.refused(2, "--delta, the probability that a discovery may fail")
    told = discreet("init", "visits.parquet", *FLAGS, *flags, "--delta", "1e-9", cwd=unreadable)
    assert told.code == 0, told.err
    policy = Policy.load(unreadable / "study.toml")
    assert (policy.table, policy.delta) == ("stays", Fraction(1, 10**9))
    assert (policy.columns["age"].missing, policy.columns["county"].other) == (
        Fraction(1, 2),
        "elsewhere",
    )


def asked(answers, schema, sample=None):
    """The options of columns after an interview, and what was complained of."""
    complaints, left = [], iter(answers)
    draft = Draft(source="x", unit="row", neighbors="change-one", epsilon="1")
    ask = interview.asker(lambda _question, default: next(left) or default, complaints.append)
    interview.interview(draft, schema, Sample(sample), ask, Path())
    assert next(left, None) is None
    return draft, complaints


TEXT = ColumnType("text", False, "VARCHAR", typed=False)


@pytest.mark.parametrize(
    ("answers", "options", "complaints"),
    [
        (["text", 'A,"B, C"'], {"keys": '["A", "B, C"]'}, 0),
        (['A,"B, C"'], {"keys": '["A", "B, C"]'}, 0),
        (["number", "0:120"], {"bounds": "[0, 120]"}, 0),
        (["0:120"], {"bounds": "[0, 120]"}, 0),
        (["text", "-1:2.5"], {"bounds": '[-1, "2.5"]'}, 0),
        (["date", "2026-01-01:2026-12-31"], {"bounds": "[2026-01-01, 2026-12-31]"}, 0),
        (["text", "2026-01-01:2026-12-31"], {"bounds": "[2026-01-01, 2026-12-31]"}, 0),
        (["Number", "1,2,3"], {"type": '"number"', "keys": '["1", "2", "3"]'}, 0),
        (["number", "yes", "1,2"], {"type": '"number"', "keys": '["1", "2"]'}, 1),
        (["date", "-"], None, 0),
        (["-"], None, 0),
        (["what", "text", "12..1", "1..12"], {"keys": '"1..12"'}, 2),
        (
            ["date", "soon", "2026-02-01:2026-01-01", "2026-01-01:2026-02-01"],
            {"bounds": "[2026-01-01, 2026-02-01]"},
            2,
        ),
    ],
)
def test_a_column_of_text_is_asked_what_it_is(answers, options, complaints):
    draft, said = asked(answers, {"x": TEXT})
    assert draft.columns == ({} if options is None else {"x": options})
    assert len(said) == complaints


def test_a_discovery_is_asked_for_its_delta():
    draft, _ = asked(["discover", "2", "1e-6"], {"x": TEXT})
    assert (draft.columns, draft.delta) == ({"x": {"keys": '"discover"'}}, "1e-6")


def test_the_answer_is_guessed_and_who_names_people_is_left_out():
    rows = pa.table(
        {
            "day": ["13/05/2025", "n/a"] * 20,
            "cost": ["1,234.50", "17"] * 20,
            "who": map(str, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"),
        }
    )
    draft, _ = asked(
        ["", "2025-01-01:2025-12-31", "", "0:9", ""], dict.fromkeys(rows.column_names, TEXT), rows
    )
    assert draft.columns == {
        "day": {"bounds": "[2025-01-01, 2025-12-31]"},
        "cost": {"bounds": "[0, 9]"},
    }


def test_a_file_that_is_no_utf_8_needs_its_encoding(tmp_path):
    (tmp_path / "rows.csv").write_bytes("town;age\nKöln;34\nBonn;35\n".encode("latin-1"))
    flags = [
        "init",
        "rows.csv",
        "--epsilon",
        "1",
        "--bounds",
        "age=0:120",
        "--another-budget",
        "-o",
    ]
    told, taken, said = one_after_another(
        [
            [*flags, "told.toml"],
            [*flags, "taken.toml", "--yes"],
            [*flags, "said.toml", "--encoding", "latin-1"],
        ],
        tmp_path,
    )
    assert (
        "Some cells are not UTF-8 and are missing. --encoding windows-1252 may read them."
        in told.out
    )
    assert "UTF-8" not in taken.out + said.out
    encodings = [
        Policy.load(tmp_path / f"{name}.toml").encoding for name in ("told", "taken", "said")
    ]
    assert encodings == [None, "windows-1252", "latin-1"]
