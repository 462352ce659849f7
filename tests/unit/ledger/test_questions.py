"""Canonical questions, and names of requests."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import InvalidParameter
from discreet.ledger.questions import canonical, new_request_id
from scripted import Odd


def _spellings():
    tenths = (0.1, Fraction(1, 10), Decimal("0.10"), Decimal("1e-1"), np.float64(0.1))
    bounds = (
        (0, 120),
        [0.0, 120.0],
        (Fraction(0), Decimal("120.00")),
        np.array([0, 120]),
        [-0.0, np.int32(120)],
    )
    for tenth in tenths:
        for bound in bounds:
            yield {"p": tenth, "bounds": bound, "column": "é"}
            yield {"column": "é", "bounds": bound, "p": tenth}


def test_fifty_spellings_are_one_query_one_charge_one_answer(place):
    """TRUST 28."""
    spellings = list(_spellings())
    assert len(spellings) == 50
    assert len({canonical("mean", parameters) for parameters in spellings}) == 1
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        answers = set()
        for number, parameters in enumerate(spellings):
            epsilon = ("0.1", 0.1, Fraction(1, 10))[number % 3]
            query = canonical("mean", parameters)
            grant = ledger.spend(new_request_id(), query, epsilon, study="s", data_version="1")
            answers.add(grant.answer or ledger.record(grant, str(number).encode()))
        assert (answers, ledger.spent("s")) == ({b"0"}, Fraction(1, 10))
        ledger.spend(
            new_request_id(), canonical("mean", spellings[0]), "0.1", study="s", data_version="2"
        )
        assert ledger.spent("s") == Fraction(2, 10)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.fractions()
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner)
    ),
    max_leaves=6,
)


def _typed(value):
    """So that True is not 1."""
    match value:
        case list():
            return [_typed(item) for item in value]
        case dict():
            return {key: _typed(item) for key, item in value.items()}
        case bool() | None:
            return ("constant", value)
    return value


@given(values, values)
def test_different_parameters_are_different_queries(one, other):
    """TRUST 28: nobody gets the answer to another question."""
    same = canonical("n", {"x": one}) == canonical("n", {"x": other})
    assert same == (_typed(one) == _typed(other))


def test_text_is_no_number_and_a_dict_is_no_tag():
    assert (
        len(
            {
                canonical("n", {"x": x})
                for x in ("1", 1, {"number": "1"}, True, [1], {1}, date(2020, 1, 1))
            }
        )
        == 7
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Odd(), b"x", {1: 2}, 1j])
def test_a_parameter_without_a_canonical_form_is_refused(value):
    with pytest.raises(InvalidParameter):
        canonical("n", {"x": value})


def test_request_ids_differ():
    assert len({new_request_id() for _ in range(1000)}) == 1000
