"""The attacker of the texts, who knows everybody but one person, and the one who asks twice.

    record        knows n − 1 people, is told the count of all, and subtracts
    mean_record   the same with a mean: n·mean − Σ known is the record itself
    difference    asks for everybody, then for everybody but one, and subtracts

A deterministic answer gives the record away every time. With discrete Laplace noise of scale 1/ε on a count the best
guess, "1 if the answer is more than the others make", is right with probability P(Z ≥ 0) = e^ε/(1+e^ε): exactly what
theory allows, so no privacy is wasted and none is missing. Two questions share ε between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.parameters import exact_epsilon
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.verify.attacks.result import Attack, best_guess
from discreet.verify.attacks.twins import secrets

Mechanism: TypeAlias = Callable[..., Any]
"""Called as `mechanism(answer, sensitivity=…, epsilon=…)`."""

Rate: TypeAlias = Callable[[Mechanism, Fraction, int], float]
"""How often the attacker is right against a mechanism, at ε, in so many trials."""

_OTHERS = 40
"""People whom the attacker knows to be counted."""

_KNOWN_AGES = tuple(range(20, 60))
_OLDEST = 120


def exact(answer: Any, **_: Any) -> Any:
    """The naive twin of a mechanism: the answer itself."""
    return answer


def record(*, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism) -> Attack:
    """Whether a person is among those counted, guessed from one count."""
    what = "knows everyone but one person, and subtracts them from a count"
    return _tried("record in a count", what, _count_rate, mechanism, exact_epsilon(epsilon), trials)


def mean_record(*, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism) -> Attack:
    """Whether a person is 0 or 120 years old, guessed from one mean."""
    what = "knows everyone's age but one, and solves the mean for it"
    return _tried("record in a mean", what, _mean_rate, mechanism, exact_epsilon(epsilon), trials)


def difference(*, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism) -> Attack:
    """A person's bit, guessed from two counts of which one leaves the person out; each costs ε/2."""
    what = "asks for everyone, then for everyone but one person, and subtracts"
    return _tried("differencing", what, _difference_rate, mechanism, exact_epsilon(epsilon), trials)


def success_by_epsilon(
    epsilons: Sequence[Any] = ("0.01", "0.1", "0.2", "0.5", 1, 2, 3, 5, 8), *, trials: int = 20_000
) -> list[tuple[float, float]]:
    """For each ε, how often the attacker reads a record out of a count; without noise the rate is 1 at every ε."""
    exacts = [exact_epsilon(epsilon) for epsilon in epsilons]
    return [(float(one), _count_rate(laplace_mechanism, one, trials)) for one in exacts]


def _tried(name: str, what: str, rate: Rate, mechanism: Mechanism, epsilon: Fraction, trials: int) -> Attack:
    """One attack on the exact answer, and on a mechanism."""
    return Attack(
        name=name,
        what=what,
        trials=trials,
        naive=rate(exact, epsilon, trials),
        discreet=rate(mechanism, epsilon, trials),
        allowed=best_guess(epsilon),
    )


def _count_rate(mechanism: Mechanism, epsilon: Fraction, trials: int) -> float:
    right = 0
    for secret in secrets(trials).tolist():
        told = mechanism(_OTHERS + secret, sensitivity=1, epsilon=epsilon)
        right += (told > _OTHERS) == secret
    return right / trials


def _mean_rate(mechanism: Mechanism, epsilon: Fraction, trials: int) -> float:
    known, people, right = sum(_KNOWN_AGES), len(_KNOWN_AGES) + 1, 0
    sensitivity = Fraction(_OLDEST, people)
    for secret in secrets(trials).tolist():
        told = mechanism((known + _OLDEST * secret) / people, sensitivity=sensitivity, epsilon=epsilon)
        right += (told * people - known > _OLDEST / 2) == secret
    return right / trials


def _difference_rate(mechanism: Mechanism, epsilon: Fraction, trials: int) -> float:
    right = 0
    for secret in secrets(trials).tolist():
        everyone = mechanism(_OTHERS + secret, sensitivity=1, epsilon=epsilon / 2)
        others = mechanism(_OTHERS, sensitivity=1, epsilon=epsilon / 2)
        right += (everyone - others > 0) == secret
    return right / trials
