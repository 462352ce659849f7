"""TRUST 10: workers of Spark, forked on two executors, never share noise; and what they draw is drawn once."""

import os
import shutil
from fractions import Fraction
from functools import partial

import pyarrow as pa
import pytest

from discreet import InvalidParameter, Ledger, QueryRefused
from discreet.engines.spark_noise import noisy_rows
from discreet.release.stream import add_noise

# PySpark says at every call that it does not know the newest pandas; its sockets and files are closed by the JVM
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ROWS, PARTS = 8_000, 8
WIDE = {"sensitivity": 2**49, "epsilon": 1}
"""Of 8,000 draws at a scale of 2⁴⁹, two are equal with a chance below 8,000²/2 · 2⁻⁵¹ < 2·10⁻⁸."""


@pytest.fixture
def frame(spark):
    """Keys and zeros, in several parts, so that what comes out is noise."""
    return spark.range(ROWS, numPartitions=PARTS).selectExpr("id", "cast(0 as int) as n", "id as secret")


def in_order(frame) -> pa.Table:
    return frame.orderBy("id").toArrow()


def stages():
    """What runs on the executors; made in a function, so that Spark sends the code and not the name of this module."""

    def seeded(batches):
        """Known to be bad: every task begins with the same seed."""
        import numpy as np

        rng = np.random.default_rng(7)
        for batch in batches:
            noise = rng.integers(-(2**45), 2**45, len(batch))
            yield pa.record_batch({"id": batch.column("id"), "n": pa.array(noise)})

    def workers(batches):
        """Which process works, and its parent."""
        for _ in batches:
            yield pa.record_batch({"id": [os.getpid()], "n": [os.getppid()]})

    return seeded, workers


def test_two_executors_never_draw_the_same_noise(frame, tmp_path):
    seeded, workers = stages()
    daemons = frame.mapInArrow(workers, "id long, n long").toArrow()["n"].to_pylist()
    assert len(set(daemons)) == 2  # two executors, each with workers forked from a daemon of its own
    noisy = in_order(add_noise(frame, str(tmp_path / "noisy"), columns=["n"], keys=["id"], **WIDE))
    assert noisy.schema.names == ["id", "n"]
    assert noisy["id"].to_pylist() == list(range(ROWS))
    assert len(set(noisy["n"].to_pylist())) == ROWS
    bad = frame.mapInArrow(seeded, "id long, n long").toArrow()
    assert len(set(bad["n"].to_pylist())) < ROWS  # the control: the test sees tasks that share their noise


def test_noise_is_drawn_once_however_often_the_frame_is_read(frame, tmp_path):
    noisy = add_noise(frame, str(tmp_path / "noisy"), columns=["n"], keys=["id"], **WIDE)
    assert in_order(noisy) == in_order(noisy) == in_order(noisy.filter("id >= 0"))
    noise = partial(noisy_rows, columns=("n",), keys=("id",), scale=Fraction(2**45))
    lazy = frame.mapInArrow(noise, "id long, n long")
    assert in_order(lazy) != in_order(lazy)  # the control: a lazy frame draws anew at every look


def test_the_driver_spends_first_and_an_answer_is_made_once(frame, tmp_path):
    target = str(tmp_path / "noisy")
    asked = {"columns": ["n"], "keys": ["id"], "sensitivity": 1, "epsilon": 1, "study": "census", "request_id": "one"}
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("census", 2)
        for terms in ({"columns": ["nobody"]}, {"columns": ["n", "n"]}, {"columns": []}, {"keys": ["n"]}):
            with pytest.raises(InvalidParameter):
                add_noise(frame, target, ledger=ledger, **{**asked, **terms})
        assert ledger.spent("census") == 0
        first = in_order(add_noise(frame, target, ledger=ledger, **asked))
        assert ledger.spent("census") == 1
        with pytest.raises(InvalidParameter, match="must not exist"):
            add_noise(frame, target, ledger=ledger, **{**asked, "request_id": "two"})
        assert in_order(add_noise(frame, target, ledger=ledger, **asked)) == first
        assert ledger.spent("census") == 1
        shutil.rmtree(target)
        with pytest.raises(QueryRefused, match="is gone, and a release is made once"):
            add_noise(frame, target, ledger=ledger, **asked)
