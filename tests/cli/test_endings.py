"""However a command ends: one sentence, a code, no traceback, and a ledger that is whole."""

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from discreet import Ledger
from shell import QUESTION, contents, discreet, one_after_another, study_in
from waiting import PATIENCE, wait

ENDLESS = """source = "SELECT i % 90 AS age FROM range(100000000000) t(i)"
epsilon = "1"
{version}
[columns]
age = {{ bounds = [0, 120] }}
"""
MAIN = (
    # as in a shell's foreground
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from pathlib import Path; from discreet.engines.duckdb import DuckDB; "
    "version, fetch = DuckDB.version, DuckDB.fetch; "
    "DuckDB.version = lambda *given: Path('hashing').touch() or version(*given); "
    "DuckDB.fetch = lambda *given: Path('reading').touch() or fetch(*given); "
    "from discreet.__main__ import main; main()"
)


def entries(folder) -> list[str]:
    with Ledger.open(folder / "study.ledger") as ledger:
        return [entry.kind for entry in ledger.entries()]


@pytest.mark.parametrize(
    ("version", "step", "kinds", "words"),
    [
        ('version = "1"', "reading", ["create", "spend"], "ε 0.2 was spent (entry 2)"),
        ("", "hashing", ["create"], "Nothing was spent."),
    ],
)
def test_an_interrupted_release_says_what_was_spent_and_leaves_a_whole_ledger(
    tmp_path, version, step, kinds, words
):
    study_in(tmp_path, ENDLESS.format(version=version))
    question = ["SELECT sum(age) FROM data WHERE age > 3", "--epsilon", "0.2"]
    assert discreet("plan", "study.toml", *question, cwd=tmp_path).code == 0
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "release", "study.toml", *question],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        wait(lambda: (tmp_path / step).exists() or running.poll() is not None)
        # the statement has begun, mostly; before it, the command would end in the same way
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (130, ""), err
    assert err.startswith("discreet: interrupted. ")
    assert words in err
    assert err.count("\n") == 1
    assert entries(tmp_path) == kinds
    with Ledger.open(tmp_path / "study.ledger") as ledger:
        assert ledger.spent("study") == (Fraction(1, 5) if "spend" in kinds else 0)


def test_a_reader_that_goes_away_gets_no_traceback(tmp_path):
    study_in(tmp_path)
    read, write = os.pipe()
    os.close(read)
    ask = [sys.executable, "-m", "discreet", "release", "study.toml", QUESTION, "--epsilon", "0.2"]
    done = subprocess.run(
        ask, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "discreet: nobody reads the output any more\n")
    assert entries(tmp_path) == ["create", "spend", "answer"]


def test_a_damaged_ledger_is_never_a_fresh_budget(tmp_path):
    study_in(tmp_path)
    ask = ["release", "study.toml", QUESTION, "--epsilon", "0.2"]
    assert discreet(*ask, cwd=tmp_path).code == 0
    data = bytearray((tmp_path / "study.ledger").read_bytes())
    place = data.index(b'"Suffolk","count') if b'"Suffolk","count' in data else data.index(b"spend")
    data[place + 1] ^= 1
    (tmp_path / "study.ledger").write_bytes(data)
    before = contents(tmp_path)
    discreet("ledger", "verify", "study.toml", cwd=tmp_path).refused(4)
    discreet(*ask, cwd=tmp_path).refused(4)
    assert contents(tmp_path) == before
    (tmp_path / "study.ledger").unlink()
    discreet(*ask, cwd=tmp_path).refused(4)
    assert not (tmp_path / "study.ledger").exists()


def test_a_wrong_use_is_one_sentence_with_where_to_look(tmp_path):
    cases = [
        ["sing"],
        ["plan"],
        ["ledger"],
        ["plan", "study.toml", QUESTION, "--size", "few"],
        ["--loud"],
    ]
    for ended in one_after_another(cases, tmp_path):
        ended.refused(2, "See --help.")


def test_help_names_every_exit_code_and_comes_without_heavy_imports(tmp_path):
    told = discreet("--help", cwd=tmp_path)
    assert told.code == 0
    for code in (
        "0 success",
        "1 unexpected",
        "2 refused",
        "3 not",
        "4 ledger",
        "5 engine",
        "130 interrupted",
    ):
        assert code in " ".join(told.out.split())
    heavy = "duckdb numpy pyarrow sqlalchemy rich altair sqlglot starlette"
    seen = (
        f"import sys; from discreet.cli.app import app; print([m for m in '{heavy}'.split() if m in"
        " sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert discreet("--version", cwd=tmp_path).out.startswith("discreet ")
