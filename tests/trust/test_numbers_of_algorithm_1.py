"""TRUST 7 for Algorithm 1: no number raises, whatever its size and its methods; least of all once ε
is spent.
"""

import sys

import numpy as np
import pytest

import discreet
from discreet import InvalidParameter, Ledger

HUGE = 10**5000


def raising(*_given):
    raise RuntimeError("4711")


METHODS = (
    "__int__",
    "__index__",
    "__float__",
    "__le__",
    "__lt__",
    "__gt__",
    "__eq__",
    "__add__",
    "__radd__",
    "__bool__",
)
HOSTILE = {
    **dict.fromkeys(METHODS, raising),
    "__hash__": raising,
    "__len__": raising,
    "__getitem__": raising,
}


class HostileInt(int):
    __class__ = property(raising)


class HostileFloat(float):
    __class__ = property(raising)


class HostileWide(np.int64):
    pass


class HostileReal(np.float32):
    pass


for kind in (HostileInt, HostileFloat, HostileWide, HostileReal):
    for name, method in HOSTILE.items():
        setattr(kind, name, method)

ANSWERS = {
    "a huge integer": (HUGE, HUGE),
    "huge integers": ([HUGE, -HUGE], HUGE),
    "a huge integer among floats": ([HUGE, 0.5], sys.float_info.max),
    "a negative one": ([-HUGE, 0.5], -sys.float_info.max),
    "a huge integer in an array": (np.array([HUGE, 1], object), HUGE),
    "an odd integer": (HostileInt(7), 7),
    "an odd float": (HostileFloat(7), 7),
    "odd integers": ([HostileInt(7), 1], 7),
    "odd floats": ([HostileFloat(7), 1], 7),
    "odd integers of numpy": ([HostileWide(7), 1], 7),
    "odd floats of numpy": ([HostileReal(7), 1], 7),
    "odd integers in an array": (np.array([HostileInt(7), None], object)[:1], 7),
    "wide floats": ([np.longdouble("1e4000"), 0.5], sys.float_info.max),
    "wide floats in an array": (np.array([np.longdouble("-1e4000")]), -sys.float_info.max),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", 100_000)
        yield opened


def first(result):
    return result if isinstance(result, int | float) else result[0]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_number_is_noised_charged_and_shown_again(ledger, name):
    answer, value = ANSWERS[name]
    noise = {"sensitivity": 1, "epsilon": 1000}
    account = {"ledger": ledger, "study": "survey", "request_id": "one"}
    shown = [
        first(discreet.laplace_mechanism(answer, **noise, **more))
        for more in ({}, account, account)
    ]
    assert all(type(number) in (int, float, np.float64) for number in shown)
    assert all(abs(number - value) <= abs(value) // 10**15 + 1 for number in shown)
    assert shown[1] == shown[2]
    assert ledger.spent("survey") == 1000


@pytest.mark.parametrize(
    "item", [np.timedelta64(5, "s"), np.complex128(1), "1", None, [1], object()]
)
def test_what_is_no_number_is_refused_before_any_spend(ledger, item):
    with pytest.raises(
        InvalidParameter, match="must be integers or floats in a regular shape"
    ) as refused:
        discreet.laplace_mechanism(
            [item, 1], sensitivity=1, epsilon=1, ledger=ledger, study="survey"
        )
    assert refused.value.__context__ is None
    assert ledger.spent("survey") == 0


@pytest.mark.parametrize(
    "call", [discreet.count, discreet.proportion, discreet.sum, discreet.median]
)
def test_statistics_take_odd_numbers_too(ledger, call):
    column = [HostileInt(7), HostileFloat(7), HUGE, 1, 0.5]
    bounds = {} if call in (discreet.count, discreet.proportion) else {"bounds": (0, 10)}
    call(column, epsilon=1000, ledger=ledger, study="survey", **bounds)
    assert ledger.spent("survey") == 1000
