"""A large record stores its intervals in fewer bytes, and gives the same numbers back, bit for bit."""

import numpy as np
import pytest
from pyarrow import ipc

from discreet import records
from discreet.records import Record, unpack

CELLS = 2**16 + 1_000
RANDOM = np.random.default_rng(5)
COUNTS = RANDOM.integers(-50, 50, CELLS)
SUMS = RANDOM.laplace(300, 90, CELLS)
REACHES = np.repeat([179.744189453125 / 3, 180.1 / 3], 2**16)[:CELLS]


def packed(value, low, high):
    numbers = {"a1": (value, low, high)}
    content = Record({"discreet": 1}, {"place": np.arange(len(value))}, numbers).pack()
    back = unpack(content).numbers["a1"]
    assert [column.dtype for column in back] == [column.dtype for column in numbers["a1"]]
    assert [column.tobytes() for column in back] == [column.tobytes() for column in numbers["a1"]]
    with ipc.open_stream(content) as stream:
        return [name for name in stream.schema.names if name != "place"]


@pytest.mark.parametrize("factor", [1, 1e-9, 1e12])
def test_one_reach_for_each_block(factor):
    sums, reaches = SUMS * factor, REACHES * factor
    assert packed(sums, sums - reaches, sums + reaches) == ["a1", "a1_reach"]


def test_a_reach_is_found_where_the_ends_are_rounded(monkeypatch):
    monkeypatch.setattr(records, "_BLOCK", 100)
    for reach in RANDOM.uniform(1, 5, 100):
        sums = RANDOM.laplace(0, 1, 100)
        assert packed(sums, sums - reach, sums + reach) == ["a1", "a1_reach"]


def test_one_reach_of_counts():
    assert packed(COUNTS, COUNTS - 7, COUNTS + 7) == ["a1", "a1_reach"]


def test_distances_of_counts():
    low, high = COUNTS - RANDOM.integers(0, 2**16, CELLS), COUNTS + RANDOM.integers(0, 9, CELLS)
    assert packed(COUNTS, low, high) == ["a1", "a1_below", "a1_above"]


@pytest.mark.parametrize("change", [-1, 2**16, 2**63])
def test_other_distances_are_stored_as_ends(change):
    low = COUNTS - 7
    low[3] = COUNTS[3] - change if change < 2**63 else -(2**63)
    assert packed(COUNTS, low, COUNTS + 7) == ["a1", "a1_low", "a1_high"]


def test_other_intervals_are_stored_as_ends():
    low = SUMS - REACHES
    low[-1] = np.nextafter(low[-1], 0)
    assert packed(SUMS, low, SUMS + REACHES) == ["a1", "a1_low", "a1_high"]
    assert packed(SUMS, np.zeros(CELLS), SUMS + REACHES) == ["a1", "a1_low", "a1_high"]
    assert packed(SUMS, np.full(CELLS, np.nan), np.full(CELLS, np.inf)) == [
        "a1",
        "a1_low",
        "a1_high",
    ]


def test_ends_of_negative_zero_come_back():
    sums = SUMS.copy()
    sums[5] = REACHES[5]
    low, high = sums - REACHES, sums + REACHES
    assert packed(sums, low, high) == ["a1", "a1_reach"]
    low[5] = -0.0
    assert packed(sums, low, high) == ["a1", "a1_low", "a1_high"]


def test_the_widest_intervals_come_back_without_a_warning():
    ends = [np.full(CELLS, end) for end in (-(2**63), 2**63 - 1)]
    assert packed(COUNTS, *ends) == ["a1", "a1_low", "a1_high"]
    assert packed(np.abs(COUNTS) + 1, *ends) == ["a1", "a1_low", "a1_high"]


def test_small_records_have_ends(monkeypatch):
    few = COUNTS[: 2**16 - 1]
    assert packed(few, few - 7, few + 7) == ["a1", "a1_low", "a1_high"]
    monkeypatch.setattr(records, "_BLOCK", 100)
    assert packed(few, few - 7, few + 7) == ["a1", "a1_reach"]
