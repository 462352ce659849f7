"""Files of keys: Arrow's reader gives the keys, and the refusals, of the reader that goes line by
line.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from discreet.ask.keys import file
from discreet.ask.keys.file import keys_in
from discreet.errors import InvalidParameter

PIECES = st.lists(
    st.sampled_from(
        ["a", "county", " ", ",", "\t", "\n", "\r\n", "\r", '"', "é", "\x1f", "\x0b", "\u2028", "1"]
    )
)


def by_lines(path: Path, wanted: str, name: str) -> object:
    try:
        return list(file._quoted_lines(path, wanted, name))
    except Exception as error:
        return type(error)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(PIECES, st.sampled_from([".csv", ".tsv", ".txt"]), st.sampled_from(["", "a", "county"]))
@example(["\n", "county", "\r\n", " ", "\n", "\n", "a"], ".csv", "")
@example(["county", ",", "a", "\n", "1", ",", "\n", "\n", ",", "a"], ".csv", "a")
@example(["\ufeff", "county", "\n", "a"], ".txt", "")
def test_both_readers_give_the_same_keys(
    tmp_path: Path, pieces: list[str], ending: str, wanted: str
) -> None:
    path = tmp_path / f"k{ending}"
    path.write_bytes("".join(pieces).encode())
    try:
        plain = file._plain_lines(path, wanted, "county")
    except InvalidParameter:
        assert by_lines(path, wanted, "county") is InvalidParameter
        return
    if plain is not None:
        assert plain.to_pylist() == by_lines(path, wanted, "county")


def test_a_plain_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "k.csv"
    path.write_bytes(b"\xef\xbb\xbfcounty\r\nA\r\n\r\n B \r\n")
    plain = file._plain_lines(path, "", "county")
    assert plain is not None
    assert plain.to_pylist() == ["A", " B "]


@pytest.mark.parametrize(
    "content", [b'"A\n', b"A\0\n", b"\xff\n", b"A\rB\n", b"", b"\n\n", b"a,b\n1\n"]
)
def test_what_is_not_sure_is_left_to_the_other(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "k.csv").write_bytes(content)
    assert file._plain_lines(tmp_path / "k.csv", "a" if b"a" in content else "", "county") is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, None, 1]),
        pa.array([0.5, 1e300, None]),
        pa.array([True, None]),
        pa.array([date(2020, 1, 31), None]),
        pa.array([Decimal("1.50")]),
        pa.array(["b", None, "a"]).dictionary_encode(),
        pa.array(["b", "a"], pa.large_string()),
        pa.array([], pa.string()),
    ],
)
def test_values_of_parquet_are_texts_as_python_writes_them(
    tmp_path: Path, column: pa.Array
) -> None:
    parquet.write_table(pa.table({"county": column}), tmp_path / "k.parquet")
    assert list(keys_in("k.parquet", "county", tmp_path)) == [
        str(value) for value in column.to_pylist() if value is not None
    ]


def test_parquet_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    broken = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff"))
    parquet.write_table(pa.table({"county": broken}), tmp_path / "k.parquet")
    with pytest.raises(InvalidParameter, match="UTF-8"):
        keys_in("k.parquet", "county", tmp_path)


def test_a_file_has_ten_million_keys_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MOST_KEYS", 2)
    parquet.write_table(pa.table({"county": ["a", "b", "c"]}), tmp_path / "k.parquet")
    (tmp_path / "k.csv").write_text("a\nb\nc\n")
    (tmp_path / "q.csv").write_text('"a"\nb\nc\n')
    for name in ("k.parquet", "k.csv", "q.csv"):
        with pytest.raises(InvalidParameter, match="at most"):
            keys_in(name, "county", tmp_path)
