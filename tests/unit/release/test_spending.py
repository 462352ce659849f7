"""Canonical questions, and the order spend, work, record, show."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import BudgetExceeded, InvalidParameter
from discreet.release.spending import canonical, new_request_id, spending
from scripted import Odd


def _spellings():
    tenths = (0.1, Fraction(1, 10), Decimal("0.10"), Decimal("1e-1"), np.float64(0.1))
    bounds = ((0, 120), [0.0, 120.0], (Fraction(0), Decimal("120.00")), np.array([0, 120]), [-0.0, np.int32(120)])
    for tenth in tenths:
        for bound in bounds:
            yield {"p": tenth, "bounds": bound, "column": "é"}
            yield {"column": "e\u0301", "bounds": bound, "p": tenth}


def test_fifty_spellings_are_one_query_one_charge_one_answer(place):
    """TRUST 28."""
    spellings = list(_spellings())
    assert len(spellings) == 50
    assert len({canonical("mean", parameters) for parameters in spellings}) == 1
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        answers = {
            spending(
                ledger,
                lambda: [number, 1.5],  # noqa: B023 - runs at once
                study="s",
                name="mean",
                parameters=parameters,
                epsilon=("0.1", 0.1, Fraction(1, 10))[number % 3],
                data_version="1",
            )[0]
            for number, parameters in enumerate(spellings)
        }
        assert (answers, ledger.spent("s")) == ({0}, Fraction(1, 10))
        spending(ledger, lambda: 0, study="s", name="mean", parameters=spellings[0], epsilon="0.1", data_version="2")
        assert ledger.spent("s") == Fraction(2, 10)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.fractions() | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner)
    ),
    max_leaves=6,
)


def _letters(value):
    import unicodedata

    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case list():
            return [_letters(item) for item in value]
        case dict():
            return {_letters(key): _letters(item) for key, item in value.items()}
        case bool() | None:
            return ("constant", value)
    return value


@given(values, values)
def test_different_parameters_are_different_queries(one, other):
    """TRUST 28: nobody gets the answer to another question."""
    same = canonical("n", {"x": one}) == canonical("n", {"x": other})
    assert same == (_letters(one) == _letters(other))


def test_text_is_no_number_and_a_dict_is_no_tag():
    assert len({canonical("n", {"x": x}) for x in ("1", 1, {"number": "1"}, True, [1], {1}, date(2020, 1, 1))}) == 7


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Odd(), b"x", {1: 2}, 1j])
def test_a_parameter_without_a_canonical_form_is_refused(value):
    with pytest.raises(InvalidParameter):
        canonical("n", {"x": value})


def test_work_runs_after_the_spend_and_a_failure_stays_spent(place):
    """TRUST 4: an exception at every step; if a row was read, a committed spend exists."""
    with place.open(new=True) as ledger:
        ledger.create("s", "0.3")
        read = []

        def work():
            with place.open() as other:
                read.append(other.spent("s"))
            raise ZeroDivisionError

        for number in range(1, 4):
            with pytest.raises(ZeroDivisionError):
                spending(ledger, work, study="s", name="n", parameters={}, epsilon="0.1")
            assert read[-1] == ledger.spent("s") == Fraction(number, 10)
        with pytest.raises(BudgetExceeded):
            spending(ledger, work, study="s", name="n", parameters={}, epsilon="0.1")
        with pytest.raises(InvalidParameter):
            spending(ledger, work, study="s", name="n", parameters={"x": object()}, epsilon="0.1")
        assert len(read) == 3


def test_who_asks_again_goes_on_where_the_first_one_stopped(place):
    """TRUST 5: spent and unanswered; the same request is answered later, at no further charge."""
    request = {"study": "s", "name": "n", "parameters": {}, "epsilon": "0.1", "request_id": "r"}
    with place.open(new=True) as ledger:
        ledger.create("s", "0.1")
        with pytest.raises(ZeroDivisionError):
            spending(ledger, lambda: 1 / 0, **request)
        assert spending(ledger, lambda: {"count": 7}, **request) == {"count": 7}
        assert spending(ledger, lambda: {"count": 8}, **request) == {"count": 7}


def test_an_answer_that_is_no_json_is_not_recorded(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        for bad in (float("nan"), object()):
            with pytest.raises((ValueError, TypeError)):
                spending(ledger, lambda: bad, study="s", name="n", parameters={}, epsilon="0.1")  # noqa: B023
        assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "spend"]


def test_request_ids_differ():
    assert len({new_request_id() for _ in range(1000)}) == 1000
