"""Keys as a column: what they are, how they are told apart, what tables show."""

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet import Study
from discreet.ask.keys.column import Keys
from discreet.errors import InvalidParameter, QueryRefused

LISTS: list[list[object]] = [
    ["a", "b"],
    ["", "a ", " a", "A", "é", "e\u0301", "a\0b"],
    [Fraction(1), Fraction(2)],
    [Fraction(1), Fraction(1, 3)],
    [Fraction(2**63), Fraction(-5)],
    [Fraction(-(2**63)), Fraction(2**63 - 1)],
    [False, True],
    [datetime(2020, 1, 31, 12, 0, 0, 1), datetime(1, 1, 1), datetime(9999, 12, 31)],  # noqa: DTZ001
]


@pytest.mark.parametrize("values", LISTS)
def test_a_list_comes_back_as_it_was(values: list[object]) -> None:
    keys = Keys.of(values)
    assert list(keys) == values
    assert [type(key) for key in keys] == [type(key) for key in values]
    assert [keys[at] for at in range(len(keys))] == values
    assert (keys[-1], keys[:1], len(keys)) == (values[-1], (values[0],), len(values))
    assert all(value in keys for value in values)


def test_what_is_no_key_is_not_among_them() -> None:
    for values in LISTS:
        keys = Keys.of(values)
        assert not any(
            other in keys
            for other in ("z", Fraction(7), Fraction(1, 7), Fraction(10**30), None, 1.5)
        )
    assert Fraction(0) not in Keys.of([False, True])
    assert False not in Keys.of([0, 1])
    with pytest.raises(IndexError):
        Keys.of(["a"])[1]


def test_dates_and_numbers_are_read() -> None:
    assert list(Keys.of([date(2020, 1, 31)])) == [datetime(2020, 1, 31)]  # noqa: DTZ001
    assert list(Keys.of([0.1, 2])) == [Fraction(1, 10), 2]
    assert list(Keys.of([10**30])) == [Fraction(10**30)]
    assert Keys.of(pa.chunked_array([["a"], ["b"]])) == Keys.of(["a", "b"])
    assert (
        Keys.of(pa.array([1, 2]))
        == Keys.of([Fraction(1), Fraction(2)])
        == Keys.numbers(np.arange(1, 3))
    )
    for wrong in (
        ["a", 1],
        ["\ud800"],
        [float("inf")],
        [float("nan")],
        [None],
        pa.array(["a", None]),
    ):
        with pytest.raises(InvalidParameter):
            Keys.of(wrong)
    broken = pa.StringArray.from_buffers(
        1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")
    )
    with pytest.raises(InvalidParameter, match="UTF-8"):
        Keys.of(broken)


def test_keys_of_another_kind_are_others() -> None:
    forms = [
        Keys.of(values)
        for values in (["1", "2"], [1, 2], [Fraction(1, 2), 2], ["1/2", "2"], ["12", ""], ["12"])
    ]
    forms += [
        Keys.of([False, True]),
        Keys.of([0, 1]),
        Keys.of([datetime(1970, 1, 1)]),  # noqa: DTZ001
        Keys.of([0]),
    ]
    assert (
        len({keys.digest for keys in forms})
        == len({keys.text for keys in forms})
        == len(set(forms))
        == len(forms)
    )
    assert all((here == there) is (here is there) for here in forms for there in forms)
    assert Keys.of(["a"]) != ["a"]


def test_a_part_of_an_array_has_the_digest_of_its_list() -> None:
    for column in (
        pa.array(["x", "a", "b", "y"]),
        pa.array([0, 5, 6, 0]),
        pa.array([True, False, True, True]),
    ):
        part = Keys(column[1:3], Keys.of(column).kind)
        whole = Keys.of(column[1:3].to_pylist())
        assert part == whole
        assert part.digest == whole.digest


def test_a_few_keys_are_in_the_text_and_many_by_their_digest() -> None:
    assert Keys.of([1, Fraction(1, 2)]).text == ' KEYS ["Fraction", "1", "1/2"]'
    assert Keys.of([False, True]).text == ' KEYS ["bool", "False", "True"]'
    assert '"20"' in Keys.of(range(1, 21)).text
    many = Keys.of(range(1, 22))
    assert many.text == f" KEYS 21 sha256 {many.digest}"


def test_keys_are_read_in_the_kind_of_the_column() -> None:
    def read(keys: list[object], kind: str) -> list[object]:
        return list(Keys.of(keys).as_kind(kind))  # type: ignore[arg-type]

    assert read([1, 2, 3], "text") == ["1", "2", "3"]
    assert read(["1", "-20", "0"], "number") == [1, -20, 0]
    assert read(["1", "2.5"], "number") == [1, Fraction(5, 2)]
    assert read(["007", "-0"], "number") == [7, 0]
    assert read([str(10**18), str(10**19)], "number") == [10**18, 10**19]
    assert read(["2020-01-31"], "date") == [datetime(2020, 1, 31)]  # noqa: DTZ001
    assert read(["true", "False"], "truth") == [True, False]
    assert read([0, 1], "number")[0] is not False
    assert read([Fraction(1, 2)], "text") == ["0.5"]
    for keys, kind in (
        (["a"], "number"),
        (["1", "01"], "number"),
        ([True], "number"),
        (["2020-13-01"], "date"),
    ):
        with pytest.raises(InvalidParameter):
            read(keys, kind)  # type: ignore[arg-type]
    same = Keys.of(["1"])
    assert same.as_kind("text") is same
    assert same.as_kind("number") is same.as_kind("number")


