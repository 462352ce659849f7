"""TRUST 37: a pipe among the files of a study is not waited for."""

import os
import signal

import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import InvalidParameter, LedgerDamaged, Policy
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")

POLICY = 'source = "people.parquet"\nepsilon = "1"\n[columns]\nage = { bounds = [0, 120] }\n'


@pytest.fixture
def folder(tmp_path):
    """A study; whoever waits for ever ends it all."""

    def wake(*_: object) -> None:
        os._exit(1)  # a refusal of ours would swallow an exception

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(int(PATIENCE))
    parquet.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(POLICY)
    yield tmp_path
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_pipe_beside_a_policy_is_no_policy(folder):
    os.mkfifo(folder / "other.toml")
    with discreet.open(folder / "study.toml") as study:
        assert study.siblings == ()
    with pytest.raises(InvalidParameter, match="must be a plain file"):
        Policy.load(folder / "other.toml")


def test_a_pipe_is_no_anchor(folder):
    discreet.open(folder / "study.toml").ledger.close()
    (folder / "study.ledger.anchor").unlink()
    os.mkfifo(folder / "study.ledger.anchor")
    with pytest.raises(LedgerDamaged, match="anchor is damaged"):
        discreet.open(folder / "study.toml")
