"""Array statistics and Algorithm 1 on a study's account."""

from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet import BudgetExceeded, InvalidParameter, Ledger
from discreet.draw import vector
from discreet.engines import array as engine

AGES = np.linspace(1, 99, 500)
BOUNDED = {"bounds": (0, 120), "epsilon": "0.1"}
CALLS = {
    "count": lambda **a: discreet.count(AGES, epsilon="0.1", **a),
    "sum": lambda **a: discreet.sum(AGES, **BOUNDED, **a),
    "mean": lambda **a: discreet.mean(AGES, **BOUNDED, **a),
    "mean add-remove": lambda **a: discreet.mean(AGES, **BOUNDED, neighbors="add-remove", **a),
    "mean textbook": lambda **a: discreet.mean(
        AGES, **BOUNDED, neighbors="add-remove", method="laplace", **a
    ),
    "proportion": lambda **a: discreet.proportion(AGES > 50, epsilon="0.1", **a),
    "variance": lambda **a: discreet.variance(AGES, **BOUNDED, **a),
    "std": lambda **a: discreet.std(AGES, **BOUNDED, neighbors="add-remove", **a),
    "std textbook": lambda **a: discreet.std(AGES, **BOUNDED, method="laplace", missing=0, **a),
    "median": lambda **a: discreet.median(AGES, **BOUNDED, **a),
    "quantile": lambda **a: discreet.quantile(AGES, 0.9, **BOUNDED, **a),
    "quantiles": lambda **a: discreet.quantiles(AGES, [0.25, 0.5], **BOUNDED, **a),
    "many quantiles": lambda **a: discreet.quantiles(
        AGES, [0.1, 0.3, 0.5, 0.7, 0.9], **BOUNDED, **a
    ),
    "cdf": lambda **a: discreet.cdf(AGES, **BOUNDED, cells=32, **a),
    "min": lambda **a: discreet.min(AGES, **BOUNDED, **a),
    "max": lambda **a: discreet.max(AGES, **BOUNDED, **a),
    "histogram": lambda **a: discreet.histogram(AGES, **BOUNDED, bins=10, **a),
    "mean_and_std": lambda **a: discreet.mean_and_std(AGES, **BOUNDED, **a),
    "summary": lambda **a: discreet.summary(AGES, **BOUNDED, **a),
    "one integer": lambda **a: discreet.laplace_mechanism(5, sensitivity=1, epsilon="0.1", **a),
    "one float": lambda **a: discreet.laplace_mechanism(5.5, sensitivity=1, epsilon="0.1", **a),
    "integers": lambda **a: discreet.laplace_mechanism(
        np.arange(9), sensitivity=1, epsilon="0.1", **a
    ),
    "floats": lambda **a: discreet.laplace_mechanism([1.5, 2.5], sensitivity=1, epsilon="0.1", **a),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as opened:
        opened.create("survey", "1")
        yield opened


def shown(release) -> object:
    """All that a reader can see of it."""
    if isinstance(release, discreet.Releases):
        return {name: shown(part) for name, part in release.items()}
    if isinstance(release, discreet.Release):
        return (
            np.asarray(release.value).tolist(),
            [np.asarray(end).tolist() for end in release.interval()],
            repr(release),
        )
    return np.asarray(release).tolist()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_charged_once_and_shown_again_free(ledger, name):
    account = {"ledger": ledger, "study": "survey", "request_id": "one"}
    first = CALLS[name](**account)
    assert ledger.spent("survey") == Fraction(1, 10)
    assert shown(CALLS[name](**account)) == shown(first)
    assert ledger.spent("survey") == Fraction(1, 10)
    other = CALLS[name](ledger=ledger, study="survey")
    assert ledger.spent("survey") == Fraction(2, 10)
    assert type(other) is type(first)


def test_the_same_question_of_the_same_version_is_charged_once_for_everybody(ledger):
    ledger.allot("ann", "0.5", study="survey")
    account = {"ledger": ledger, "study": "survey", "data_name": "age", "data_version": "2026"}
    first = discreet.mean(AGES, **BOUNDED, **account)
    assert shown(
        discreet.mean(AGES, bounds=("0", 120.0), epsilon=0.1, **account, analyst="ann")
    ) == shown(first)
    assert ledger.spent("survey") == Fraction(1, 10)
    discreet.mean(AGES, bounds=(0, 121), epsilon=0.1, **account)
    assert ledger.spent("survey") == Fraction(2, 10)


def test_what_is_spent_is_on_disk_before_anything_is_drawn(ledger, monkeypatch):
    spent = []
    for module, name in ((engine, "moments"), (vector, "fill")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda *a, real=real, **k: spent.append(ledger.spent("survey")) or real(*a, **k),
        )
    discreet.mean(AGES, **BOUNDED, ledger=ledger, study="survey")
    assert spent
    assert set(spent) == {Fraction(1, 10)}


def test_an_exhausted_budget_draws_nothing(ledger, monkeypatch):
    for _ in range(10):
        discreet.count(AGES, epsilon="0.1", ledger=ledger, study="survey")
    monkeypatch.setattr(engine, "count", lambda _data: pytest.fail("the data was looked at"))
    with pytest.raises(BudgetExceeded):
        discreet.count(AGES, epsilon="0.000000001", ledger=ledger, study="survey")
    assert ledger.remaining("survey") == 0


REFUSED = {
    "no record": lambda **a: discreet.mean([], **BOUNDED, **a),
    "one record": lambda **a: discreet.std([1], **BOUNDED, method="laplace", **a),
    "no textbook": lambda **a: discreet.std(
        AGES, **BOUNDED, method="laplace", neighbors="add-remove", **a
    ),
    "squares": lambda **a: discreet.std(AGES, bounds=(0, 1e200), epsilon=1, **a),
    "epsilon": lambda **a: discreet.mean(AGES, bounds=(0, 1), epsilon=-1, **a),
    "bounds": lambda **a: discreet.mean(AGES, bounds=(1, 0), epsilon=1, **a),
    "answer": lambda **a: discreet.laplace_mechanism(["a"], sensitivity=1, epsilon=1, **a),
    "out": lambda **a: discreet.laplace_mechanism(
        np.arange(3), sensitivity=1, epsilon=1, out=np.empty(2), **a
    ),
    "cells": lambda **a: discreet.cdf(AGES, **BOUNDED, cells=1, **a),
    "q": lambda **a: discreet.quantile(AGES, 2, **BOUNDED, **a),
    "confidence": lambda **a: discreet.median(AGES, **BOUNDED, confidence=1, **a),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_comes_before_any_spend(ledger, name):
    with pytest.raises(InvalidParameter):
        REFUSED[name](ledger=ledger, study="survey")
    assert ledger.spent("survey") == 0


def test_half_an_account_is_refused(ledger):
    for account in ({"ledger": ledger}, {"study": "survey"}, {"request_id": "one"}):
        with pytest.raises(InvalidParameter, match="ledger= and study= must be given together"):
            discreet.count(AGES, epsilon=1, **account)
    with pytest.raises(TypeError, match="unexpected keyword argument 'ledgr'"):
        discreet.count(AGES, epsilon=1, ledgr=ledger)
    with pytest.raises(TypeError, match="unexpected keyword argument 'ledgr'"):
        discreet.laplace_mechanism(1, sensitivity=1, epsilon=1, ledgr=ledger)
