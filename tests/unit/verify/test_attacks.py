"""Attacks: each breaks its naive twin, fails against discreet, and (TRUST 35) calls a broken mechanism broken.

Rates are held against e^ε/(1+e^ε) by Chernoff's bound at 10⁻⁹ each; with some 12 such comparisons the file's
false-alarm rate is below 2·10⁻⁸. With 20,000 trials a rate 0.03 too high is caught with a probability above 0.98.
"""

import json
from dataclasses import FrozenInstanceError
from fractions import Fraction
from functools import partial

import pytest

from discreet import laplace_mechanism
from discreet.verify import attacks
from discreet.verify.attacks import Answers, answers_of_study, best_guess, without_account
from discreet.verify.binomial import chance_limit
from discreet.verify.mechanisms import float_noise, many_floats

BY_MECHANISM = [attacks.record, attacks.mean_record, attacks.difference, attacks.least_bits, attacks.precision]


@pytest.mark.parametrize("attack", [*BY_MECHANISM, attacks.reconstruction], ids=lambda attack: attack.__name__)
def test_an_attack_breaks_the_naive_twin_and_not_discreet(attack):
    result = attack()
    assert result.works
    assert result.held
    assert result.verdict == "held"


def test_the_texts_attacker_is_always_right_without_noise_and_as_often_as_theory_says_with_it():
    """For a count the bound e^ε/(1+e^ε) is reached: so neither more nor less noise goes unseen."""
    for epsilon in ("0.2", 1, 3):
        result = attacks.record(epsilon=epsilon)
        assert result.naive == 1
        assert result.discreet <= chance_limit(result.allowed, result.trials)
        assert 1 - result.discreet <= chance_limit(1 - result.allowed, result.trials)


def exact(answer, **_):
    return answer


def half_of_the_noise(answer, *, sensitivity, epsilon):
    return laplace_mechanism(answer, sensitivity=sensitivity, epsilon=2 * epsilon)


def in_floats(answer, *, sensitivity, epsilon):
    return answer + float_noise(float(sensitivity / epsilon), 1)[0]


@pytest.mark.parametrize(
    ("attack", "broken"),
    [
        (attacks.record, exact),
        (attacks.record, half_of_the_noise),
        (attacks.mean_record, exact),
        (attacks.mean_record, half_of_the_noise),
        (attacks.difference, exact),
        (attacks.least_bits, in_floats),
        (attacks.precision, in_floats),
    ],
    ids=lambda attack: attack.__name__,
)
def test_control_a_broken_mechanism_is_called_broken(attack, broken):
    assert attack(mechanism=broken).verdict == "broken"


def test_control_counts_without_an_account_are_called_broken():
    assert attacks.reconstruction(rounds=5, answers=without_account).verdict == "broken"


def test_a_naive_reconstruction_gets_more_than_95_of_100_records():
    assert attacks.reconstruction(rounds=5).naive > 0.95


def test_averaging_ends_at_the_budget():
    result = attacks.repeats(questions=1, trials=50)
    assert result.works
    assert result.held
    assert not result.faults


def test_a_study_answers_a_question_once_and_only_as_often_as_its_budget_pays():
    result = answers_of_study(True, Fraction(3, 10), Fraction(1, 10))
    assert len(result.answers) == 3
    assert not result.faults


def test_control_a_study_that_draws_anew_for_ever_is_called_broken():
    def endless(secret, _total, each):
        result = Answers()
        result.answers = (30 + secret + many_floats(float(1 / each), 60_000)).tolist()
        return result

    assert attacks.repeats(trials=60, ask=endless).verdict == "broken"


def test_control_a_fault_of_the_ledger_is_called_broken_whatever_the_rate():
    def overspent(*_):
        result = Answers()
        result.faults.add("more was answered than the budget pays for")
        return result

    assert attacks.repeats(trials=5, ask=overspent).verdict == "broken"


def test_an_attack_that_does_not_even_break_its_twin_shows_nothing():
    assert attacks.Attack(name="a", what="b", trials=1000, naive=0.5, discreet=0.5, allowed=0.73).verdict == "void"


def test_a_result_is_frozen():
    result = attacks.Attack(name="a", what="b", trials=1, naive=1, discreet=0, allowed=0)
    with pytest.raises(FrozenInstanceError):
        result.discreet = 1


@pytest.mark.parametrize(("allowed", "trials"), [(0.5, 60), (0.731, 2_000), (0.525, 20_000)])
def test_the_limit_of_chance_is_that_of_the_binomial_law_or_a_little_more(allowed, trials):
    from scipy import stats

    limit = chance_limit(allowed, trials)
    assert stats.binom.sf(limit * trials, trials, allowed) <= 1e-9
    assert stats.binom.sf((limit - 0.2 * (limit - allowed)) * trials, trials, allowed) > 1e-9


def test_nothing_is_allowed_where_certainty_is_claimed():
    assert chance_limit(0.0, 20_000) == 0
    assert best_guess(Fraction(10**6)) == 1


def test_success_grows_with_epsilon_from_a_coin_to_certainty():
    points = attacks.success_by_epsilon(("0.01", 1, 5), trials=5_000)
    assert [epsilon for epsilon, _ in points] == [0.01, 1, 5]
    low, middle, high = (rate for _, rate in points)
    assert low < middle < high
    assert low < 0.57
    assert high > 0.97


def test_the_table_has_a_line_and_a_sentence_for_each_attack(monkeypatch):
    result = [
        attacks.Attack(name="one", what="does this", trials=10, naive=1, discreet=0, allowed=0),
        attacks.Attack(name="two", what="does that", trials=10, naive=1, discreet=1, allowed=0, faults=("a fault",)),
    ]
    monkeypatch.setattr(attacks, "every", lambda: iter(result))
    lines = []
    assert not attacks.run(lines.append)
    text = "\n".join(lines)
    assert all(words in text for words in ("one", "does this", "held", "two", "does that", "broken", "a fault"))
    shown = []
    assert not attacks.run(shown.append, as_json=True)
    assert [attack["verdict"] for attack in json.loads(shown[0])] == ["held", "broken"]


def test_every_attack_is_in_the_table(monkeypatch):
    few = {
        name: {"trials": 2} for name in ("record", "mean_record", "difference", "repeats", "least_bits", "precision")
    }
    for name, given in {**few, "reconstruction": {"rounds": 1}}.items():
        monkeypatch.setattr(attacks, name, partial(getattr(attacks, name), **given))
    names = [attack.name for attack in attacks.every()]
    assert len(set(names)) == len(names) == 7
