"""TRUST 10: workers of Spark, forked on two executors, never share noise; and what they draw is
drawn once.
"""

import os
import shutil
import stat
import threading
from contextlib import contextmanager
from fractions import Fraction
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import EngineFailed, InvalidParameter, Ledger, QueryRefused
from discreet.files.add_noise import Noise, add_noise
from discreet.files.batches import noisy_batches
from discreet.files.spark import refuse_frame

# PySpark says at every call that it does not know the newest pandas; its sockets and files are
# closed by the JVM
pytestmark = [
    pytest.mark.spark,
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
    return spark.range(ROWS, numPartitions=PARTS).selectExpr(
        "id", "cast(0 as int) as n", "id as secret"
    )


def in_order(frame) -> pa.Table:
    return frame.orderBy("id").toArrow()


def stages():
    """What runs on the executors; made in a function, so that Spark sends the code and not the name
    of this module.
    """

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
    # two executors, each with workers forked from a daemon of its own
    assert len(set(daemons)) == 2
    noisy = in_order(add_noise(frame, str(tmp_path / "noisy"), columns=["n"], keep=["id"], **WIDE))
    assert noisy.schema.names == ["id", "n"]
    assert noisy["id"].to_pylist() == list(range(ROWS))
    assert len(set(noisy["n"].to_pylist())) == ROWS
    bad = frame.mapInArrow(seeded, "id long, n long").toArrow()
    # the control: the test sees tasks that share their noise
    assert len(set(bad["n"].to_pylist())) < ROWS


def test_noise_is_drawn_once_however_often_the_frame_is_read(frame, tmp_path):
    noisy = add_noise(frame, str(tmp_path / "noisy"), columns=["n"], keep=["id"], **WIDE)
    assert in_order(noisy) == in_order(noisy) == in_order(noisy.filter("id >= 0"))
    noise = partial(noisy_batches, columns=("n",), keep=("id",), scale=Fraction(2**45))
    lazy = frame.mapInArrow(noise, "id long, n long")
    assert in_order(lazy) != in_order(lazy)  # the control: a lazy frame draws anew at every look


def test_the_driver_spends_first_and_an_answer_is_made_once(frame, tmp_path):
    target = str(tmp_path / "noisy")
    asked = {
        "columns": ["n"],
        "keep": ["id"],
        "sensitivity": 1,
        "epsilon": 1,
        "study": "census",
        "request_id": "one",
    }
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("census", 2)
        for terms in (
            {"columns": ["nobody"]},
            {"columns": ["n", "n"]},
            {"columns": []},
            {"keep": ["n"]},
        ):
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


def files_of(folder) -> list[dict]:
    """What is in each file of a folder, in the order of their names."""
    return [pq.read_table(file).to_pydict() for file in sorted(folder.glob("part-*"))]


EXACT = {"sensitivity": 1, "epsilon": 10**6}
"""A draw other than 0 has a probability below e^(−10⁶): what is left is order."""


@pytest.mark.parametrize("keys", [["block"], ["block", "half"], []], ids=len)
def test_files_tell_nothing_of_the_order_of_the_frame(spark, tmp_path, keys):
    """Where rows come in ranges of the secret, neither the file of a row nor its place in it tells
    of it.
    """
    frame = spark.range(400).selectExpr(
        "concat('b', cast(id % 40 as string)) as block",
        "id % 2 as half",
        "cast(id * 7919 % 400 as int) as people",
    )
    found = []
    for name, order in (("rising", "people"), ("falling", "-people"), ("keys", "block")):
        ordered = frame.repartitionByRange(8, spark_col(order)).sortWithinPartitions(
            spark_col(order)
        )
        add_noise(ordered, str(tmp_path / name), columns=["people"], keep=keys, **EXACT)
        found.append(files_of(tmp_path / name))
    assert found[0] == found[1] == found[2]
    assert sum(len(one["people"]) for one in found[0]) == 400


def spark_col(text):
    from pyspark.sql.functions import expr

    return expr(text)


def test_metadata_of_a_column_is_not_written(spark, tmp_path):
    frame = (
        spark.range(10)
        .selectExpr("id", "cast(id as int) as n")
        .withMetadata("id", {"vals": ["canary"]})
    )
    noisy = add_noise(frame, str(tmp_path / "noisy"), columns=["n"], keep=["id"], **EXACT)
    assert "canary" not in noisy.schema.json()
    assert all(b"canary" not in file.read_bytes() for file in (tmp_path / "noisy").iterdir())
    nested = frame.selectExpr("array(id) as id", "n")
    with pytest.raises(InvalidParameter, match="keys must be single values"):
        add_noise(nested, str(tmp_path / "nested"), columns=["n"], keep=["id"], **EXACT)


def test_no_attempt_can_be_read_while_it_is_made(spark, tmp_path):
    """Files of an attempt that is tried again lie beside the others until the end: nobody else can
    look.

    Where none was seen in the making, because the one who looks had no turn, it is made again.
    """
    slow = spark.range(500_000, numPartitions=4).selectExpr("id", "cast(id % 7 as int) as n")
    for attempt in map(str, range(20)):
        place = tmp_path / attempt
        place.mkdir()
        with seen_in(place) as seen:
            add_noise(
                slow, str(place / "noisy"), columns=["n"], keep=["id"], sensitivity=1, epsilon=1
            )
        before = {path: open_ for path, open_ in seen.items() if "_temporary" in path}
        assert not any(before.values())
        assert sorted(os.listdir(place)) == ["noisy"]
        assert not (place / "noisy" / "_temporary").exists()
        assert readable(place, place / "noisy")
        if before:
            return
    pytest.fail("no attempt was seen in the making")


@contextmanager
def seen_in(root):
    """All files that come up under a folder meanwhile, and whether others could read them."""
    seen, done = {}, threading.Event()

    def watch():
        while not done.is_set():
            for folder, _, files in os.walk(root):
                for file in files:
                    seen.setdefault(os.path.join(folder, file), readable(root, folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def readable(root, folder) -> bool:
    """Whether another user could come here: no folder on the way is the owner's alone."""
    way = os.path.relpath(folder, root).split(os.sep)
    steps = [os.path.join(root, *way[: at + 1]) for at in range(len(way))]
    try:
        return all(os.stat(step).st_mode & (stat.S_IRWXG | stat.S_IRWXO) for step in steps)
    except FileNotFoundError:
        return False


def test_a_frame_that_fails_or_is_not_recorded_leaves_nothing(frame, tmp_path):
    asked = {
        "columns": ["n"],
        "keep": ["id"],
        "sensitivity": 1,
        "epsilon": 1,
        "study": "census",
        "request_id": "one",
    }
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("census", 2)
        for kind, error in ((OSError, EngineFailed), (EngineFailed, EngineFailed)):
            target = tmp_path / kind.__name__

            def failing(*_, kind=kind):
                raise kind("no disk")

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Ledger, "record", failing)
                with pytest.raises(error):
                    add_noise(
                        frame, str(target), ledger=ledger, **{**asked, "request_id": kind.__name__}
                    )
            assert not any(tmp_path.glob(f"*{kind.__name__}*"))
            with pytest.raises(QueryRefused, match="made once"):
                add_noise(
                    frame, str(target), ledger=ledger, **{**asked, "request_id": kind.__name__}
                )
        assert ledger.spent("census") == 2


def test_a_link_is_no_target(frame, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "empty").mkdir()
    noise = Noise(columns=("n",), keep=("id",), sensitivity=Fraction(1), epsilon=Fraction(1))
    for name in ("link", "file", "empty"):
        with pytest.raises(InvalidParameter, match="must not exist"):
            refuse_frame(frame, str(tmp_path / name), noise, is_answer=False)
