"""One key, as a policy writes it."""

from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from discreet.ask.keys.key import as_kind, read_date, read_key
from discreet.errors import InvalidParameter


def test_a_key_is_a_text_a_number_a_date_or_a_truth() -> None:
    assert [read_key(value) for value in ("1", 1, 0.5, True)] == ["1", 1, Fraction(1, 2), True]
    assert read_key(True) is True
    assert read_key(date(2020, 1, 31)) == read_date("2020-01-31") == datetime(2020, 1, 31)  # noqa: DTZ001
    for wrong in ("a\0", float("nan"), None, datetime(2020, 1, 31, tzinfo=UTC)):
        with pytest.raises(InvalidParameter):
            read_key(wrong)


def test_a_text_writes_a_key_of_another_kind() -> None:
    assert as_kind("1/3", "number") == Fraction(1, 3)
    assert as_kind(Fraction(1, 8), "text") == "0.125"
    assert as_kind("TRUE", "truth") is True
    for key, kind in (
        ("yes", "truth"),
        (True, "number"),
        ("2020-02-30", "date"),
        (Fraction(1), "truth"),
    ):
        with pytest.raises(InvalidParameter):
            as_kind(key, kind)  # type: ignore[arg-type]
