"""Noise on numbers in files of any length: the law, what is left out, what is refused, what the
ledger keeps.
"""

import hashlib
import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet import BudgetExceeded, EngineFailed, InvalidParameter, Ledger, QueryRefused
from discreet.files.add_noise import add_noise
from discreet.files.batches import ahead, noisy_batches

ENDS = np.iinfo(np.int64)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("census", 10)
        yield opened


@pytest.fixture
def source(tmp_path):
    """Blocks with their people, and a column that nobody names."""
    rows = 5_000
    people = pa.array(
        [None if number % 7 == 0 else number % 50 for number in range(rows)], pa.int32()
    )
    table = pa.table(
        {"block": [f"block {number}" for number in range(rows)], "people": people, "secret": people}
    )
    place = tmp_path / "counts.parquet"
    parquet.write_table(
        table.replace_schema_metadata({"about": "canary"}), place, row_group_size=999
    )
    return place


def noised(source, target, **terms):
    return add_noise(
        source, target, **{"columns": ["people"], "sensitivity": 1, "epsilon": "0.5", **terms}
    )


def test_every_number_gets_noise_and_keys_stay(source, tmp_path):
    target = noised(source, tmp_path / "noisy.parquet", keep=["block"])
    before, after = parquet.read_table(source), parquet.read_table(target)
    assert after.schema.names == ["people", "block"]
    assert after.schema.field("people").type == pa.int64()
    assert b"canary" not in target.read_bytes()
    assert after["block"].equals(before["block"])
    noise = after["people"].to_numpy() - before["people"].fill_null(0).to_numpy()
    # E|Z| = 2q/(1−q²) for q = e^(−1/2); the mean of 5,000 is within 0.4 of it but for 1e-9 (its
    # deviation is 0.03)
    q = math.exp(-0.5)
    assert abs(np.abs(noise).mean() - 2 * q / (1 - q * q)) < 0.4
    assert len(set(noise.tolist())) > 5


def test_a_missing_number_is_not_told(source, tmp_path):
    table = parquet.read_table(noised(source, tmp_path / "noisy.parquet"))
    assert table["people"].null_count == 0
    assert not table.schema.field("people").nullable


