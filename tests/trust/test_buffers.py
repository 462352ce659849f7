"""TRUST 41: what was drawn is in no buffer of the caller's, and under no file's name, before its
record is on disk.

The record fails, as on a full disk, or is made and its success never told. What the caller holds
then must be what it held before; asked again, one draw is shown, and no other was ever seen.
"""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import Ledger, Policy, Study
from discreet.files.add_noise import add_noise
from discreet.release.account import charged

COUNTS = np.arange(1000) * 1000
FLOATS = np.linspace(0, 1, 1000)


class DiskFull(Exception):
    """What a record meets."""


def failing(*, before):
    real = Ledger.record

    def record(self, grant, answer):
        if not before:
            real(self, grant, answer)
        raise DiskFull

    return mock.patch.object(Ledger, "record", record)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", 10)
        yield opened


def noised(ledger, answer, out):
    account = {"ledger": ledger, "study": "survey", "request_id": "one"}
    return discreet.laplace_mechanism(answer, sensitivity=1, epsilon="0.1", out=out, **account)


@pytest.mark.parametrize("before", [True, False], ids=["record fails", "record is not told"])
@pytest.mark.parametrize("answer", [COUNTS, FLOATS], ids=["integers", "floats"])
def test_a_buffer_is_filled_after_the_record(ledger, answer, before):
    out = np.full_like(answer, 7)
    with failing(before=before), pytest.raises(DiskFull):
        noised(ledger, answer, out)
    assert (out == 7).all()
    found = noised(ledger, answer, out)
    assert found is out
    assert np.array_equal(noised(ledger, answer, np.empty_like(answer)), out)
    assert ledger.spent("survey") == discreet.verify.certify("count", epsilon="0.1").epsilon


def test_a_buffer_that_is_the_answer_itself_keeps_it_until_the_record_is_there(ledger):
    answer = COUNTS.copy()
    with failing(before=True), pytest.raises(DiskFull):
        noised(ledger, answer, answer)
    assert np.array_equal(answer, COUNTS)
    noised(ledger, answer, answer)
    assert not np.array_equal(answer, COUNTS)


def test_control_a_buffer_that_is_filled_while_drawing_is_caught(ledger):
    """The order that was: draw into the buffer, then record."""
    out = np.full_like(COUNTS, 7)
    account = {"ledger": ledger, "study": "survey", "request_id": "one"}
    work = lambda: discreet.laplace_mechanism(COUNTS, sensitivity=1, epsilon="0.1", out=out)  # noqa: E731
    with failing(before=True), pytest.raises(DiskFull):
        charged(
            account,
            "laplace_mechanism",
            {},
            discreet.verify.certify("count", epsilon="0.1").epsilon,
            work,
        )
    assert not (out == 7).all()


@pytest.mark.parametrize("before", [True, False], ids=["record fails", "record is not told"])
def test_a_stream_has_its_name_after_the_record(ledger, tmp_path, before):
    source, target = tmp_path / "counts.parquet", tmp_path / "noisy.parquet"
    parquet.write_table(pa.table({"people": COUNTS}), source)
    account = {"ledger": ledger, "study": "survey", "request_id": "one"}
    given = {"columns": ["people"], "sensitivity": 1, "epsilon": "0.1", **account}
    with failing(before=before), pytest.raises(discreet.EngineFailed, match="stays spent"):
        add_noise(source, target, **given)
    assert sorted(
        path.name for path in tmp_path.glob("*.p*") if path.suffix in (".parquet", ".part")
    ) == [source.name]
    with pytest.raises(discreet.QueryRefused):
        add_noise(source, target, **given)
    assert not target.exists()


def test_an_answer_in_a_file_has_its_name_after_the_record(tmp_path):
    columns = {"place": {"keys": ["a", "b"]}}
    policy = Policy(
        source=pa.table({"place": ["a", "b", "a"]}), epsilon=1, version="1", columns=columns
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as study:
        plan = study.sql("SELECT place, count(*) FROM data GROUP BY place", epsilon="0.1")
        with failing(before=True), pytest.raises(discreet.EngineFailed, match="stays spent"):
            plan.release(to=tmp_path / "answer.parquet")
        with failing(before=True), pytest.raises(DiskFull):
            study.sql("SELECT count(*) FROM data WHERE place = 'a'", epsilon="0.1").release()
    assert not [path for path in tmp_path.iterdir() if "answer" in path.name]