@pytest.mark.parametrize(
    ("values", "twice"),
    [
        (["b", "a", "b", "a"], "'b'"),
        ([2, 1, 2], "2"),
        ([Fraction(1, 2), 1, Fraction(1, 2)], "1/2"),
        ([True, True], "True"),
    ],
)
def test_keys_must_differ(values: list[object], twice: str) -> None:
    with pytest.raises(InvalidParameter, match=f"keys must differ, got {twice} twice"):
        Keys.of(values).distinct()
    for fine in (
        ["b", "a"],
        ["a", "b"],
        [1, 2],
        [2, 1],
        [True, False],
        ["a", "A", "a ", "é", "e\u0301"],
    ):
        assert Keys.of(fine).distinct().repeated is None
    with pytest.raises(InvalidParameter, match="at least one"):
        Keys.of([]).distinct()
    with pytest.raises(InvalidParameter, match="NUL"):
        Keys.of(["a\0"]).declarable()


def test_a_table_shows_texts_numbers_and_truths() -> None:
    def shown(values: list[object], other: str | None = None) -> tuple[str, list[object]]:
        column = Keys.of(values).labels(other)
        return str(column.type), column.to_pylist()

    moments = [datetime(2020, 1, 31), datetime(1, 2, 3, 4, 5, 6)]  # noqa: DTZ001
    assert shown(["a"], "rest") == ("string", ["a", "rest"])
    assert shown([1, 2]) == ("int64", [1, 2])
    assert shown([1, Fraction(1, 2)]) == ("double", [1.0, 0.5])
    assert shown([True, False]) == ("bool", [True, False])
    assert shown(moments) == ("string", [str(moment) for moment in moments])
    finer = [moments[0], datetime(2020, 1, 31, 0, 0, 0, 7)]  # noqa: DTZ001
    assert shown(finer) == ("string", [str(moment) for moment in finer])
    assert shown([1, 2], "rest") == ("string", ["1", "2", "rest"])
    assert shown([1, Fraction(1, 2)], "rest") == ("string", ["1", "0.5", "rest"])
    assert shown([True], "rest") == ("string", ["True", "rest"])
    assert shown(moments, "rest") == ("string", [*map(str, moments), "rest"])


def test_the_places_of_keys_among_others() -> None:
    assert Keys.of(["b", "a", "b"]).places(Keys.of(["a", "b"])) == [1, 0, 1]
    assert Keys.of(["b", "c"]).places(Keys.of(["a", "b"])) is None


def test_a_million_keys_are_shown_as_their_number() -> None:
    assert repr(Keys.numbers(np.arange(10**6))) == "Keys(1,000,000 of kind number)"


ROWS = pd.DataFrame(
    {"n": [1, 2, 3], "f": [0.1, 0.2, 0.3], "t": ["1", "2", "3"], "b": [True, False, True]}
)
ONE_NUMBER = [
    ("n", [2**53, 2**53 + 1]),
    ("n", [-(2**63), -(2**63) + 1]),
    ("f", ["0.3", "0.30000000000000001"]),
    ("f", ["1e-150", "2e-150"]),
    ("f", ["1e150", "1e160"]),
    ("t", [2**53, 2**53 + 1]),
]


@pytest.mark.parametrize(("column", "keys"), ONE_NUMBER)
def test_keys_that_are_one_double_are_refused_before_the_spend(column, keys):
    question = f"SELECT {column}, count(*) AS c FROM data GROUP BY {column}"  # noqa: S608 - of names above
    with Study.from_frame(ROWS, epsilon=2, keys={column: keys}) as study:
        for asked in (
            lambda: study.sql(question, epsilon=1),
            lambda: study.report({"a": question}, epsilon=1),
        ):
            with pytest.raises(
                QueryRefused, match=f"GROUP BY {column} has keys that are equal as 64-bit floats"
            ):
                asked().release()
        assert study.spent == 0


def test_large_keys_that_differ_are_groups():
    large = pd.DataFrame({"n": [2**60] * 5 + [2**61]})
    with Study.from_frame(large, epsilon=10**6, keys={"n": [2**60, 2**61]}) as study:
        answer = study.sql("SELECT n, count(*) AS c FROM data GROUP BY n", epsilon=10**5).release()
        assert [round(number) for number in answer["c"]] == [5, 1]


@pytest.mark.parametrize(
    ("column", "keys", "other"),
    [("n", [1, 2], "1"), ("f", ["0.5", "1"], "0.5"), ("b", [True], "True")],
)
def test_other_is_not_what_a_key_is_shown_as(column, keys, other):
    with pytest.raises(InvalidParameter, match=r"other.* must not be one of the keys"):
        Study.from_frame(ROWS, epsilon=1, keys={column: keys}, other={column: other})
    with pytest.raises(InvalidParameter, match="other must not be one of the keys"):
        discreet.histogram(ROWS[column], keys=keys, other=other, epsilon=1)


@pytest.mark.parametrize("columns", [None, 1])
def test_groupby_takes_names(columns):
    with (
        Study.from_frame(ROWS, epsilon=1) as study,
        pytest.raises(QueryRefused, match="groupby takes names"),
    ):
        study.groupby(columns)


@pytest.mark.parametrize("given", [("n",), ("n", "mean", "sum"), ()])
def test_agg_takes_a_column_and_a_statistic(given):
    with (
        Study.from_frame(ROWS, epsilon=1) as study,
        pytest.raises(QueryRefused, match="a column and a statistic"),
    ):
        study.agg(x=given)
