"""Declared keys as engines compare them."""

from datetime import datetime
from fractions import Fraction

import pytest

from discreet.ask.keys.column import Keys
from discreet.engines.sql.keys import key_values

HUGE = Fraction(10) ** 120


@pytest.mark.parametrize(
    ("keys", "integers", "kind", "values"),
    [
        (["b", "a"], False, "string", ["b", "a"]),
        ([True], True, "bool", [True]),
        ([datetime(2020, 1, 31)], False, "timestamp[us]", [datetime(2020, 1, 31)]),  # noqa: DTZ001
        ([2, -1], True, "int64", [2, -1]),
        ([2, -1], False, "double", [2.0, -1.0]),
        ([2, Fraction(1, 2)], True, "int64", [2, None]),
        ([2, Fraction(1, 10)], False, "double", [2.0, 0.1]),
        ([2**53 - 1], True, "int64", [2**53 - 1]),
        ([2**53], True, "double", [2.0**53]),
        ([2**53 + 1], True, "double", [2.0**53]),
        ([2**63, 1], True, "double", [2.0**63, 1.0]),
        ([HUGE, -HUGE, 1 / HUGE], True, "double", [1e100, -1e100, 0.0]),
    ],
)
def test_keys_are_what_a_row_must_have(
    keys: list[object], integers: bool, kind: str, values: list[object]
) -> None:
    column = key_values(Keys.of(keys), integers=integers)
    assert column is not None
    assert (str(column.type), column.to_pylist()) == (kind, values)


@pytest.mark.parametrize(
    "keys",
    [
        ["a", "b", "a"],
        [1, 2, 1],
        [2**53, 2**53 + 1],
        [HUGE, HUGE + 1],
        [0, 1 / HUGE],
        [Fraction(1, 3), Fraction(1, 3)],
    ],
)
def test_keys_that_are_one_in_an_engine_are_told(keys: list[object]) -> None:
    assert key_values(Keys.of(keys), integers=True) is None


def test_texts_go_to_the_engine_as_they_are() -> None:
    keys = Keys.of(["a", "b"])
    assert key_values(keys, integers=False) is keys.column
