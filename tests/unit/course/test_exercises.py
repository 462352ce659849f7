"""A table of answers: every correct form is accepted, every usual slip is refused with its words.

What is right follows here from the data sets and the laws themselves, not from the formulas of the
checks.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.course import check
from discreet.course.exercises import EXERCISES, parts_of
from discreet.course.parts import Number
from discreet.errors import InvalidParameter

SCALE = {"sensitivity": 2, "epsilon": "0.1"}
AVERAGE = {"n": 100, "R": 120}
PEOPLE = {"alpha": "0.01", "epsilon": "0.1"}

RIGHT: list[tuple[str, str, Any, dict[str, Any]]] = [
    *(
        ("norm", "norm", answer, {})
        for answer in (4, 4.0, "4", Fraction(4), Decimal(4), np.int64(4), np.array([4.0]))
    ),
    *(
        ("1.2", "average", answer, {})
        for answer in (
            lambda n, R: R / n,
            lambda n, R: Fraction(R, n),
            lambda n, R: Fraction(R) / n,
            lambda n, R: R * n**-1,
            lambda n, R: Decimal(R) / Decimal(n),
            lambda n, R: np.float32(R) / n,
            lambda n, R: np.array([R]) / n,
            lambda n, R: discreet.sensitivity.mean(n=n, bounds=(0, R)),
            "R/n",
            "R * n^-1",
            "(1/n)·R",
        )
    ),
    *(
        ("1.2", "average", answer, AVERAGE)
        for answer in (1.2, Fraction(6, 5), "6/5", "120/100", np.float64(1.2))
    ),
    *(("histogram", "histogram", answer, {}) for answer in (2, 2.0, "2", Fraction(2), np.int8(2))),
    *(
        ("scale", "scale", answer, SCALE)
        for answer in (20, 2 / 0.1, 2 / Fraction("0.1"), "2/0.1", Decimal("20.0"))
    ),
    *(
        ("1.5", "suffolk", answer, {})
        for answer in (20, 20.0, 2 / 0.1, "2/0.1", Fraction(20), np.float32(20))
    ),
    *(
        ("1.5", "largest", answer, {})
        for answer in (
            20 * (math.log(3143) + 1),
            181,
            181.06,
            181.1,
            np.float64(181.06),
            "181.06",
            "20(ln(3143) + 1)",
            "20·(log(3,143) + 1)",
            Fraction(18106, 100),
            discreet.accuracy.expected_max(20, d=3143),
        )
    ),
    *(
        ("1.6", "laplace", answer, {})
        for answer in (
            lambda alpha, epsilon: math.sqrt(2) / (alpha * epsilon),
            lambda alpha, epsilon: 2**0.5 * alpha**-1 * epsilon**-1,
            lambda alpha, epsilon: Fraction(2**0.5) / (alpha * epsilon),
            lambda alpha, epsilon: Fraction(1, alpha * epsilon) * 2**0.5,
            lambda alpha, epsilon: Decimal(2).sqrt() / (alpha * epsilon),
            lambda alpha, epsilon: np.sqrt(2) / (alpha * epsilon),
            lambda alpha, epsilon: 1.41 / (alpha * epsilon),
            lambda alpha, epsilon: 1.414 / (alpha * epsilon),
            lambda alpha, epsilon: math.ceil(math.sqrt(2) / (alpha * epsilon)),
            lambda alpha, epsilon: discreet.accuracy.people_needed(
                error=str(alpha), epsilon=str(epsilon), statistic="proportion", confidence=None
            ),
            "√2/(αε)",
            "sqrt(2)/(alpha*epsilon)",
            "2^0.5 / (α·ϵ)",
            "√2·(αε)^-1",
        )
    ),
    *(
        ("1.6", "laplace", answer, PEOPLE)
        for answer in (1414.2135, 1414, 1415, 1414.2, 1410, "1,415", np.int32(1415))
    ),
    *(
        ("1.6", "response", answer, {})
        for answer in (
            lambda alpha, epsilon: 1 / (alpha * epsilon) ** 2,
            lambda alpha, epsilon: (alpha * epsilon) ** -2,
            lambda alpha, epsilon: 1 / (4 * alpha**2 * math.sinh(epsilon / 2) ** 2),
            lambda alpha, epsilon: discreet.accuracy.people_needed(
                error=str(alpha),
                epsilon=str(epsilon),
                statistic="proportion",
                confidence=None,
                method="randomized-response",
            ),
            "1/(αε)²",
            "1/(2α·sinh(ε/2))^2",
            "1/(4 alpha^2 sinh(epsilon/2)^2)",
            "e^ε/(α²(e^ε − 1)²)",
        )
    ),
    *(("1.6", "response", answer, PEOPLE) for answer in (10**6, 1e6, 999168, "1,000,000")),
    *(
        ("1.7", "tail", answer, {})
        for answer in (
            lambda y, scale: math.exp(-y / scale),
            lambda y, scale: np.exp(-y / scale),
            lambda y, scale: math.e ** (-y / scale),
            lambda y, scale: 1 - discreet.Laplace(scale).cdf(y) + discreet.Laplace(scale).cdf(-y),
            "e^(-y/λ)",
            "exp(-y/scale)",
        )
    ),
    *(
        ("1.7", "max_tail", answer, {})
        for answer in (
            lambda y, d, scale: min(1, d * math.exp(-y / scale)),
            lambda y, d, scale: np.minimum(1, d * np.exp(-y / scale)),
            lambda y, d, scale: 1 - (1 - math.exp(-y / scale)) ** d,
            lambda y, d, scale: -np.expm1(d * np.log1p(-np.exp(-y / scale))),
            lambda y, d, scale: math.exp(-max(0, y / scale - math.log(d))),
            "min(1, d*exp(-y/λ))",
        )
    ),
    *(
        ("factor", "factor", answer, {})
        for answer in (math.exp(0.5), 1.65, 1.6487, "e^0.5", "exp(1/2)", "√e")
    ),
    *(("A", "difference", answer, {}) for answer in (1, -1, "1", "−1", 1.0)),
    *(
        ("A", "share", answer, {})
        for answer in (
            math.e / (1 + math.e),
            0.731,
            "73.1 %",
            "e/(1+e)",
            "1/(1 + exp(-1))",
            np.float32(0.731),
        )
    ),
    *(("B", "multiple", answer, {}) for answer in (2, 2.0, Fraction(2), "2")),
    *(("B", "private", answer, {}) for answer in (False, np.False_, "no", "False", 0)),
    *(
        ("C", "once", answer, {})
        for answer in (Fraction(1, 2), 0.5, "1/2", "0.5", Decimal("0.5"), "50%")
    ),
    *(("C", "thrice", answer, {}) for answer in (Fraction(1, 4), 0.25, "1/4", "25 %")),
    *(
        ("D", "free", answer, {})
        for answer in ([1, 2, 4], (4, 2, 1), {1, 2, 4}, "1, 2, 4", np.array([1, 2, 4]))
    ),
    *(("E", "papers", answer, {}) for answer in (0.5, "1/2", Fraction(1, 2), "50 %")),
    *(("E", "redrawn", answer, {}) for answer in (False, "no")),
    *(("F", "once", answer, {}) for answer in (0.3, "3/10", Decimal("0.3"))),
    *(("F", "moved", answer, {}) for answer in (0.6, "2 * 0.3", Fraction(3, 5))),
    *(("F", "separately", answer, {}) for answer in (3.6, "12 * 0.3", np.float32(3.6))),
    *(("G", "factor", answer, {}) for answer in (math.exp(2), 7.39, "e^2", "exp(0.5)^4")),
    *(
        ("G", "share", answer, {})
        for answer in (0.881, "88.1 %", "e^2/(1 + e^2)", 1 / (1 + math.exp(-2)))
    ),
    *(("G", "scale", answer, {}) for answer in (8, 8.0, "4/0.5", Fraction(8))),
    *(("H", "real", answer, {}) for answer in (2, "2", 2.0)),
    *(
        ("H", "exceeds", answer, {})
        for answer in (0.534, "53.4 %", "1/(1 + exp(-1))^2", "(e/(1 + e))^2")
    ),
    *(("H", "scale", answer, {}) for answer in (2, "2/1", Fraction(2))),
    *(
        ("I", "largest", answer, {})
        for answer in (73.5, "2*53*ln(2)", 106 * math.log(2), np.float32(73.47))
    ),
    *(("I", "private", answer, {}) for answer in (False, "no")),
]

WRONG: list[tuple[str, str, Any, dict[str, Any], str]] = [
    ("norm", "norm", -2, {}, "with its signs"),
    ("norm", "norm", math.sqrt(10), {}, "L2 norm"),
    ("norm", "norm", 3, {}, "largest"),
    ("norm", "norm", 8, {}, "factor of 2"),
    ("norm", "norm", True, {}, "not a finite number"),
    ("norm", "norm", math.nan, {}, "not a finite number"),
    ("norm", "norm", 10**400, {}, "not a finite number"),
    ("norm", "norm", "four", {}, "not of this question"),
    ("norm", "norm", "__import__('os')", {}, "not a number or a formula"),
    ("norm", "norm", "9**9**9**9", {}, "it fails with OverflowError"),
    ("1.2", "average", lambda n, R: R, {}, "moves the sum"),
    ("1.2", "average", lambda n, R: 2 * R / n, {}, "factor of 2"),
    ("1.2", "average", lambda n, R: R / n / 2, {}, "factor of 2"),
    ("1.2", "average", lambda n, R: math.sqrt(2) * R / n, {}, "factor of √2"),
    ("1.2", "average", lambda n, R: 1 / n, {}, "the range is R"),
    ("1.2", "average", lambda n, R: R / math.sqrt(n), {}, "√n"),
    ("1.2", "average", lambda n, R: R / (n - 1), {}, "ZeroDivisionError"),
    ("1.2", "average", lambda n, R: R / max(1, n - 1), {}, "is wrong at n = 2 and R = 1"),
    ("1.2", "average", lambda n, R: R / (n + 1), {}, "does not change"),
    ("1.2", "average", lambda n, R: n / R, {}, "its inverse"),
    ("1.2", "average", lambda n, R: -R / n, {}, "sign"),
    ("1.2", "average", lambda n, R: 1.001 * R / n, {}, "is wrong at"),
    ("1.2", "average", lambda n: 1 / n, {}, "TypeError"),
    ("1.2", "average", lambda n, R: None, {}, "not a finite number"),
    ("1.2", "average", "R/m", {}, "'m' is not of this question; write it in n and R"),
    ("1.2", "average", "Rn^-1", {}, "write * between"),
    ("1.2", "average", 1.2, {}, "write it as a function"),
    ("1.2", "average", 120, AVERAGE, "moves the sum"),
    ("1.2", "average", 2.4, AVERAGE, "factor of 2"),
    ("1.2", "average", 12, AVERAGE, "√n"),
    ("1.2", "average", 0.01, AVERAGE, "the range is R"),
    ("histogram", "histogram", 1, {}, "which other bin"),
    ("histogram", "histogram", 1.414, {}, "L2 norm"),
    ("histogram", "histogram", 50, {}, "you have 50"),
    ("scale", "scale", 10, SCALE, "Δ = 1"),
    ("scale", "scale", 0.2, SCALE, "divide by ε"),
    ("scale", "scale", 0.05, SCALE, "inverse"),
    ("scale", "scale", 28.3, SCALE, "standard deviation"),
    ("1.5", "suffolk", 21.9, {}, "you have 21.9"),
    ("1.5", "suffolk", 20.9, {}, "close"),
    ("1.5", "suffolk", 10, {}, "Δ = 1"),
    ("1.5", "suffolk", 28.3, {}, "root mean square"),
    ("1.5", "suffolk", 2, {}, "divide it by ε"),
    ("1.5", "suffolk", 40, {}, "factor of 2"),
    ("1.5", "suffolk", 60, {}, "you have 60"),
    ("1.5", "largest", 172.61, {}, "exact E(M)"),
    ("1.5", "largest", 172.6, {}, "exact E(M)"),
    ("1.5", "largest", 161.06, {}, "the 1 is missing"),
    ("1.5", "largest", 90.5, {}, "Δ = 1"),
    ("1.5", "largest", 256, {}, "no √2"),
    ("1.5", "largest", 3143 * 20, {}, "total error"),
    ("1.5", "largest", 20, {}, "one county"),
    ("1.5", "largest", 20 * (math.log10(3143) + 1), {}, "base 10"),
    ("1.5", "largest", 220, {}, "you have 220"),
    ("1.5", "largest", 362.1, {}, "factor of 2"),
    ("1.6", "laplace", lambda alpha, epsilon: 1.4 / (alpha * epsilon), {}, "is wrong at"),
    ("1.6", "laplace", lambda alpha, epsilon: 1 / (alpha * epsilon), {}, "mean absolute error"),
    ("1.6", "laplace", lambda alpha, epsilon: 2 / (alpha * epsilon), {}, "2 is the variance's"),
    ("1.6", "laplace", lambda alpha, epsilon: 2 * math.sqrt(2) / (alpha * epsilon), {}, "factor of 2"),
    ("1.6", "laplace", lambda alpha, epsilon: 2 / (alpha * epsilon) ** 2, {}, "that is the square"),
    ("1.6", "laplace", lambda alpha, epsilon: 1 / (alpha * epsilon) ** 2, {}, "randomized response"),
    ("1.6", "laplace", lambda alpha, epsilon: math.sqrt(2) / epsilon, {}, "where is α"),
    ("1.6", "laplace", lambda alpha, epsilon: math.sqrt(2) / alpha, {}, "where is ε"),
    ("1.6", "laplace", lambda alpha, epsilon: math.sqrt(2) / (alpha**2 * epsilon), {}, "not with √n"),
    ("1.6", "laplace", 1000, PEOPLE, "mean absolute error"),
    ("1.6", "laplace", 1400, PEOPLE, "three significant digits"),
    ("1.6", "response", lambda alpha, epsilon: 1 / (alpha * epsilon), {}, "square it"),
    ("1.6", "response", lambda alpha, epsilon: 2 / (alpha * epsilon) ** 2, {}, "no √2"),
    ("1.6", "response", lambda alpha, epsilon: 1 / (2 * (alpha * epsilon) ** 2), {}, "factor of 2"),
    ("1.6", "response", lambda alpha, epsilon: 1 / (alpha**2 * epsilon), {}, "halving ε"),
    ("1.6", "response", 1414, PEOPLE, "Laplace mechanism"),
    ("1.7", "tail", lambda y, scale: math.exp(-y / scale) / 2, {}, "one of the two sides"),
    ("1.7", "tail", lambda y, scale: math.exp(-y), {}, "λ = 1"),
    ("1.7", "tail", lambda y, scale: math.exp(-y / scale) / scale, {}, "density of |Z|"),
    ("1.7", "tail", lambda y, scale: 1 - math.exp(-y / scale), {}, "≤ y"),
    ("1.7", "tail", lambda y, scale: math.exp(-y / 2), {}, "is wrong at"),
    ("1.7", "max_tail", lambda y, d, scale: 0, {}, "no bound (2b)"),
    ("1.7", "max_tail", lambda y, d, scale: 1, {}, "(2c)"),
    ("1.7", "max_tail", lambda y, d, scale: d * math.exp(-y / scale), {}, "never above 1"),
    ("1.7", "max_tail", lambda y, d, scale: math.exp(-y / scale), {}, "one draw"),
    ("1.7", "max_tail", lambda y, d, scale: math.exp(-y / scale) ** d, {}, "all d exceed"),
    ("1.7", "max_tail", lambda y, d, scale: (1 - math.exp(-y / scale)) ** d, {}, "none exceeds"),
    ("1.7", "max_tail", lambda y, d, scale: min(1, math.sqrt(d) * math.exp(-y / scale)), {}, "no bound (2b)"),
    ("1.7", "max_tail", lambda y, d, scale: min(1, d * math.exp(-y / scale) / 2), {}, "no bound (2b)"),
    ("1.7", "max_tail", lambda y, d, scale: min(1, 2 * d * math.exp(-y / scale)), {}, "(2c)"),
    ("1.7", "max_tail", 3, {}, "write it as a function"),
    ("factor", "factor", 0.5, {}, "the logarithm of the factor"),
    ("factor", "factor", 1.5, {}, "1 + ε"),
    ("factor", "factor", 0.6065, {}, "smallest"),
    ("factor", "factor", math.e, {}, "two people"),
    ("factor", "factor", 3, {}, "you have 3"),
    ("factor", "factor", 1.6, {}, "three significant digits"),
    ("A", "difference", 0, {}, "did not have"),
    ("A", "share", 0.5, {}, "toss of a coin"),
    ("A", "share", math.e, {}, "odds"),
    ("A", "share", 0.269, {}, "wrong guesses"),
    ("A", "share", 0.881, {}, "together have ε"),
    ("A", "share", 73.1, {}, "percentage"),
    ("B", "multiple", Fraction(1, 2), {}, "larger loss"),
    ("B", "multiple", 4, {}, "Δ/λ"),
    ("B", "private", True, {}, "subtract"),
    ("B", "private", "perhaps", {}, "True or False"),
    ("C", "once", Fraction(1, 13), {}, "wasteful"),
    ("C", "once", 1, {}, "once more"),
    ("C", "thrice", Fraction(1, 3), {}, "once more"),
    ("C", "thrice", 0.5, {}, "one month"),
    ("D", "free", [1, 2, 3], {}, "3: what tells"),
    ("D", "free", [1, 2], {}, "4: a share"),
    ("D", "free", [1, 2, 4, 6], {}, "no number 6"),
    ("D", "free", 1, {}, "give numbers"),
    ("E", "papers", 1.5, {}, "do not look at the data"),
    ("E", "papers", 2, {}, "do not look at the data"),
    ("E", "papers", 0, {}, "whoever reads it"),
    ("E", "papers", 1.65, {}, "its logarithm"),
    ("E", "redrawn", True, {}, "never come out"),
    ("F", "once", 3.6, {}, "one person is in one ward"),
    ("F", "once", 0.6, {}, "moves from one ward"),
    ("F", "moved", 0.3, {}, "changes two wards"),
    ("F", "moved", 3.6, {}, "not all"),
    ("F", "separately", 0.3, {}, "adds up questions"),
    ("F", "separately", 0.6, {}, "adds up questions"),
    ("G", "factor", 1.65, {}, "one person"),
    ("G", "factor", 4 * math.exp(0.5), {}, "do not add"),
    ("G", "factor", 2, {}, "the loss"),
    ("G", "share", 0.622, {}, "one person"),
    ("G", "share", 0.119, {}, "wrong guesses"),
    ("G", "scale", 2, {}, "one person"),
    ("G", "scale", 4, {}, "not its root"),
    ("G", "scale", 0.5, {}, "not less"),
    ("G", "scale", 16, {}, "not a histogram"),
    ("H", "real", 1, {}, "what was wanted"),
    ("H", "real", 20, {}, "two of the counts"),
    ("H", "real", 0.5, {}, "larger loss"),
    ("H", "exceeds", 0.731, {}, "both"),
    ("H", "exceeds", 0.466, {}, "does not exceed"),
    ("H", "exceeds", 0.0723, {}, "the loss −2ε"),
    ("H", "exceeds", 0.25, {}, "more than one half"),
    ("H", "scale", 1, {}, "was used"),
    ("H", "scale", 20, {}, "Δ = 2"),
    ("H", "scale", 1.41, {}, "L2 norm"),
    ("I", "largest", 106, {}, "natural"),
    ("I", "largest", 31.9, {}, "base 10"),
    ("I", "largest", 36.7, {}, "the scale 1"),
    ("I", "largest", 1.39, {}, "the smallest U"),
    ("I", "largest", 18.4, {}, "divide by ε"),
    ("I", "private", True, {}, "lies beyond"),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "part", "answer", "given"), RIGHT)
def test_a_right_answer_is_accepted_in_every_form(exercise, part, answer, given):
    found = {
        finding.part: finding for finding in check(exercise, given=given, **{part: answer}).findings
    }[part]
    assert found.right, found.words


@pytest.mark.parametrize(("exercise", "part", "answer", "given", "words"), WRONG)
def test_a_wrong_answer_is_refused_with_the_slip_that_it_may_be(
    exercise, part, answer, given, words
):
    found = {
        finding.part: finding for finding in check(exercise, given=given, **{part: answer}).findings
    }[part]
    assert not found.right
    assert words in found.words
    again = {
        finding.part: finding for finding in check(exercise, given=given, **{part: answer}).findings
    }[part]
    assert again == found


def test_every_part_of_every_exercise_is_in_both_tables():
    parts = {(name, part.name) for name in EXERCISES for part in parts_of(name)}
    assert {(name, part) for name, part, *_ in RIGHT} == parts
    assert {(name, part) for name, part, *_ in WRONG} == parts


def wanted(exercise: str, part: str, **given: Any) -> float:
    [found] = [each for each in parts_of(exercise, given) if each.name == part]
    assert isinstance(found, Number)
    return found.wanted


def greatest_move(f, universe, n):
    """The largest ‖f(x) − f(x′)‖₁ over all neighbours, by trying all of them."""
    return max(
        sum(abs(a - b) for a, b in zip(f(x), f([*x[:i], value, *x[i + 1 :]]), strict=True))
        for x in product(universe, repeat=n)
        for i, value in product(range(n), universe)
    )


def test_what_the_checks_want_is_what_data_sets_and_laws_have():
    for n, R in product((1, 2, 3, 4), (1, 120)):
        moved = greatest_move(lambda x: [Fraction(sum(x), len(x))], (0, Fraction(R, 2), R), n)
        assert wanted("1.2", "average", n=n, R=R) == float(moved)
    assert wanted("histogram", "histogram") == greatest_move(
        lambda x: [x.count(bin) for bin in "AB"], "AB", 2
    )
    for epsilon, d in (("0.1", 3143), ("0.5", 58)):
        scale = float(discreet.sensitivity.histogram(bins=d) / Fraction(epsilon))
        given = {"epsilon": epsilon, "counties": d}
        assert wanted("scale", "scale", epsilon=epsilon) == pytest.approx(scale)
        assert wanted("1.5", "suffolk", **given) == pytest.approx(
            discreet.accuracy.expected_error(scale)
        )
        assert wanted("1.5", "largest", **given) == pytest.approx(
            discreet.accuracy.expected_max(scale, d=d)
        )
    for alpha, epsilon in (("0.01", "0.1"), ("0.02", "0.05")):
        n = wanted("1.6", "laplace", alpha=alpha, epsilon=epsilon)
        assert discreet.accuracy.root_mean_square_error(1 / Fraction(epsilon)) / n == pytest.approx(
            float(alpha)
        )
        people = round(wanted("1.6", "response", alpha=alpha, epsilon=epsilon))
        assert discreet.accuracy.randomized_response(n=people, epsilon=epsilon) == pytest.approx(
            float(alpha), rel=1e-4
        )
    law = discreet.DiscreteLaplace(2)
    ratios = [law.pmf(y - 10) / law.pmf(y - 11) for y in range(22)]
    assert wanted("factor", "factor", epsilon="0.5") == pytest.approx(max(ratios))
    assert wanted("A", "share") == pytest.approx(max(ratios) ** 2 / (1 + max(ratios) ** 2))
    losses = [(abs(y - 1) - abs(y)) / Fraction(1, 2) for y in range(-50, 50)]  # Δ = ε = 1, λ = 1/2
    assert wanted("B", "multiple") == max(losses)
    for several in (1, 3, 4):
        assert (several + 1) * wanted("C", "thrice", several=several) == 1


SHEETS: dict[str, list[dict[str, Any]]] = {
    "norm": [{"vector": vector} for vector in ((1, -2, 2), (0, 5, -4), (3, 3, -3, 1))],
    "1.2": [{"n": n, "R": R} for n, R in product((50, 100, 120), (60, 120, 200))],
    "scale": [
        {"sensitivity": delta, "epsilon": eps}
        for delta, eps in product((2, 5), ("0.05", "0.1", "0.5", "1"))
    ],
    "1.5": [
        {"epsilon": eps, "counties": d}
        for eps, d in product(("0.05", "0.1", "0.5", "1"), (50, 58, 254, 3143))
    ],
    "1.6": [
        {"alpha": alpha, "epsilon": eps}
        for alpha, eps in product(("0.01", "0.02"), ("0.05", "0.1", "0.5"))
    ],
    "factor": [{"epsilon": eps} for eps in ("0.2", "0.5", "1", "2")],
    "A": [{"epsilon": eps} for eps in ("0.2", "0.5", "1", "2")],
    "B": [{"divisor": times} for times in (2, 3, 4, 10)],
    "C": [
        {"months": months, "several": several} for months, several in ((12, 3), (12, 4), (52, 5))
    ],
}


@pytest.mark.parametrize("exercise", SHEETS)
def test_with_other_parameters_no_slip_is_accepted_and_what_is_right_is(exercise):
    for given in SHEETS[exercise]:
        for part in parts_of(exercise, given):
            if isinstance(part, Number):
                assert part.judge(part.wanted) == ""
                assert part.judge(f"{part.wanted:.3g}") == ""
                slips = [slip for slip, _ in part.slips if not math.isclose(slip, part.wanted)]
                assert [slip for slip in slips if not part.judge(slip)] == []
                assert part.slips


def test_an_open_answer_is_neither_right_nor_wrong():
    verdict = check("1.5", suffolk=20)
    assert repr(verdict) == "1.5, suffolk: right\n1.5, largest: still to fill in"
    assert not verdict.right
    assert repr(check("norm", ...)) == "norm: still to fill in"
    assert check("norm", 4).right


def test_an_exercise_may_be_named_by_a_small_letter_or_a_number():
    assert check("d", [1, 2, 4]).right
    assert repr(check(1.2, "R/n")) == "1.2: right"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check("1.3", 4), "exercise must be one of the course, got '1.3'"),
        (lambda: check("1.5", 20), "has 2 parts, got one answer; write suffolk=…, largest=…"),
        (lambda: check("1.5", essex=20), "has the parts suffolk, largest, got 'essex'"),
        (
            lambda: check("1.5", suffolk=20, given={"rate": 1}),
            "has the parameters epsilon, counties, got 'rate'",
        ),
        (lambda: check("D", [1], given={"rate": 1}), "has no parameters, got 'rate'"),
    ],
)
def test_what_is_no_exercise_and_no_part_is_refused(call, words):
    with pytest.raises(InvalidParameter, match=words.replace("(", r"\(")):
        call()
