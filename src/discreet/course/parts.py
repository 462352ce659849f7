"""The parts of an exercise: what a right answer is, and which slip a wrong one may be.

    Number    a number; three significant digits are enough
    Formula   a function of named arguments, compared at points that tell it from its slips
    Bound     a bound on P(M > y) from which part 2c of Lemma 1.4 follows
    Truth     yes or no
    Steps     some of the numbers of a list

`judge` returns the words for an answer: empty if it is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from discreet.course.answers import Unreadable, evaluate, number

DIGITS = 3
"""The significant digits to which an answer must agree: an error of at most half a unit of the
last.
"""

_FACTORS = (
    ({2.0, 0.5}, "it is off by a factor of 2"),
    (
        {math.sqrt(2), math.sqrt(0.5)},
        "it is off by a factor of √2: mean absolute value or standard deviation?",
    ),
    ({4.0, 0.25}, "it is off by a factor of 4"),
    ({100.0, 0.01}, "it is off by a factor of 100: a share or a percentage?"),
    ({-1.0}, "its sign is wrong"),
)
"""Slips that any number can have, by the ratio to what is right."""

_SAME = 1e-6
"""The relative difference below which two computed values are the same; a float32 has 6e-8."""


class Part(Protocol):
    """One thing that an exercise asks for."""

    @property
    def name(self) -> str:
        """The name of its keyword in `check`."""

    def judge(self, given: Any) -> str:
        """What is wrong with the answer; empty if it is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check says of one part."""

    part: str
    words: str
    """What is wrong, or "still to fill in"; empty if it is right."""

    @property
    def right(self) -> bool:
        """Whether the part is right."""
        return not self.words


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """What a check says of an exercise; its `repr` has a line for each part."""

    exercise: str
    findings: tuple[Finding, ...]

    @property
    def right(self) -> bool:
        """Whether all parts are right."""
        return all(finding.right for finding in self.findings)

    def __repr__(self) -> str:
        several = len(self.findings) > 1
        return "\n".join(
            f"{self.exercise}{f', {finding.part}' if several else ''}: {finding.words or 'right'}"
            for finding in self.findings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number."""

    name: str
    wanted: float
    slips: tuple[tuple[float, str], ...] = ()
    rounded: bool = False
    """Whether it follows from a rounded constant, or stands for the next whole number."""
    either_sign: bool = False
    """Whether it is a difference that may be taken either way."""

    def judge(self, given: Any) -> str:
        try:
            value = number(given)
        except Unreadable as error:
            return f"not yet; {error}"
        size = abs(value) if self.either_sign else value
        if agrees(size, self.wanted) or (self.rounded and _follows(size, self.wanted)):
            return ""
        return f"not yet; you have {value:.6g}{self._slip(value)}"

    def _slip(self, value: float) -> str:
        named = [words for slip, words in self.slips if agrees(value, slip)]
        if named:
            return f": {named[0]}"
        if abs(value / self.wanted - 1) < 0.05:
            return ": close, but give three significant digits"
        factors = [
            words
            for ratios, words in _FACTORS
            if any(agrees(value, self.wanted * ratio) for ratio in ratios)
        ]
        return f": {factors[0]}" if factors else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A function of named arguments, as a function, or as a text."""

    name: str
    arguments: tuple[str, ...]
    wanted: Callable[..., float]
    points: tuple[tuple[int | Fraction, ...], ...]
    slips: tuple[tuple[Callable[..., float], str], ...] = ()
    rounded: bool = False
    """Whether the formula has a constant that may be rounded, or stands for the next whole number.
    """

    def at(self, *values: Any) -> Formula | Number:
        """The same question with numbers for all arguments; the formula itself if they are None."""
        if None in values:
            return self
        point = [Fraction(value) for value in values]
        slips = tuple((float(slip(*map(float, point))), words) for slip, words in self.slips)
        wanted = float(self.wanted(*map(float, point)))
        return Number(name=self.name, wanted=wanted, slips=slips, rounded=self.rounded)

    def judge(self, given: Any) -> str:
        if not callable(given) and not isinstance(given, str):
            example = ", ".join(self.arguments)
            return f"not yet; write it as a function, lambda {example}: …, or as a text"
        try:
            values = [
                evaluate(given, dict(zip(self.arguments, point, strict=True)))
                for point in self.points
            ]
        except Unreadable as error:
            return f"not yet; {error}"
        if self._is(self.wanted, values):
            return ""
        slips = [words for slip, words in self.slips if self._is(slip, values)]
        return f"not yet; {slips[0] if slips else self._difference(values)}"

    def _is(self, function: Callable[..., float], values: Iterable[float]) -> bool:
        pairs = zip(values, self.points, strict=True)
        return all(self._near(value, function(*map(float, point))) for value, point in pairs)

    def _near(self, value: float, wanted: float) -> bool:
        return (
            _follows(value, wanted) if self.rounded else math.isclose(value, wanted, rel_tol=_SAME)
        )

    def _difference(self, values: list[float]) -> str:
        for ratios, words in _FACTORS:
            for ratio in ratios:
                if self._is(lambda *point, ratio=ratio: ratio * self.wanted(*point), values):
                    return words
        point, value = next(
            (point, value)
            for point, value in zip(self.points, values, strict=True)
            if not self._near(value, self.wanted(*map(float, point)))
        )
        given = " and ".join(
            f"{name} = {float(at):g}" for name, at in zip(self.arguments, point, strict=True)
        )
        return f"{value:.6g} is wrong at {given}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound on P(M > y) for the largest of d absolute values, as a function of y, d and the scale
    λ.
    """

    name: str

    def judge(self, given: Any) -> str:
        if not callable(given) and not isinstance(given, str):
            return "not yet; write it as a function, lambda y, d, scale: …"
        try:
            return self._slip(given) or self._not_a_bound(given) or self._too_large(given)
        except Unreadable as error:
            return f"not yet; {error}"

    def _slip(self, given: Any) -> str:
        """The words of a known slip."""
        slips: tuple[tuple[Callable[[float, int], float], str], ...] = (
            (
                lambda tail, _: tail,
                "not yet; that is P(|Z| > y) of one draw: the largest of d exceeds y more often",
            ),
            (
                lambda tail, d: tail**d,
                "not yet; that is the probability that all d exceed y, not that one does",
            ),
            (
                lambda tail, d: (1 - tail) ** d,
                "not yet; that is the probability that none exceeds y",
            ),
        )
        points = [
            (Fraction(1), 2, Fraction(2)),
            (Fraction(5), 3, Fraction(2)),
            (Fraction(4), 7, Fraction(3)),
        ]
        for slip, words in slips:
            if all(
                math.isclose(
                    _bound_at(given, y, d, scale), slip(math.exp(-y / scale), d), rel_tol=_SAME
                )
                for y, d, scale in points
            ):
                return words
        return ""

    def _not_a_bound(self, given: Any) -> str:
        """Part 2b: it must be at least 1 − (1 − e^(−y/λ))^d, up to the rounding of that formula in
        floats.
        """
        for scale, d in _CASES:
            for quarter in range(4 * (math.ceil(math.log(d)) + 12)):
                y = scale * Fraction(quarter + 1, 4)
                exact = -math.expm1(d * math.log1p(-math.exp(-y / scale)))
                found = _bound_at(given, y, d, scale)
                if found < exact - 1e-12 * d:
                    at = f"y = {float(y):g}, d = {d:,} and λ = {float(scale):g}"
                    return (
                        f"not yet; it is no bound (2b): at {at} it gives {found:.3g}, and P(M > y)"
                        f" is {exact:.3g}"
                    )
        return ""

    def _too_large(self, given: Any) -> str:
        """Part 2c: its integral must be at most λ(ln d + 1), by the midpoints of short steps."""
        for scale, d in _CASES:
            wanted = scale * (math.log(d) + 1)
            width = scale * (math.ceil(math.log(d)) + 40) / _STEPS
            total = (
                sum(
                    _bound_at(given, (step + Fraction(1, 2)) * width, d, scale)
                    for step in range(_STEPS)
                )
                * width
            )
            if total > wanted * 1.001:
                hint = (
                    ": a probability is never above 1"
                    if _bound_at(given, width, d, scale) > 1
                    else ""
                )
                return (
                    f"not yet; it is a bound, but its integral is at least {total:.4g} for d ="
                    f" {d:,} and λ = {float(scale):g}, more than {wanted:.4g} (2c){hint}"
                )
        return ""


