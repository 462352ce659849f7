"""TRUST 28 for arrays and files: nobody gets the answer of other data, and no charge tells whether
arrays are equal.

What the data is, its names say: `data_name` and `data_version`. The control names the data by a
keyed hash of its values, as an array could be named without its caller, and tells by a free call
that nobody's salary is zero.
"""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import InvalidParameter, Ledger
from discreet.files.add_noise import add_noise
from discreet.ledger.questions import canonical
from discreet.release import account

AGES, SALARIES = np.arange(20.0, 60.0), np.arange(1000.0, 1040.0)
ACCENTED = ("\u00e9", "e\u0301")
"""One name to a reader, two to a file."""


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", 10_000)
        yield opened


@pytest.fixture
def table(tmp_path):
    place = tmp_path / "in.parquet"
    parquet.write_table(pa.table({ACCENTED[0]: [0, 0], ACCENTED[1]: [10**9, 10**9]}), place)
    return place


def mean(values, ledger, **names):
    return discreet.mean(
        values, bounds=(0, 2000), epsilon=1000, ledger=ledger, study="survey", **names
    )


def test_two_columns_of_one_version_are_two_questions(ledger):
    for name, values in (("age", AGES), ("salary", SALARIES)):
        found = [
            mean(values, ledger, data_name=name, data_version="2026-11").value for _ in range(2)
        ]
        assert found[0] == found[1]
        assert abs(found[0] - values.mean()) < 1
    assert ledger.spent("survey") == 2000


@pytest.mark.parametrize("call", ["mean", "laplace_mechanism", "add_noise"])
def test_a_version_of_data_without_a_name_is_refused_before_any_spend(
    ledger, table, tmp_path, call
):
    where = {"ledger": ledger, "study": "survey", "data_version": "2026-11"}
    noise = {"sensitivity": 1, "epsilon": 1}
    calls = {
        "mean": lambda **more: discreet.mean(AGES, bounds=(0, 120), epsilon=1, **where, **more),
        "laplace_mechanism": lambda **more: discreet.laplace_mechanism(
            [1, 2], **noise, **where, **more
        ),
        "add_noise": lambda **more: add_noise(
            table, tmp_path / "out.parquet", columns=[ACCENTED[0]], **noise, **where, **more
        ),
    }
    for more in (
        {},
        {"data_name": ""},
        {"data_name": 7},
        {"data_name": "a\x1b[2J"},
        {"data_name": "a" * 101},
    ):
        with pytest.raises(InvalidParameter, match="data_name"):
            calls[call](**more)
    assert ledger.spent("survey") == 0
    assert not (tmp_path / "out.parquet").exists()


def test_two_files_with_the_same_columns_are_two_questions(ledger, tmp_path):
    noisy = []
    for name, value in (("north", 0), ("south", 10**9)):
        parquet.write_table(pa.table({"people": [value]}), tmp_path / f"{name}.parquet")
        target = add_noise(
            tmp_path / f"{name}.parquet",
            tmp_path / f"noisy-{name}.parquet",
            columns=["people"],
            sensitivity=1,
            epsilon=1,
            ledger=ledger,
            study="survey",
            data_name=name,
            data_version="1",
        )
        noisy.append(parquet.read_table(target)["people"][0].as_py())
    assert noisy[0] < 10**6 < noisy[1]
    assert ledger.spent("survey") == 2


def test_whether_a_call_is_free_depends_on_names_alone(ledger):
    first = mean(SALARIES, ledger, data_name="salary", data_version="1").value
    for values in (SALARIES, np.where(np.arange(40) == 17, 0, SALARIES), np.zeros(40)):
        assert mean(values, ledger, data_name="salary", data_version="1").value == first
    assert ledger.spent("survey") == 1000


def test_control_a_hash_of_the_values_tells_by_a_free_call_that_arrays_are_equal(ledger):
    def charge_of_changing(values, person):
        def hashed(given):
            return {"data_name": "salary", "data_version": ledger.keyed(given.tobytes().hex())}

        mean(values, ledger, **hashed(values))
        before = ledger.spent("survey")
        changed = np.where(np.arange(40) == person, 0, values)
        mean(changed, ledger, **hashed(changed))
        return ledger.spent("survey") - before

    neighbour = np.where(np.arange(40) == 17, 0, SALARIES)
    assert (charge_of_changing(SALARIES, 17), charge_of_changing(neighbour, 17)) == (
        Fraction(1000),
        Fraction(0),
    )


def test_a_column_is_found_and_charged_by_exactly_its_name(ledger, table, tmp_path):
    """Parquet holds both names; so does the text of a question."""
    for number, name in enumerate(ACCENTED):
        target = add_noise(
            table,
            tmp_path / f"{number}.parquet",
            columns=[name],
            sensitivity=1,
            epsilon=1,
            ledger=ledger,
            study="survey",
            data_name="towns",
            data_version="1",
        )
        [column] = parquet.read_table(target).columns
        assert (column[0].as_py() > 10**6) == (name == ACCENTED[1])
    assert ledger.spent("survey") == 2


def test_control_a_text_without_the_name_shows_the_first_column_again(ledger):
    real = account.asking_on

    def nameless(given, name, parameters, epsilon):
        return replace(real(given, name, parameters, epsilon), query=canonical(name, parameters))

    with mock.patch.object(account, "asking_on", nameless):
        found = [
            mean(values, ledger, data_name=name, data_version="1").value
            for name, values in (("age", AGES), ("salary", SALARIES))
        ]
    assert found[0] == found[1]
