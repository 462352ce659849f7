"""Attacks: each breaks its naive twin, fails against discreet, and (TRUST 35) calls a broken
mechanism broken.

Rates are held against e^ε/(1+e^ε) by Chernoff's bound at 10⁻⁹ each; with some 16 such comparisons
the file's false-alarm rate is below 2·10⁻⁸. With 20,000 trials a rate 0.03 too high is caught with
a probability above 0.98.
"""

import json
import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest

from discreet import InvalidParameter, laplace_mechanism
from discreet.verify import attacks
from discreet.verify.attacks import Answers, answers_of_study, best_guess, without_account
from discreet.verify.binomial import chance_limit
from discreet.verify.mechanisms import float_noise, many_floats

BY_MECHANISM = [
    attacks.record,
    attacks.mean_record,
    attacks.value_record,
    attacks.difference,
    attacks.least_bits,
    attacks.precision,
]


@pytest.mark.parametrize(
    "attack", [*BY_MECHANISM, attacks.reconstruction], ids=lambda attack: attack.__name__
)
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


def test_under_add_remove_a_value_is_guessed_more_often_than_presence_and_within_its_own_limit():
    """The rate of the best guess is 1 − e^−ε/2 by theory: above e^ε/(1+e^ε), below e^2ε/(1+e^2ε)."""
    for epsilon in ("0.5", 1):
        result, limits = attacks.value_record(epsilon=epsilon), attacks.bounds(epsilon)
        known = 1 - math.exp(-float(epsilon)) / 2
        assert (
            limits["add-remove, presence"]
            == limits["change-one"]
            < known
            < limits["add-remove, value"]
        )
        assert result.allowed == limits["add-remove, value"]
        assert result.discreet <= chance_limit(known, result.trials)
        assert 1 - result.discreet <= chance_limit(1 - known, result.trials)
        assert result.discreet > chance_limit(limits["add-remove, presence"], result.trials)


def test_the_limits_are_odds_of_e_to_the_epsilon_and_of_twice_that():
    for epsilon in ("0.01", 1, 3):
        odds = {fact: rate / (1 - rate) for fact, rate in attacks.bounds(epsilon).items()}
        once, twice = math.exp(float(epsilon)), math.exp(2 * float(epsilon))
        assert odds == pytest.approx(
            {"change-one": once, "add-remove, presence": once, "add-remove, value": twice}, rel=1e-9
        )


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
        (attacks.value_record, exact),
        (attacks.value_record, half_of_the_noise),
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
    assert (
        attacks.Attack(
            name="a", what="b", epsilon=1, trials=1000, naive=0.5, discreet=0.5, allowed=0.73
        ).verdict
        == "void"
    )


def test_a_result_is_frozen():
    result = attacks.Attack(name="a", what="b", epsilon=1, trials=1, naive=1, discreet=0, allowed=0)
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
        attacks.Attack(
            name="one", what="does this", epsilon=1, trials=10, naive=1, discreet=0, allowed=0
        ),
        attacks.Attack(
            name="two",
            what="does that",
            epsilon=1,
            trials=10,
            naive=1,
            discreet=1,
            allowed=0,
            faults=("a fault",),
        ),
    ]
    monkeypatch.setattr(attacks, "every", lambda _: iter(result))
    lines = []
    assert not attacks.run(lines.append, epsilon="1/2")
    text = "\n".join(lines)
    assert "theory at ε = 0.5" in text
    assert "under change-one, for any fact about one person: e^ε/(1+e^ε) = 62.2 %" in text
    assert "under add-remove, for whether a person is in the data: e^ε/(1+e^ε) = 62.2 %" in text
    assert "under add-remove, for a fact about a person's value: e^2ε/(1+e^2ε) = 73.1 %" in text
    assert all(
        words in text
        for words in ("one", "does this", "held", "two", "does that", "broken", "a fault")
    )
    shown = []
    assert not attacks.run(shown.append, as_json=True)
    listed = json.loads(shown[0])
    assert [attack["verdict"] for attack in listed] == ["held", "broken"]
    assert [attack["epsilon"] for attack in listed] == [1, 1]


def test_every_attack_is_in_the_table_at_the_epsilon_that_is_asked_for(monkeypatch):
    given = {}

    def few(name, attack):
        """The attack with few trials; those that were chosen for ε are noted."""

        def tried(*, epsilon, **chosen):
            given[name] = chosen
            return attack(
                epsilon=epsilon, **{"rounds" if name == "reconstruction" else "trials": 2}
            )

        return tried

    names = ["record", "mean_record", "value_record", "difference", "repeats"]
    for name in [*names, "reconstruction", "least_bits", "precision"]:
        monkeypatch.setattr(attacks, name, few(name, getattr(attacks, name)))
    tried = list(attacks.every("1/2"))
    assert len({attack.name for attack in tried}) == len(tried) == len(given) == 8
    assert {attack.epsilon for attack in tried} == {0.5}
    assert (given["repeats"]["trials"], given["reconstruction"]["rounds"]) == (64, 10)
    list(attacks.every(3))
    assert given["repeats"]["trials"] == 618  # so many that chance is never right in all of them
    assert chance_limit(attacks.bounds(3)["change-one"], 618) < 1


@pytest.mark.parametrize("epsilon", ["0.009", "3.1", "1000"])
def test_an_epsilon_at_which_naive_code_is_not_seen_to_break_is_refused(epsilon):
    with pytest.raises(
        InvalidParameter, match=r"epsilon must lie between 0\.01 and 3 for attacks, got"
    ):
        attacks.run(print, epsilon=epsilon)
