"""The exercises of the course, each by the parts of its answer, with the slips that readers make.

An exercise is a function from its public parameters to its parts; the defaults are those of the
texts. To add one, add a function and its name to `EXERCISES`, and rows to the table in
`tests/unit/course/test_exercises.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from discreet.calibrate import lemma
from discreet.course.parts import Bound, Finding, Formula, Number, Part, Steps, Truth, Verdict
from discreet.errors import InvalidParameter
from discreet.parameters import did_you_mean, quote

_TENTHS = (  # (α, ε)
    (Fraction(1, 100), Fraction(1, 10)),
    (Fraction(1, 200), Fraction(1, 10)),
    (Fraction(1, 100), Fraction(1, 20)),
)


def check(
    exercise: str,
    answer: Any = None,
    /,
    *,
    given: Mapping[str, Any] | None = None,
    **answers: Any,
) -> Verdict:
    """Check the answer to an exercise of the course.

    Parameters
    ----------
    exercise : text
        Its number or letter in the course, such as "1.2".
    answer : number, function or text
        The answer to an exercise with one part. `...` stands for an answer that is still open.
    given : mapping, optional
        Other numbers than those of the exercise, such as {"epsilon": "0.2"}.
    **answers
        The answers to the parts of an exercise with several.

    Returns
    -------
    Verdict
        For each part, whether it is right, or which slip it may be.

    Examples
    --------
    >>> check("1.2", lambda n, R: R)
    1.2: not yet; that is how far one person moves the sum

    """
    # "a", and 1.5 as a number
    exercise = exercise if exercise in EXERCISES else str(exercise).upper()
    parts = {part.name: part for part in parts_of(exercise, given)}
    if answer is not None:
        if len(parts) > 1:
            names = ", ".join(f"{name}=…" for name in parts)
            raise InvalidParameter(
                f"exercise {exercise} has {len(parts)} parts, got one answer; write {names}"
            )
        answers = {**dict.fromkeys(parts, answer), **answers}
    for name in answers:
        if name not in parts:
            raise InvalidParameter(
                f"exercise {exercise} has the parts {', '.join(parts)}, got {quote(name)}"
            )
    findings = [
        Finding(part=name, words=_words(part, answers.get(name, ...)))
        for name, part in parts.items()
    ]
    return Verdict(exercise=exercise, findings=tuple(findings))


def parts_of(exercise: str, given: Mapping[str, Any] | None = None) -> tuple[Part, ...]:
    """The parts of an exercise, with its own parameters or others."""
    if exercise not in EXERCISES:
        hint = did_you_mean(str(exercise), EXERCISES) or f"they are {', '.join(EXERCISES)}"
        raise InvalidParameter(f"exercise must be one of the course, got {quote(exercise)}; {hint}")
    make = EXERCISES[exercise]
    known = inspect.signature(make).parameters
    for name in given or {}:
        if name not in known:
            has = f"the parameters {', '.join(known)}" if known else "no parameters"
            raise InvalidParameter(f"exercise {exercise} has {has}, got {quote(name)}")
    return make(**(given or {}))


def _words(part: Part, answer: Any) -> str:
    return "still to fill in" if answer is ... else part.judge(answer)


def _norm(vector: tuple[int, ...] = (1, 0, -3)) -> tuple[Part, ...]:
    slips = (
        (math.hypot(*vector), "that is the root of the sum of squares, the L2 norm"),
        (float(sum(vector)), "that is the sum with its signs; add up absolute values"),
        (float(max(map(abs, vector))), "that is the largest absolute value"),
    )
    return (Number(name="norm", wanted=float(sum(map(abs, vector))), slips=slips),)


def _average(n: Any = None, R: Any = None) -> tuple[Part, ...]:
    formula = Formula(
        name="average",
        arguments=("n", "R"),
        wanted=lambda n, R: R / n,
        points=((2, 1), (3, 1), (4, 1), (2, 120), (3, 120), (100, 120), (1, 120)),
        slips=(
            (lambda _, R: R, "that is how far one person moves the sum"),
            (lambda n, _: 1 / n, "that holds for numbers in [0, 1]; here the range is R"),
            (
                lambda n, R: R / math.sqrt(n),
                "with √n it falls too slowly; how far does one person move the sum?",
            ),
            (lambda n, R: n * R, "a larger n makes it smaller, not larger"),
            (lambda n, R: n / R, "that is its inverse"),
            (
                lambda n, R: R / (n + 1),
                "the number of people does not change: one record is replaced",
            ),
        ),
    )
    return (formula.at(n, R),)


def _histogram() -> tuple[Part, ...]:
    slips = (
        (1.0, "one bin changes by 1; which other bin changes as well?"),
        (math.sqrt(2), "that is the distance in the L2 norm; the L1 norm adds up absolute values"),
        (0.0, "the total stays the same, but the bins change"),
    )
    return (Number(name="histogram", wanted=2.0, slips=slips),)


def _scale(sensitivity: Any = 2, epsilon: Any = "0.1") -> tuple[Part, ...]:
    delta, rate = float(Fraction(sensitivity)), float(Fraction(epsilon))
    slips = (
        (1 / rate, "that is the scale for Δ = 1"),
        (rate / delta, "that is its inverse"),
        (delta * rate, "a smaller ε needs more noise: divide by ε"),
        (math.sqrt(2) * delta / rate, "that is the standard deviation, √2·λ"),
    )
    return (Number(name="scale", wanted=delta / rate, slips=slips),)


def _counties(epsilon: Any = "0.1", counties: int = 3143) -> tuple[Part, ...]:
    scale = 2 / float(Fraction(epsilon))
    one, all_of_them = scale, scale * (math.log(counties) + 1)
    suffolk = (
        (one / 2, "that is for Δ = 1; a person who moves changes two counties"),
        (
            one * math.sqrt(2),
            "that is the root mean square error (1b), not the mean absolute error (1a)",
        ),
        (one * math.log(20), "that is the error with 95 % confidence, not on average"),
        (one * counties, "that is the total error of all counties (2a)"),
        (one / counties, "the error of one county does not depend on the number of counties"),
        (2.0, "that is Δ; divide it by ε"),
    )
    largest = (
        (
            lemma.expected_max(one, counties, law="continuous"),
            "that is the exact E(M); the lemma gives a bound on it",
        ),
        (
            lemma.expected_max(one, counties, law="discrete"),
            "that is the exact E(M); the lemma gives a bound on it",
        ),
        (one * math.log(counties), "the 1 is missing in ln d + 1"),
        (all_of_them / 2, "that is for Δ = 1; a person who moves changes two counties"),
        (all_of_them * math.sqrt(2), "part 2c has no √2"),
        (one * (math.log2(counties) + 1), "the logarithm is natural, not to base 2"),
        (one * (math.log10(counties) + 1), "the logarithm is natural, not to base 10"),
        (one * counties, "that is the total error (2a), not the largest"),
        (one, "that is the error of one county (1a)"),
        (
            one * math.log(20 * counties),
            "that is the largest error with 95 % confidence, not on average",
        ),
    )
    return (
        Number(name="suffolk", wanted=one, slips=suffolk),
        Number(name="largest", wanted=all_of_them, slips=largest),
    )


def _people(alpha: Any = None, epsilon: Any = None) -> tuple[Part, ...]:
    laplace = Formula(
        name="laplace",
        arguments=("alpha", "epsilon"),
        wanted=lambda alpha, epsilon: math.sqrt(2) / (alpha * epsilon),
        points=_TENTHS,
        rounded=True,
        slips=(
            (
                lambda alpha, epsilon: 1 / (alpha * epsilon),
                "that is for the mean absolute error λ, not the root mean square",
            ),
            (
                lambda alpha, epsilon: 2 / (alpha * epsilon),
                "the factor is that of part 1b, √2; 2 is the variance's",
            ),
            (
                lambda alpha, epsilon: 2 / (alpha * epsilon) ** 2,
                "that is the square; the error itself is √2/(nε)",
            ),
            (
                lambda alpha, epsilon: 1 / (alpha * epsilon) ** 2,
                "that is the answer for randomized response",
            ),
            (
                lambda alpha, epsilon: math.sqrt(2) / (alpha**2 * epsilon),
                "the error falls with n, not with √n",
            ),
            (
                lambda alpha, epsilon: math.sqrt(2) * alpha / epsilon,
                "a smaller α needs more people: divide by α",
            ),
            (lambda _, epsilon: math.sqrt(2) / epsilon, "where is α?"),
            (lambda alpha, _: math.sqrt(2) / alpha, "where is ε?"),
        ),
    )
    response = Formula(
        name="response",
        arguments=("alpha", "epsilon"),
        wanted=lambda alpha, epsilon: (2 * alpha * math.sinh(epsilon / 2)) ** -2,
        points=_TENTHS,
        rounded=True,
        slips=(
            (lambda alpha, epsilon: 1 / (alpha * epsilon), "the error falls with √n: square it"),
            (
                lambda alpha, epsilon: math.sqrt(2) / (alpha * epsilon),
                "that is the answer for the Laplace mechanism",
            ),
            (
                lambda alpha, epsilon: 2 / (alpha * epsilon) ** 2,
                "that is the square of the other answer; there is no √2 here",
            ),
            (
                lambda alpha, epsilon: 1 / (alpha**2 * epsilon),
                "halving ε takes four times as many people",
            ),
            (
                lambda alpha, epsilon: 1 / (alpha * epsilon**2),
                "halving α takes four times as many people",
            ),
        ),
    )
    return (laplace.at(alpha, epsilon), response.at(alpha, epsilon))


def _lemma() -> tuple[Part, ...]:
    tail = Formula(
        name="tail",
        arguments=("y", "scale"),
        wanted=lambda y, scale: math.exp(-y / scale),
        points=tuple(
            (scale * Fraction(quarter, 4), scale)
            for scale in (Fraction(2), Fraction(1, 2), Fraction(20))
            for quarter in range(1, 48)
        ),
        slips=(
            (lambda y, scale: math.exp(-y / scale) / 2, "that is P(Z > y), one of the two sides"),
            (
                lambda y, scale: math.exp(-y / scale) / scale,
                "that is the density of |Z|, not P(|Z| > y)",
            ),
            (
                lambda y, scale: math.exp(-y / scale) / (2 * scale),
                "that is the density of Z, not P(|Z| > y)",
            ),
            (lambda y, scale: -math.expm1(-y / scale), "that is P(|Z| ≤ y)"),
            (lambda y, _: math.exp(-y), "that is for λ = 1"),
            (lambda y, scale: math.exp(-y * scale), "y is measured in λ: divide by it"),
        ),
    )
    return (tail, Bound(name="max_tail"))


def _factor(epsilon: Any = "0.5") -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    slips = (
        (loss, "that is ε, the logarithm of the factor"),
        (1 + loss, "that is 1 + ε, which is close to it for a small ε only"),
        (math.exp(-loss), "that is the smallest factor"),
        (math.exp(2 * loss), "that is for two people, or for twice the ε"),
        (_share(loss), "that is how often the attacker is right"),
    )
    return (Number(name="factor", wanted=math.exp(loss), slips=slips),)


def _share(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def _two_answers(epsilon: Any = 1) -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    share = (
        (0.5, "that is a toss of a coin; an output moves the odds by up to e^ε"),
        (1.0, "with noise, nothing is certain"),
        (math.exp(loss), "that is the odds; a share of right guesses is odds/(1 + odds)"),
        (1 - _share(loss), "that is the share of wrong guesses"),
        (_share(2 * loss), "both answers together have ε, not each of them"),
        (_share(loss / 2), "both answers together have ε: the attacker uses both"),
    )
    return (
        Number(
            name="difference",
            wanted=1.0,
            slips=((0.0, "then the patient did not have the disease"),),
            either_sign=True,
        ),
        Number(name="share", wanted=_share(loss), slips=share),
    )


def _less_noise(divisor: Any = 2) -> tuple[Part, ...]:
    times = float(Fraction(divisor))
    slips = (
        (1 / times, "less noise is a larger loss, not a smaller one"),
        (1.0, "that is the loss with the right scale"),
        (
            math.exp(times),
            "that is a factor of probabilities; the loss is its logarithm, as a multiple of ε",
        ),
        (times**2, "put the scale into step 3: the loss is Δ/λ"),
    )
    words = "subtract one noisy count from another: what is left of the noise?"
    return (
        Number(name="multiple", wanted=times, slips=slips),
        Truth(name="private", wanted=False, words=words),
    )


def _year(epsilon: Any = 1, months: int = 12, several: int = 3) -> tuple[Part, ...]:
    budget = float(Fraction(epsilon))
    slips = (
        (
            budget / (months + 1),
            "that is safe, but wasteful: which releases can one person's record change?",
        ),
        (budget / months, "count the releases that one person's record can change"),
        (budget, "the histogram by age counts everybody once more"),
    )
    once = (*slips, (budget / 3, "add-remove: a new case adds one record to one month"))
    thrice = (
        *slips,
        (budget / several, "the histogram by age counts everybody once more"),
        (budget / 2, "that is for a new case in one month"),
    )
    return (
        Number(name="once", wanted=budget / 2, slips=once),
        Number(name="thrice", wanted=budget / (several + 1), slips=thrice),
    )


def _free_steps() -> tuple[Part, ...]:
    words = {
        1: "sorting uses the published numbers alone",
        2: "replacing uses the published numbers alone",
        3: "what tells that a row looks wrong, and what is drawn again?",
        4: "a share of a total uses the published numbers alone",
        5: "who knows which rows are truly empty?",
    }
    return (Steps(name="free", wanted=frozenset({1, 2, 4}), words=words),)


def _newspapers(epsilon: Any = "0.5", papers: int = 3) -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    slips = (
        (
            papers * loss,
            "the papers compute from the published number; they do not look at the data again",
        ),
        (
            (papers + 1) * loss,
            "the papers compute from the published number; they do not look at the data again",
        ),
        (loss / papers, "the published number has its ε, whoever reads it"),
        (0.0, "the published number has its ε, whoever reads it"),
        (math.exp(loss), "that is the factor e^ε; ε is its logarithm"),
    )
    words = "which numbers can never come out for one data set, but can for its neighbour?"
    return (
        Number(name="papers", wanted=loss, slips=slips),
        Truth(name="redrawn", wanted=False, words=words),
    )


def _wards(epsilon: Any = "0.3", wards: int = 12) -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    once = (
        (wards * loss, "one person is in one ward: which counts does their record change?"),
        (2 * loss, "that is for a person who moves from one ward to another"),
        (loss / wards, "no ward's count has less than its own ε"),
    )
    moved = (
        (wards * loss, "a person who moves changes two wards, not all"),
        (loss, "a person who moves changes two wards"),
        (loss / 2, "two counts change: add their losses"),
    )
    separately = (
        (
            loss,
            (
                "the ledger adds up questions; it does not prove that their conditions exclude each"
                " other"
            ),
        ),
        (
            2 * loss,
            (
                "the ledger adds up questions; it does not prove that their conditions exclude each"
                " other"
            ),
        ),
    )
    return (
        Number(name="once", wanted=loss, slips=once),
        Number(name="moved", wanted=2 * loss, slips=moved),
        Number(name="separately", wanted=wards * loss, slips=separately),
    )


def _household(epsilon: Any = "0.5", people: int = 4) -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    all_of_them = people * loss
    factor = (
        (math.exp(loss), "that is the factor for one person"),
        (people * math.exp(loss), "each person multiplies the factor; multiply them, do not add"),
        (all_of_them, "that is the loss; the factor is e to its power"),
        (_share(all_of_them), "that is how often the attacker is right"),
    )
    share = (
        (_share(loss), "that is for a guess about one person"),
        (math.exp(all_of_them), "that is the odds; a share of right guesses is odds/(1 + odds)"),
        (1 - _share(all_of_them), "that is the share of wrong guesses"),
    )
    scale = (
        (1 / loss, "that protects one person"),
        (1 / all_of_them, "more people need more noise, not less"),
        (math.sqrt(people) / loss, "their changes add up: Δ is the number of people, not its root"),
        (2 * people / loss, "one count, not a histogram: Δ is the number of people"),
    )
    return (
        Number(name="factor", wanted=math.exp(all_of_them), slips=factor),
        Number(name="share", wanted=_share(all_of_them), slips=share),
        Number(name="scale", wanted=people / loss, slips=scale),
    )


def _wrong_sensitivity(epsilon: Any = 1, bins: int = 20) -> tuple[Part, ...]:
    loss = float(Fraction(epsilon))
    real = (
        (
            loss,
            (
                "that is what was wanted; how many counts does a person who changes their answer"
                " change?"
            ),
        ),
        (bins * loss, "only two of the counts change"),
        (loss / 2, "too little noise is a larger loss, not a smaller one"),
    )
    exceeds = (
        (_share(loss), "that is for one of the two counts; both have to be so"),
        (_share(-loss) ** 2, "that is the probability of the loss −2ε"),
        (1 - _share(loss) ** 2, "that is the probability that it does not exceed ε"),
        (
            _share(2 * loss),
            "that is how often an attacker is right at 2ε; multiply the two probabilities",
        ),
        (0.25, "0 counts as well: P(Z ≥ 0) is more than one half"),
        (0.0, "what is the loss if neither noise takes away from the count that grew or fell?"),
    )
    scale = (
        (1 / loss, "that is the scale that was used"),
        (bins / loss, "only two of the counts change: Δ = 2"),
        (
            math.sqrt(2) / loss,
            "that is the distance in the L2 norm; the L1 norm adds up absolute values",
        ),
    )
    return (
        Number(name="real", wanted=2 * loss, slips=real),
        Number(name="exceeds", wanted=_share(loss) ** 2, slips=exceeds),
        Number(name="scale", wanted=2 / loss, slips=scale),
    )


def _floats(epsilon: Any = "0.5", bits: int = 53) -> tuple[Part, ...]:
    scale = 1 / float(Fraction(epsilon))
    slips = (
        (scale * bits, "the logarithm is natural: 2^(−bits) = e^(−bits·ln 2)"),
        (scale * bits * math.log10(2), "the logarithm is natural, not to base 10"),
        (scale * math.log(2), "that is for U = 1/2; which is the smallest U?"),
        (bits * math.log(2) / scale, "divide by ε: the scale is 1/ε"),
        (bits * math.log(2), "that is for the scale 1"),
        (scale, "that is the mean absolute error"),
    )
    words = "the largest output of one data set lies beyond every output of its neighbour"
    return (
        Number(name="largest", wanted=scale * bits * math.log(2), slips=slips),
        Truth(name="private", wanted=False, words=words),
    )


EXERCISES: dict[str, Callable[..., tuple[Part, ...]]] = {
    "norm": _norm,
    "1.2": _average,
    "histogram": _histogram,
    "scale": _scale,
    "1.5": _counties,
    "1.6": _people,
    "1.7": _lemma,
    "factor": _factor,
    "A": _two_answers,
    "B": _less_noise,
    "C": _year,
    "D": _free_steps,
    "E": _newspapers,
    "F": _wards,
    "G": _household,
    "H": _wrong_sensitivity,
    "I": _floats,
}
"""The exercises by their number or letter in the course, or by their word in the notebook."""