def test_noise_of_a_tiny_scale_leaves_all_integers_exact(tmp_path):
    """At ε = 10⁶ a draw other than 0 has probability below e^(−10⁶)."""
    columns = {
        "small": pa.array([-128, 0, 127], pa.int8()),
        "unsigned": pa.array([0, 1, 2**64 - 1], pa.uint64()),
        "wide": pa.array([ENDS.min, 0, ENDS.max], pa.int64()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    target = add_noise(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        columns=list(columns),
        sensitivity=1,
        epsilon=10**6,
    )
    table = parquet.read_table(target).to_pydict()
    assert table == {
        "small": [-128, 0, 127],
        "unsigned": [0, 1, ENDS.max],
        "wide": [ENDS.min, 0, ENDS.max],
    }


def test_a_sum_beyond_int64_is_held_at_its_end_and_never_wraps(tmp_path):
    rows = 2_000
    wide = pa.array([ENDS.max] * rows + [ENDS.min] * rows)
    parquet.write_table(pa.table({"wide": wide}), tmp_path / "in.parquet")
    target = add_noise(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        columns=["wide"],
        sensitivity=1,
        epsilon="0.001",
    )
    numbers = parquet.read_table(target)["wide"].to_numpy()
    assert (numbers[:rows] > 2**62).all()
    assert (numbers[rows:] < -(2**62)).all()
    assert (numbers[:rows] == ENDS.max).any()
    assert (numbers[rows:] == ENDS.min).any()


def test_several_files_become_one_in_their_order(source, tmp_path):
    other = tmp_path / "more.parquet"
    parquet.write_table(parquet.read_table(source).slice(0, 10), other)
    target = noised([other, source], tmp_path / "noisy.parquet", keep=["block"])
    blocks = parquet.read_table(target)["block"].to_pylist()
    assert blocks == [f"block {number}" for number in [*range(10), *range(5_000)]]


def test_a_file_that_is_named_twice_is_refused(source, tmp_path):
    """One unit would move each number of it twice."""
    (tmp_path / "link.parquet").symlink_to(source)
    for other in (source, tmp_path / "link.parquet"):
        with pytest.raises(
            InvalidParameter, match=r"a file must be in the source once, and counts\.parquet and "
        ):
            noised([source, other], tmp_path / "noisy.parquet")
    assert not (tmp_path / "noisy.parquet").exists()


def test_a_file_without_rows_stays_without_rows(tmp_path):
    parquet.write_table(pa.table({"n": pa.array([], pa.int64())}), tmp_path / "in.parquet")
    target = add_noise(
        tmp_path / "in.parquet", tmp_path / "out.parquet", columns=["n"], sensitivity=1, epsilon=1
    )
    assert parquet.read_table(target).num_rows == 0


def test_batches_are_noised_one_at_a_time():
    batches_made = []

    def batches():
        for number in range(3):
            batches_made.append(number)
            yield pa.record_batch({"n": [number] * 10, "key": ["k"] * 10})

    noisy = noisy_batches(batches(), columns=["n"], keep=["key"], scale=Fraction(1))
    assert batches_made == []
    assert next(noisy).schema.names == ["n", "key"]
    assert batches_made == [0]


REFUSED = {
    "no such column": {"columns": ["nobody"]},
    "not of integers": {"columns": ["block"]},
    "no column": {"columns": []},
    "a name alone": {"columns": "people"},
    "twice": {"columns": ["people", "people"]},
    "both a key and a number": {"keep": ["people"]},
    "no such key": {"keep": ["nobody"]},
    "sensitivity 0": {"sensitivity": 0},
    "epsilon below 0": {"epsilon": -1},
    "noise beyond int64": {"sensitivity": 2**50, "epsilon": "0.5"},
    "half an account": {"study": "census"},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_noised_is_refused_before_the_spend(source, tmp_path, ledger, why):
    terms = {"ledger": ledger, "study": "census", **REFUSED[why]}
    if why == "half an account":
        del terms["ledger"]
    with pytest.raises(InvalidParameter):
        noised(source, tmp_path / "noisy.parquet", **terms)
    assert ledger.spent("census") == 0
    assert not (tmp_path / "noisy.parquet").exists()


def test_sources_and_targets_that_cannot_be_are_refused_before_the_spend(source, tmp_path, ledger):
    taken = tmp_path / "taken.parquet"
    taken.write_text("mine")
    text = tmp_path / "text.parquet"
    text.write_text("not Parquet at all")
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"people": [1.5]}), other)
    account = {"ledger": ledger, "study": "census"}
    for given, target in [
        (source, taken),
        (source, tmp_path / "no folder" / "noisy.parquet"),
        (tmp_path / "nothing.parquet", tmp_path / "noisy.parquet"),
        (text, tmp_path / "noisy.parquet"),
        ([source, other], tmp_path / "noisy.parquet"),
        ([], tmp_path / "noisy.parquet"),
        (5, tmp_path / "noisy.parquet"),
    ]:
        with pytest.raises(InvalidParameter):
            noised(given, target, **account)
    assert ledger.spent("census") == 0
    assert taken.read_text() == "mine"


def test_a_failure_leaves_no_file_and_stays_spent(source, tmp_path, ledger):
    """A page of the file is damaged: its schema can be read, its rows cannot."""
    raw = bytearray(source.read_bytes())
    raw[4:3000] = b"\xff" * 2996
    source.write_bytes(raw)
    before = set(tmp_path.iterdir())
    with pytest.raises(EngineFailed, match="stays spent"):
        noised(source, tmp_path / "noisy.parquet", keep=["block"], ledger=ledger, study="census")
    assert set(tmp_path.iterdir()) == before
    assert ledger.spent("census") == Fraction(1, 2)


def test_the_ledger_keeps_the_hash_and_not_the_numbers(source, tmp_path, ledger):
    target = noised(
        source, tmp_path / "noisy.parquet", ledger=ledger, study="census", request_id="one"
    )
    kept = json.loads(ledger.answer(study="census", request_id="one"))
    assert kept["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    assert (kept["file"], kept["rows"], kept["scale"], kept["epsilon"]) == (
        str(target),
        5_000,
        "2",
        "1/2",
    )
    assert len(json.dumps(kept)) < 1_000
    assert ledger.spent("census") == Fraction(1, 2)


@pytest.mark.parametrize(
    "again", [{"request_id": "one"}, {"request_id": "two", "data_version": "v1"}]
)
def test_who_asks_again_gets_the_same_file_free(source, tmp_path, ledger, again):
    account = {"ledger": ledger, "study": "census", "data_name": "blocks", "data_version": "v1"}
    target = noised(source, tmp_path / "noisy.parquet", **account, request_id="one")
    first = target.read_bytes()
    for place in (target, tmp_path / "elsewhere.parquet"):
        assert noised(source, place, **{**account, **again}) == target
    assert target.read_bytes() == first
    assert not (tmp_path / "elsewhere.parquet").exists()
    assert ledger.spent("census") == Fraction(1, 2)


