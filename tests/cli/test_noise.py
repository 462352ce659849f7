"""`discreet noise`: Algorithm 1 on files and streams of any length."""

import os
import subprocess
import sys
from fractions import Fraction
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet import DiscreteLaplace
from discreet.calibrate.grid import grid_of
from shell import discreet, one_after_another

TERMS = ["--sensitivity", "1", "--epsilon", "0.5"]
TINY = ["--sensitivity", "1", "--epsilon", "1000000"]
"""An ε at which noise is 0 but for one draw in e^1000000: what comes out is what went in, rounded
to its grid.
"""


def test_integers_on_standard_input_stay_integers():
    told = discreet("noise", *TINY, cwd="/", stdin="1\n-2\n9223372036854775807\n")
    assert (told.code, told.out, told.err) == (0, "1\n-2\n9223372036854775807\n", "")


def test_floats_on_standard_input_need_to_know_how_many_one_unit_moves():
    discreet("noise", *TINY, cwd="/", stdin="1\n2.5\n").refused(2, "integer", "--changes")
    told = discreet("noise", *TINY, "--changes", "1", cwd="/", stdin="1\n2.5\nnan\n")
    assert [round(float(line), 3) for line in told.out.split()] == [1, 2.5, 0]


def test_a_table_keeps_what_is_named_and_leaves_out_the_rest(tmp_path):
    (tmp_path / "in.csv").write_text(
        'county,people,mean,secret\n"a, b",10,1.5,7\nc,,2.25,8\n', "utf-8"
    )
    named = ["--column", "people", "--column", "mean", "--keep", "county"]
    told = discreet("noise", *TINY, "in.csv", "out.parquet", *named, "--changes", "2", cwd=tmp_path)
    assert told.code == 0, told.err
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.types == [pa.float64(), pa.float64(), pa.string()]
    assert table.column("county").to_pylist() == ["a, b", "c"]
    assert np.allclose(table.column("people").to_pylist(), [10, 0], atol=1e-4)
    assert np.allclose(table.column("mean").to_pylist(), [1.5, 2.25], atol=1e-4)
    back = discreet("noise", *TINY, "out.parquet", "out.csv", *named, cwd=tmp_path)
    assert back.code == 0, back.err
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").column_names == ["people", "mean", "county"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.csv", "out.csv", "out.parquet"]


def test_an_array_keeps_its_shape_and_order(tmp_path):
    array = np.asfortranarray(np.arange(12, dtype=">i2").reshape(3, 4))
    np.save(tmp_path / "in.npy", array)
    assert discreet("noise", *TINY, "in.npy", "out.npy", cwd=tmp_path).code == 0
    assert np.array_equal(np.load(tmp_path / "out.npy"), array)
    assert discreet("noise", *TINY, "-", "more.npy", cwd=tmp_path, stdin="5\n" * 1000).code == 0
    assert np.array_equal(np.load(tmp_path / "more.npy"), np.full(1000, 5))


def test_what_cannot_be_read_is_refused_and_leaves_no_file(tmp_path):
    (tmp_path / "in.csv").write_text("people\n1\nWolpertinger\n", "utf-8")
    cases = [
        ([*TERMS, "in.csv", "out.csv"], "line 3 is not"),
        ([*TERMS, "in.csv", "out.csv", "--changes", "1"], "line 3 is not a number"),
        ([*TERMS, "in.csv", "out.csv", "--column", "age"], "'age'"),
        ([*TERMS, "gone.csv", "out.csv"], "gone.csv"),
        ([*TERMS, "in.csv", "nowhere/out.csv"], "folder"),
        (["--sensitivity", "0", "--epsilon", "1"], "sensitivity"),
        (["--sensitivity", "1", "--epsilon", "-1"], "epsilon"),
        (["--sensitivity", "1e20", "--epsilon", "1"], "2^50"),
        ([*TERMS, "--column", "people"], "standard input"),
    ]
    told = one_after_another([["noise", *arguments] for arguments, _ in cases], tmp_path)
    for ended, (_, word) in zip(told, cases, strict=True):
        ended.refused(2, word)
    assert [file.name for file in tmp_path.iterdir()] == ["in.csv"]


def test_a_line_that_is_no_integer_is_named_and_not_shown(tmp_path):
    for lines, number in (
        ("1.5\n2\n", "1"),
        ("7\n" * 600_000 + "1.5\n", "600,001"),
        ("1\n3,4\n", "2"),
    ):
        told = discreet("noise", *TERMS, cwd=tmp_path, stdin=lines)
        assert (
            told.err
            == f"discreet: line {number} is not an integer of 64 bits; floats in a text need"
            " --changes\n"
        )


@pytest.mark.parametrize("whole", [True, False])
def test_an_integer_beside_a_float_pays_for_the_rounding_too(tmp_path, whole, monkeypatch):
    """One unit may move both: at the plain scale of the integers it would lose more than ε."""
    from discreet.files import batches
    from discreet.files.add_noise import add_noise
    from discreet.release import laplace_mechanism as mechanism

    scales = {
        "noisy": batches.noisy_into,
        "laplace_mechanism": mechanism.laplace_mechanism,
    }
    seen = []

    def integers(target, numbers, scale, **more):
        seen.append((numbers.dtype.kind, scale))
        return scales["noisy"](target, numbers, scale, **more)

    def floats(numbers, *, sensitivity, epsilon, **more):
        seen.append((numbers.dtype.kind, sensitivity / epsilon))
        return scales["laplace_mechanism"](
            numbers, sensitivity=sensitivity, epsilon=epsilon, **more
        )

    monkeypatch.setattr(batches, "noisy_into", integers)
    monkeypatch.setattr(mechanism, "laplace_mechanism", floats)
    column = [1, 2, 3] if whole else [1.0, 2.0, 3.0]
    pq.write_table(pa.table({"a": [1, 2, 3], "b": column}), tmp_path / "in.parquet")
    place = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    add_noise(*place, sensitivity=1, epsilon=1, columns=["a", "b"])
    widened = grid_of(False, Fraction(1), Fraction(1), 6).sensitivity
    assert seen == ([("i", 1), ("i", 1)] if whole else [("i", widened), ("f", 1)])
    assert widened > 1


def most_memory(numbers: int, folder) -> int:
    """The most memory, in KiB, that noise on so many zeros takes."""
    np.save(folder / "in.npy", np.zeros(numbers, np.int64))
    with subprocess.Popen(
        [sys.executable, "-m", "discreet", "noise", *TERMS, "in.npy", "out.npy", "--force"],
        cwd=folder,
    ) as running:
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return usage.ru_maxrss


def test_ten_million_integers_take_bounded_memory_and_follow_the_law(tmp_path):
    """False alarms: 41 counts beyond 7 deviations, below 1e-9; it catches a scale that is 1 % off."""
    few, many = most_memory(10, tmp_path), most_memory(10**7, tmp_path)
    assert many - few < 60_000  # the array alone has 78,125 KiB, in and out twice that
    noise = np.load(tmp_path / "out.npy")
    law = DiscreteLaplace(2)
    assert not caught(noise, law)
    assert caught(DiscreteLaplace("2.02").sample(10**7), law)
    assert caught(noise + (noise > 10), law)


def caught(noise, law) -> bool:
    counts = [
        (np.count_nonzero(noise == value), law.pmf(value) * 10**7) for value in range(-20, 21)
    ]
    return any(abs(found - expected) > 7 * sqrt(expected) + 7 for found, expected in counts)
