"""Lemma 1.4, plans and splits against mpmath, brute force and draws."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from discreet.calibrate import accuracy, lemma
from discreet.errors import InvalidParameter
from discreet.parameters import UNIT, charge
from terms import centred_scales

SCALES = [Fraction(1, 2), Fraction(7, 3), Fraction(20), Fraction(1234, 5)]


def reference(formula: Callable[[], mpmath.mpf]) -> float:
    with mpmath.workdps(60):
        return float(formula())


def summed(formula: Callable[[], Decimal]) -> float:
    """The same of long sums, by decimals, which are faster."""
    with decimal.localcontext(prec=60):
        return float(formula())


def ratio(scale: Fraction) -> Decimal:
    return (-Decimal(scale.denominator) / scale.numerator).exp()


def powers(q: Decimal) -> Iterator[Decimal]:
    """1, q, q², …: of 60 digits each product loses less than one in the last."""
    return itertools.accumulate(itertools.repeat(q), initial=Decimal(1), func=Decimal.__mul__)


def beyond(scale: Fraction, k: int) -> mpmath.mpf:
    """P(|X| > k), summed over the definition of the law."""
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return 1 - (1 - q) / (1 + q) * mpmath.fsum(q ** abs(j) for j in range(-k, k + 1))


@pytest.mark.parametrize("scale", SCALES)
def test_the_parts_for_one_number_are_correctly_rounded(scale: Fraction) -> None:
    assert accuracy.expected_error(scale) == float(scale)
    assert accuracy.root_mean_square_error(scale) == reference(
        lambda: mpmath.sqrt(2) * mpmath.mpf(scale.numerator) / scale.denominator
    )
    assert accuracy.tail(scale, 3 * scale) == math.exp(-3)
    assert accuracy.expected_l1(scale, 50) == float(50 * scale)

    def moment(power: int) -> Decimal:
        q, last = ratio(scale), int(scale * 160) + 160
        return (
            2
            * (1 - q)
            / (1 + q)
            * sum(k**power * part for k, part in zip(range(last), powers(q), strict=False))
        )

    assert accuracy.expected_error(scale, law="discrete") == summed(lambda: moment(1))
    assert accuracy.expected_l1(scale, 7, law="discrete") == summed(lambda: 7 * moment(1))
    assert accuracy.root_mean_square_error(scale, law="discrete") == summed(
        lambda: moment(2).sqrt()
    )
    for point in (0, 1, 2.5, 40):
        assert accuracy.tail(scale, point, law="discrete") == reference(
            lambda point=point: beyond(scale, math.floor(point))
        )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2, 50, 999, 1000, 3143])
def test_the_parts_for_the_largest_of_many_are_correctly_rounded(scale: Fraction, d: int) -> None:
    def size() -> mpmath.mpf:
        return mpmath.mpf(scale.numerator) / scale.denominator

    assert accuracy.expected_max(scale, d) == reference(lambda: size() * (mpmath.log(d) + 1))
    assert accuracy.expected_max(scale, d, law="continuous") == reference(
        lambda: size() * mpmath.fsum(1 / mpmath.mpf(k) for k in range(1, d + 1))
    )
    point = 5 * scale
    assert accuracy.max_tail(scale, d, point) == min(1, reference(lambda: d * mpmath.exp(-5)))
    assert accuracy.max_tail(scale, d, point, law="continuous") == reference(
        lambda: 1 - (1 - mpmath.exp(-5)) ** d
    )

    def beyond(first: int, last: int) -> Decimal:
        """Σ P(M > k) over first ≤ k < last."""
        q = ratio(scale)
        parts = itertools.islice(powers(q), first + 1, last + 1)
        return sum((1 - (1 - 2 * part / (1 + q)) ** d for part in parts), Decimal(0))

    whole = math.floor(point)
    assert accuracy.max_tail(scale, d, point, law="discrete") == summed(
        lambda: beyond(whole, whole + 1)
    )
    last = int(scale * (60 + math.log(d))) + 60
    assert accuracy.expected_max(scale, d, law="discrete") == summed(lambda: beyond(0, last))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 10, 3143, 3 * 10**9])
def test_the_lemma_bounds_the_exact_laws(scale: Fraction, d: int) -> None:
    maxima = [
        accuracy.expected_max(scale, d, law=law) for law in ("discrete", "continuous", "lemma")
    ]
    assert maxima == sorted(maxima)
    for t in (0, 1, 5):
        # whole: a discrete tail jumps there
        point = Fraction(math.ceil(scale * (Fraction(math.log(d)) + t)))
        tails = [
            accuracy.max_tail(scale, d, point, law=law)
            for law in ("discrete", "continuous", "lemma")
        ]
        assert tails == sorted(tails)
        assert tails[-1] <= math.exp(-t) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(7)])
def test_the_rest_of_the_coupled_maximum_covers_where_it_is_largest(scale: Fraction) -> None:
    with ctx.workprec(256):
        coupled, summed = lemma._coupled_max(scale, 1000), lemma._summed_max(scale, 1000)
        assert coupled.contains(summed)
        assert float(coupled.rad()) < 0.02


def test_draws_agree_with_the_discrete_law() -> None:
    """10⁵ maxima of 8 at scale 5: a mean further than 6.5 standard errors from E(M) is an alarm,
    8·10⁻¹¹ at random.

    The lemma's bound is 0.36 standard deviations of M away, 110 standard errors, and the control.
    The formula is compared with sums in the last digit above.
    """
    maxima = np.abs(np.random.default_rng().geometric(-math.expm1(-1 / 5), (2, 10**5, 8)) - 1)
    # the difference of two geometric numbers is DLap
    noise = np.abs(maxima[0] - maxima[1]).max(axis=1)
    error = noise.std() / 10**2.5
    assert abs(noise.mean() - accuracy.expected_max(5, 8, law="discrete")) < 6.5 * error
    assert abs(noise.mean() - accuracy.expected_max(5, 8)) > 6.5 * error


@settings(deadline=None)
@given(
    st.fractions(Fraction(1, 50), 300, max_denominator=60),
    st.sampled_from(["0.5", 0.95, Fraction(999, 1000), "0.01"]),
    st.sampled_from([1, 2, 50, 3143]),
)
def test_the_half_width_is_the_smallest_that_covers(
    scale: Fraction, confidence: Any, d: int
) -> None:
    k = accuracy.half_width(scale, confidence, d=d)
    with mpmath.workdps(60):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        wanted = (
            mpmath.mpf(str(confidence))
            if not isinstance(confidence, Fraction)
            else mpmath.mpf("0.999")
        )
        assert (1 - 2 * q ** (k + 1) / (1 + q)) ** d >= wanted
        assert k == 0 or (1 - 2 * q**k / (1 + q)) ** d < wanted


@pytest.mark.parametrize("n", [2, 7, 1000])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "6"])
def test_randomized_response_is_worse_by_exactly_the_root_of_n_over_2(n: int, epsilon: str) -> None:
    keep = reference(lambda: 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon))))
    by_hand = math.sqrt(keep * (1 - keep) / n) / (2 * keep - 1)
    assert accuracy.randomized_response(n=n, epsilon=epsilon) == pytest.approx(by_hand, rel=1e-11)
    ours = accuracy.root_mean_square_error(1 / Fraction(epsilon), law="discrete") / n
    assert accuracy.randomized_response(n=n, epsilon=epsilon) / ours == pytest.approx(
        math.sqrt(n / 2), rel=1e-14
    )


PLANS: list[tuple[dict[str, Any], Callable[[int, float], float]]] = [
    # what is planned, and its error as a function of n and ε, as the table of estimators has it
    (
        {"statistic": "mean", "bounds": (0, 120), "error": 2},
        lambda n, e: 120 * math.log(20) / (n * e),
    ),
    (
        {
            "statistic": "mean",
            "bounds": (0, 1),
            "error": "0.01",
            "confidence": None,
            "neighbors": "add-remove",
        },
        lambda n, e: math.sqrt(2) / (n * e),
    ),
    (
        {"statistic": "variance", "bounds": (-1, 1), "error": "0.1", "confidence": None},
        lambda n, e: 4 * 9 / 8 * math.sqrt(2.5) / (n * e),
    ),
    (
        {"statistic": "variance", "bounds": (-1, 1), "error": "0.1", "method": "laplace"},
        lambda n, e: 4 * (n - 1) / n**2 * math.log(20) / e,
    ),
    (
        {
            "statistic": "variance",
            "bounds": (0, 3),
            "error": "0.1",
            "neighbors": "add-remove",
            "confidence": "0.99",
        },
        lambda n, e: 9 * math.log(100) / (n * e),
    ),
    (
        {"statistic": "std", "bounds": (0, 1), "error": "0.1", "method": "laplace"},
        lambda n, e: math.sqrt(n - 1) / n * math.log(20) / e,
    ),
    (
        {"statistic": "std", "bounds": (0, 1), "error": "0.1", "neighbors": "add-remove"},
        lambda n, e: math.sqrt(math.log(20) / (n * e)),
    ),
    (
        {"statistic": "median", "error": "0.02", "cells": 4096},
        lambda n, e: 2 * math.log(4096 * 10) / (n * e),
    ),
    (
        {"statistic": "quantile", "q": "0.9", "error": "0.02", "neighbors": "add-remove"},
        lambda n, e: 1.8 * math.log(1024 * 10) / (n * e),
    ),
    (
        {"statistic": "proportion", "error": "0.01", "confidence": None},
        lambda n, e: 1 / (math.sqrt(2) * n * math.sinh(e / 2)),
    ),
    (
        {
            "statistic": "proportion",
            "error": "0.01",
            "confidence": None,
            "method": "randomized-response",
        },
        lambda n, e: 1 / (2 * math.sqrt(n) * math.sinh(e / 2)),
    ),
]


@pytest.mark.parametrize(
    ("plan", "error"),
    PLANS,
    ids=lambda value: value.get("statistic") if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_a_plan_takes_the_fewest_people(
    plan: dict[str, Any], error: Callable[[int, float], float], epsilon: str
) -> None:
    n = accuracy.people_needed(epsilon=epsilon, **plan)
    wanted, e = float(plan["error"]), float(epsilon)
    assert error(n, e) <= wanted * (1 + 1e-12)
    assert n <= 2 or error(n - 1, e) > wanted * (1 - 1e-12)


@pytest.mark.parametrize(
    ("plan", "error"),
    PLANS,
    ids=lambda value: value.get("statistic") if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("n", [100, 10**5])
def test_a_plan_takes_the_smallest_epsilon(
    plan: dict[str, Any], error: Callable[[int, float], float], n: int
) -> None:
    epsilon = accuracy.epsilon_needed(n=n, **plan)
    wanted = float(plan["error"])
    assert epsilon % UNIT == 0
    assert error(n, float(epsilon)) <= wanted * (1 + 1e-9)
    assert error(n, float(epsilon - UNIT)) > wanted * (1 - 1e-9)


@pytest.mark.parametrize("error", [0.5, 10, "99.9"])
@pytest.mark.parametrize(
    ("bins", "relation", "delta"),
    [(1, "change-one", 1), (50, "change-one", 2), (50, "add-remove", 1)],
)
def test_counts_are_planned_by_the_exact_law(
    error: Any, bins: int, relation: Any, delta: int
) -> None:
    epsilon = accuracy.epsilon_needed(
        error=error, statistic="histogram", bins=bins, neighbors=relation
    )
    assert accuracy.half_width(delta / epsilon, "0.95", d=bins) <= float(error)
    assert accuracy.half_width(delta / (epsilon - UNIT), "0.95", d=bins) > float(error)


def test_two_bins_and_one_count_are_planned_alike() -> None:
    count = accuracy.epsilon_needed(error=10, statistic="count")
    assert accuracy.epsilon_needed(error=10, statistic="histogram", bins=2) == count
    assert (
        accuracy.epsilon_needed(error=10, statistic="histogram", bins=2, neighbors="add-remove")
        > count
    )


def test_a_proportion_is_planned_by_the_exact_law() -> None:
    n = accuracy.people_needed(error="0.013", epsilon="0.7", statistic="proportion")
    radius = accuracy.half_width(1 / Fraction("0.7"), "0.95")
    assert radius <= Fraction("0.013") * n
    assert radius > Fraction("0.013") * (n - 1)


def test_the_joint_variance_has_the_tail_that_the_plan_assumes() -> None:
    """4·10⁶ draws of Y₁ + Y₂/2: the share beyond the planned width is 5 % within 6.5 standard
    errors (8·10⁻¹¹).
    """
    epsilon = accuracy.epsilon_needed(error="0.01", n=1000, statistic="variance", bounds=(0, 1))
    width = float(Fraction("0.01") * 1000 * epsilon / Fraction(9, 8))
    draws = np.random.default_rng().laplace(size=(2, 4_000_000))
    share = np.mean(np.abs(draws[0] + draws[1] / 2) > width)
    assert abs(share - 0.05) < 6.5 * math.sqrt(0.05 * 0.95 / 4_000_000)


def two_laplace_tail(first: float, second: float, point: float) -> float:
    """P(|first·Y₁ + second·Y₂| > at), with weights that differ."""
    parts = ((first, second), (second, first))
    return sum(math.exp(-point / abs(a)) * a * a / (a * a - b * b) for a, b in parts)


@pytest.mark.parametrize("point", [0.1, 1.0, 3.0, 7.0])
def test_the_worst_data_of_the_plans_are_the_worst(point: float) -> None:
    for u in np.linspace(0.001, 0.499, 100):
        # mean, add-remove: (1−u)·Y₁ − u·Y₂ is never worse than Y₁
        assert two_laplace_tail(1 - u, u, point) <= math.exp(-point)
        # variance, change-one: (1−2u)·Y₁ − Y₂/2 is never worse than at u = 0
        if abs(1 - 2 * u - 0.5) > 1e-6:
            assert (
                two_laplace_tail(1 - 2 * u, 0.5, point) <= two_laplace_tail(1, 0.5, point) + 1e-12
            )
        # variance, add-remove: weights of L1 norm at most 1, of which one alone has the heaviest
        # tail
        for v in np.linspace(0, u * (1 - u), 20):
            assert abs(u**2 - v) + abs(u**2 - u - v) + abs((1 - u) ** 2 - v) <= 1 + 1e-12


def test_a_known_std_takes_fewer_people_and_an_unknown_one_is_safe() -> None:
    plan: dict[str, Any] = {"error": "0.01", "epsilon": 1, "statistic": "std", "bounds": (0, 1)}
    unknown, known = accuracy.people_needed(**plan), accuracy.people_needed(std="0.2", **plan)
    assert accuracy.people_needed(std="0.001", **plan) == unknown
    assert known < unknown / 30
    # every error of the variance that is allowed keeps the std within the error
    for sigma, sign in itertools.product(np.linspace(0, 0.5, 101), (-1, 1)):
        allowed = 0.01**2 if sigma < 0.01 else 2 * sigma * 0.01 - 0.01**2
        assert abs(math.sqrt(max(0, sigma**2 + sign * allowed)) - sigma) <= 0.01 + 1e-9


def test_what_is_impossible_says_what_it_takes() -> None:
    with pytest.raises(InvalidParameter, match=r"impossible with 10 people: .* takes 2996 people"):
        accuracy.epsilon_needed(error="0.001", n=10, statistic="mean", bounds=(0, 1), total=1)
    with pytest.raises(InvalidParameter, match=r"impossible: ± 0.001 takes more than epsilon=1"):
        accuracy.epsilon_needed(error="0.001", statistic="count", total=1)
    with pytest.raises(
        InvalidParameter, match="does not depend on the number of people; use epsilon_needed"
    ):
        accuracy.people_needed(error=1, epsilon=1, statistic="count")
    with pytest.raises(InvalidParameter, match="does not depend on the number of people"):
        accuracy.people_needed(
            error=1, epsilon=1, statistic="median", bounds=(0, 1), method="laplace"
        )
    with pytest.raises(InvalidParameter, match=r"takes over 10\^18 people"):
        accuracy.people_needed(error="1e-30", epsilon="0.001", statistic="mean", bounds=(0, 1))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"statistic": "mode"}, "statistic must be one of count"),
        ({"error": 0}, "error must be positive"),
        ({"error": math.nan}, "error must be"),
        ({"bounds": None}, "bounds must be a pair"),
        ({"neighbors": "swap"}, "neighbors must be"),
        ({"confidence": 95}, "confidence must lie strictly between 0 and 1"),
        ({"method": "magic"}, "method must be"),
        ({"method": "randomized-response"}, "for a proportion"),
        ({"statistic": "median", "confidence": None}, "give a confidence"),
        ({"statistic": "quantile", "q": 2}, "q must lie between 0 and 1"),
        ({"statistic": "quantile", "cells": 1}, "cells must be a whole number from 2"),
        ({"statistic": "proportion", "method": "randomized-response"}, "give confidence=None"),
        ({"statistic": "std", "std": -1}, "std must be positive"),
        ({"epsilon": 0}, "epsilon must be positive"),
    ],
)
def test_a_plan_refuses_what_it_cannot_use(changed: dict[str, Any], message: str) -> None:
    plan: dict[str, Any] = {
        "error": 1,
        "epsilon": 1,
        "statistic": "mean",
        "bounds": (0, 1),
        **changed,
    }
    with pytest.raises(InvalidParameter, match=message):
        accuracy.people_needed(**plan)


def test_the_lemma_refuses_what_it_cannot_use() -> None:
    for call in (
        lambda: accuracy.expected_error(0),
        lambda: accuracy.expected_error(1, law="normal"),  # type: ignore[arg-type]
        lambda: accuracy.tail(1, -1),
        lambda: accuracy.max_tail(1, 0, 1),
        lambda: accuracy.expected_max(1, 2.5),
        lambda: accuracy.half_width(1, 1),
        lambda: accuracy.half_width(math.inf, 0.5),
    ):
        with pytest.raises(InvalidParameter):
            call()


numbers = st.lists(st.fractions(Fraction(1, 100), 100, max_denominator=100), min_size=1, max_size=6)


@given(
    numbers,
    st.sampled_from(["errors", "variance", "absolute"]),
    st.fractions(Fraction(1, 100), 10),
    st.data(),
)
def test_shares_never_exceed_epsilon_and_follow_the_rule(
    deltas: list[Fraction], rule: str, epsilon: Fraction, data: st.DataObject
) -> None:
    others = data.draw(
        st.lists(
            st.fractions(1, 10, max_denominator=10), min_size=len(deltas), max_size=len(deltas)
        )
    )
    options: dict[str, Any] = (
        {"errors": others} if rule == "errors" else {"weights": others, "minimize": rule}
    )
    shares = accuracy.split(epsilon, sensitivities=deltas, **options)
    assert sum(shares) <= epsilon
    assert sum(charge(share) for share in shares) <= charge(epsilon)
    assert epsilon - sum(shares) <= (len(shares) + 1) * UNIT
    power = {"errors": 1, "variance": 1 / 3, "absolute": 1 / 2}[rule]
    wishes = [
        float(
            {"errors": delta / other, "variance": other * delta**2, "absolute": other * delta}[rule]
        )
        ** power
        for delta, other in zip(deltas, others, strict=True)
    ]
    for share, wish in zip(shares, wishes, strict=True):
        assert float(share) == pytest.approx(float(epsilon) * wish / sum(wishes), abs=2e-9)


@pytest.mark.parametrize("minimize", ["variance", "absolute"])
def test_the_shares_are_optimal(minimize: Any) -> None:
    deltas, weights = np.array([1.0, 3.0, 10.0]), np.array([2.0, 1.0, 0.5])

    def cost(shares: Any) -> float:
        scales = deltas / shares
        return float(np.sum(weights * (2 * scales**2 if minimize == "variance" else scales)))

    best = optimize.minimize(
        lambda logs: cost(np.exp(logs) / np.exp(logs).sum()),
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-8},
    )
    shares = accuracy.split(
        1, sensitivities=deltas.tolist(), weights=weights.tolist(), minimize=minimize
    )
    assert cost(np.array([float(share) for share in shares])) <= best.fun * (1 + 1e-6)


def test_equal_parts_are_equal_and_on_the_ledgers_grid() -> None:
    assert accuracy.split(1, parts=3) == (Fraction(333_333_333, 10**9),) * 3
    assert accuracy.split("0.3", parts=3) == (Fraction(1, 10),) * 3
    assert accuracy.split(1, sensitivities=[7, 7]) == (Fraction(1, 2),) * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either parts, or sensitivities"),
        ({"parts": 2, "sensitivities": [1]}, "either parts, or sensitivities"),
        (
            {"sensitivities": [1], "errors": [1], "weights": [1]},
            "at most one of errors and weights",
        ),
        ({"parts": 2, "weights": [1, 1]}, "need sensitivities"),
        ({"sensitivities": []}, "as many"),
        ({"sensitivities": [1, 2], "errors": [1]}, "as many"),
        ({"sensitivities": [1, 0]}, "sensitivities must be positive"),
        ({"sensitivities": [1, 1], "weights": [1, -1]}, "weights must be positive"),
        ({"sensitivities": [1], "minimize": "luck"}, "minimize must be"),
        ({"parts": 10**7}, "parts must be at most"),
        ({"sensitivities": [1, 10**12], "errors": [1, 1]}, "too small to split"),
        ({"parts": 0}, "parts must be"),
    ],
)
def test_a_split_refuses_what_it_cannot_use(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        accuracy.split(1, **options)


def test_where_missing_values_are_dropped_a_mean_errs_by_up_to_1_4_times_as_much_as_planned() -> (
    None
):
    """At an end of the bounds the noise of the sum and that of the number are two draws of
    Lap(R/nε).
    """
    epsilon, n, width = Fraction(1, 10), 10_000, 120
    of_sum, of_number = centred_scales(width, epsilon)
    assert of_sum / 2 == of_number * width / 2 == width / epsilon

    def beyond(w: float) -> float:
        return (1 + w / 2) * math.exp(-w)

    needed = accuracy.epsilon_needed(error="0.5", n=n, statistic="mean", bounds=(0, width))
    planned = 0.5 * n * float(needed) / width
    assert beyond(1.4 * planned) <= 0.05 < beyond(1.35 * planned)