def test_a_file_that_is_gone_or_changed_is_not_drawn_again(source, tmp_path, ledger):
    account = {"ledger": ledger, "study": "census", "request_id": "one"}
    target = noised(source, tmp_path / "noisy.parquet", **account)
    target.write_bytes(target.read_bytes() + b"!")
    with pytest.raises(
        QueryRefused, match=r"noisy\.parquet; the file has changed, and a release is made once"
    ):
        noised(source, target, **account)
    target.unlink()
    with pytest.raises(
        QueryRefused, match=r"noisy\.parquet; the file is gone, and a release is made once"
    ):
        noised(source, target, **account)
    assert not target.exists()


def test_what_is_not_left_is_refused(source, tmp_path, ledger):
    with pytest.raises(BudgetExceeded):
        noised(source, tmp_path / "noisy.parquet", epsilon=11, ledger=ledger, study="census")
    assert not (tmp_path / "noisy.parquet").exists()


BROKEN_OFF = """
import os, sys
from discreet import Ledger
from discreet.files import columns
from discreet.files.add_noise import add_noise

def dying(*_, **__):
    yield from ()
    os._exit(9)

columns.parquet_batches = dying
with Ledger.open(sys.argv[1]) as ledger:
    add_noise(sys.argv[2], sys.argv[3], columns=["people"], sensitivity=1, epsilon="0.5", ledger=ledger,
              study="census", request_id="one")
"""


def test_what_was_broken_off_is_spent_and_never_drawn_again(source, tmp_path, ledger):
    target = tmp_path / "noisy.parquet"
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_OFF, tmp_path / "study.ledger", source, target], check=False
    )
    assert done.returncode == 9
    assert ledger.spent("census") == Fraction(1, 2)
    assert not target.exists()
    with pytest.raises(QueryRefused, match="is made once"):
        noised(source, target, ledger=ledger, study="census", request_id="one")
    assert not target.exists()


def test_a_stage_is_only_a_few_items_ahead():
    items_made = []

    def items():
        for number in range(100):
            items_made.append(number)
            yield number

    numbers = ahead(items())
    assert [next(numbers) for _ in range(3)] == [0, 1, 2]
    numbers.close()
    assert len(items_made) <= 3 + 2 + 1
    assert list(ahead(range(10))) == list(range(10))


def test_the_failure_of_a_stage_is_told():
    def items():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(ahead(items()))


def test_a_text_is_of_integers_unless_the_caller_says_floats(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("1\n2\n3\n")
    add_noise(source, tmp_path / "whole.txt", sensitivity=1, epsilon=1)
    assert all("." not in line for line in (tmp_path / "whole.txt").read_text().split())
    add_noise(source, tmp_path / "floats.txt", sensitivity=1, epsilon=1, changes=1)
    assert any("." in line for line in (tmp_path / "floats.txt").read_text().split())


def test_one_float_does_not_turn_the_others_into_floats(tmp_path):
    for name, text in (("numbers.txt", "1\n2\n2.5\n"), ("numbers.csv", "x\n1\n2\n2.5\n")):
        source = tmp_path / name
        source.write_text(text)
        with pytest.raises(InvalidParameter, match="integer"):
            add_noise(source, tmp_path / f"out-{name}", sensitivity=1, epsilon=1)
        assert not (tmp_path / f"out-{name}").exists()


def test_floats_on_an_account_pay_for_their_rounding(tmp_path, ledger):
    np.save(tmp_path / "in.npy", np.array([[1.5, 2.5], [3.5, 4.5]]))
    account = {"ledger": ledger, "study": "census", "request_id": "one"}
    target = add_noise(
        tmp_path / "in.npy", tmp_path / "out.npy", sensitivity=1, epsilon=1, changes=2, **account
    )
    assert np.load(target).shape == (2, 2)
    record = json.loads(ledger.answer(study="census", request_id="one"))
    assert (record["changes"], record["rows"]) == (2, 4)
    assert Fraction(record["scale"]) > 1


def test_a_charged_call_knows_types_before_the_spend_and_writes_a_file(tmp_path, ledger):
    """A line that is no number would raise after the spend; standard output cannot be shown again."""
    (tmp_path / "in.csv").write_text("x\n1\n")
    np.save(tmp_path / "in.npy", np.array([1]))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "in.npy").read_bytes()[:-1])
    for source, target in (
        ("in.csv", tmp_path / "out.csv"),
        ("in.npy", "-"),
        ("cut.npy", tmp_path / "out.npy"),
    ):
        with pytest.raises(InvalidParameter):
            add_noise(
                tmp_path / source, target, sensitivity=1, epsilon=1, ledger=ledger, study="census"
            )
    assert ledger.spent("census") == 0
