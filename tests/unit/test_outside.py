"""Texts from outside: what is read, and what is refused; `test_numbers_from_outside.py` has the
attacks.
"""

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from discreet.errors import InvalidParameter
from discreet.outside import DEEPEST, MOST_DIGITS, Unreadable, read_fraction, read_json, read_toml


def test_what_people_write_is_read():
    assert read_json('{"a": [1, 2.5, "x", null, true, {"b": {}}]}') == {
        "a": [1, 2.5, "x", None, True, {"b": {}}]
    }
    assert read_json("[" * DEEPEST + "]" * DEEPEST)
    assert read_json("9" * MOST_DIGITS) == int("9" * MOST_DIGITS)
    assert read_json(json.dumps("[{" * 10**5)) == "[{" * 10**5
    assert read_json(json.dumps('a"[\\"' * 10**4)) == 'a"[\\"' * 10**4
    assert read_toml(".".join("a" * 32) + " = 1")
    assert read_toml(f'source = "{"www." * 20}example.org"\n# {"a." * 20}')
    numbers = {
        "1/3": Fraction(1, 3),
        "-0.25": Fraction(-1, 4),
        7: 7,
        1e-7: Fraction(1, 10**7),
        Decimal("1e2"): 100,
    }
    assert {value: read_fraction(value) for value in numbers} == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * (DEEPEST + 1), "more than 200 levels"),
        ("9" * (MOST_DIGITS + 1), "at most 4,000 characters"),
        ('{"a": 1, "a": 2}', "must not occur twice"),
        ("[NaN]", "finite"),
        ("-Infinity", "finite"),
        ("1e999", "finite"),
        ("{", "must be JSON in UTF-8"),
        (b"\xff", "must be JSON in UTF-8"),
        (b"\xfe\xff\x00[\x00]", "must be JSON in UTF-8"),
        ('"' + '\\"' * 9, "must be JSON in UTF-8"),
        (b"[1, 2, 3]", "at most 8 bytes, got 9"),
    ],
)
def test_what_is_no_json_within_the_limits_is_refused(text, words):
    with pytest.raises(Unreadable, match=words) as refusal:
        read_json(text, longest=8 if isinstance(text, bytes) and len(text) == 9 else None)
    assert isinstance(refusal.value, InvalidParameter)
    assert refusal.value.__cause__ is None


def test_limits_and_the_reader_of_decimals_can_be_chosen():
    assert read_json("[1.5]", real=Decimal) == [Decimal("1.5")]
    assert read_json("[-Infinity]", finite=False) == [float("-inf")]
    for text, limit in (("[[1]]", {"deepest": 1}), ("[123]", {"digits": 2})):
        with pytest.raises(Unreadable):
            read_json(text, **limit)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "1e5",
            "1/0",
            "nan",
            "",
            "0x1",
            "\u0663",
            " 1",
            "1_0",
            "9" * (MOST_DIGITS + 1),
            10**MOST_DIGITS,
        ),
        *(True, None, [1], 1j, float("inf"), Decimal("NaN"), Decimal("1e99999")),
    ],
)
def test_what_is_no_number_within_the_limits_is_refused(value):
    with pytest.raises(Unreadable, match="a number must be written as 1, 1/10 or"):
        read_fraction(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = [", "must be TOML: "),
        ("a = " + "[" * 10**5, "must be TOML$"),
        ("a = " + "9" * 10**4, "too many digits"),
        (".".join("a" * 33) + " = 1", "at most 32 parts"),
        (" . ".join(["'a.b'"] * 33) + " = 1", "at most 32 parts"),
    ],
)
def test_what_is_no_toml_within_the_limits_is_refused(text, words):
    with pytest.raises(Unreadable, match=words):
        read_toml(text)