_CASES = ((Fraction(2), 50), (Fraction(1, 2), 1), (Fraction(20), 3143), (Fraction(3), 2))
_STEPS = 2_000


def _bound_at(given: Any, y: Fraction, d: int, scale: Fraction) -> float:
    return evaluate(given, {"y": y, "d": d, "scale": scale})


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Yes or no."""

    name: str
    wanted: bool
    words: str

    def judge(self, given: Any) -> str:
        match str(given).strip().lower():
            case "true" | "yes" | "1":
                value = True
            case "false" | "no" | "0":
                value = False
            case _:
                return "not yet; answer True or False"
        return "" if value == self.wanted else f"not yet; {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Some of the numbers of a list."""

    name: str
    wanted: frozenset[int]
    words: Mapping[int, str]
    """What to think of at each number that is wrongly named or left out."""

    def judge(self, given: Any) -> str:
        try:
            items = given.replace(",", " ").split() if isinstance(given, str) else given
            found = {int(item) for item in items}
        except (TypeError, ValueError):
            return "not yet; give numbers, as in [1, 5]"
        unknown = sorted(found - self.words.keys())
        if unknown:
            return f"not yet; there is no number {unknown[0]}"
        wrong = sorted(found ^ self.wanted)
        return f"not yet; {wrong[0]}: {self.words[wrong[0]]}" if wrong else ""


def agrees(value: float, wanted: float) -> bool:
    """Whether a value is within half a unit of the third significant digit of what is wanted.

    >>> agrees(1415, 1414.21), agrees(1.41, 2**0.5), agrees(1.4, 2**0.5)
    (True, True, False)
    """
    if wanted == 0:
        return value == 0
    unit = 10.0 ** (math.floor(math.log10(abs(wanted))) - DIGITS + 1)
    return abs(value - wanted) <= unit / 2 * (1 + _SAME)


def _follows(value: float, wanted: float) -> bool:
    """Whether a value follows from a constant of three digits, which is off by at most 1/200, or is
    rounded up.
    """
    return math.isclose(value, wanted, rel_tol=0.005) or value == math.ceil(wanted)
