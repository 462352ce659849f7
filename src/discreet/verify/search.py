"""A search for neighbours that refute the claimed sensitivity of a function.

    search_sensitivity(statistics.pstdev, (0, 1), 100, claimed="1/100")  # 0.0995: about 1/√n

Data sets at the ends of the domain come first (all alike, two values in every proportion, near the
ends), then random ones. From the worst pairs the search climbs: it changes one value at a time and
keeps the change if the distance does not shrink. Distances are L1 norms of f(x) − f(x′). An error
or a NaN on one side only is an infinite distance. The search proves no sensitivity: it finds a
lower bound.

A counterexample is conclusive. The worst pairs are evaluated again with the exact values as
Fractions; if f returns integers or Fractions, the distance is exact. If f can only return floats,
each of them may be off by

    n·max(n·B, B², |f|)·u        B: the largest absolute value of the domain; u: 2⁻⁵³, or the
                                 rounding of f's floats

which covers sums, means and variances in any order; `tolerance` replaces it. A claim that lies
between is not decided. A program that adds floats may move further than the function that it stands
for [CSVW22]: that distance is `computed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from numbers import Rational, Real
from operator import itemgetter
from typing import Any, NamedTuple

from discreet.draw.coin import below
from discreet.draw.entropy import keystream
from discreet.errors import InvalidParameter
from discreet.parameters import (
    exact_bounds,
    exact_count,
    exact_neighbors,
    exact_number,
    exact_sensitivity,
    quote,
)

_INFINITE = Fraction(10**400)  # stands for a distance without bound in comparisons
_DOUBLE = Fraction(1, 2**53)
_MOST_POOL = 12
_WORST = 4
_PREFIXES = 64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Search:
    """The tried pair of neighbours on which f differs most."""

    sensitivity: Fraction | float
    """Their distance under f, a lower bound on its sensitivity; `inf` if f fails on one only."""
    claimed: Fraction | None
    computed: Fraction | float
    """The distance of what f returned for `x` and `x_neighbor`; without Fractions, the same."""
    tolerance: Fraction
    """How far rounding of f may have moved the distance; 0 if f was evaluated exactly."""
    x: list[Any]
    x_neighbor: list[Any]
    tried: int
    """The number of pairs tried."""

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted, whatever the rounding of f."""
        return self.claimed is not None and self.sensitivity - self.tolerance > self.claimed

    @property
    def undecided(self) -> bool:
        """Whether the rounding of f may be all that exceeds the claim."""
        return (
            self.claimed is not None
            and not self.broken
            and self.sensitivity + self.tolerance > self.claimed
        )

    def __repr__(self) -> str:
        summary = (
            f"f moves by {float(self.sensitivity):.6g} between neighbours ({self.tried:,} pairs"
            " tried)"
        )
        if self.claimed is None:
            return summary
        claim = f"{float(self.claimed):.6g}"
        if self.undecided:
            rounding = f"{float(self.tolerance):.1g}"
            return (
                f"{summary}, claimed {claim}: not decided at this precision, rounding is up to"
                f" {rounding}"
            )
        if not self.broken:
            return f"{summary}, claimed {claim}: not broken"
        times = (
            f"{float(self.sensitivity / self.claimed):.4g} times the claim"
            if self.sensitivity != math.inf
            else ""
        )
        return f"{summary}: the claim, {claim}, is BROKEN {times}".rstrip()


class _Pair(NamedTuple):
    """A data set, and where its neighbour has another value or none; values by their indices."""

    x: list[int]
    position: int
    values: tuple[int, ...]

    def other(self) -> list[int]:
        return [*self.x[: self.position], *self.values, *self.x[self.position + 1 :]]


class _Distance(NamedTuple):
    """A distance of f, how far rounding may have moved it, and the distance as f computed it."""

    value: Fraction
    error: Fraction
    computed: Fraction


class _Pool(NamedTuple):
    """The values of the data sets: the ends first, then values near them and between them."""

    values: list[Any]
    exact: list[Fraction] | None
    """The same as fractions within the domain; None if they are not numbers."""

    @property
    def largest(self) -> Fraction:
        return max(map(abs, self.exact)) if self.exact else Fraction(1)


class _Seeker:
    """A search for distant pairs, and the worst pairs tried so far."""

    def __init__(
        self, f: Callable[[list[Any]], Any], pool: _Pool, size: int, replaced: bool, tries: int
    ) -> None:
        self.f, self.pool, self.size, self.replaced, self.tries = f, pool, size, replaced, tries
        self.indices = range(len(pool.values))
        self.tried = 0
        self.worst: list[tuple[Fraction, _Pair]] = []

    def corners(self) -> Iterator[list[int]]:
        """Data sets of one or two values, in every proportion, and some random ones."""
        step = max(1, self.size // _PREFIXES)
        middle, last = self.size // 2, self.size - 1
        counts = list(
            dict.fromkeys(
                [0, min(middle, last), min(middle + 1, last), last, *range(0, self.size, step)]
            )
        )
        for (first, second), count in product(permutations(self.indices[:4], 2), counts):
            if self.tried >= self.tries // 2:
                break
            yield [first] * count + [second] * (self.size - count)
        while self.tried < self.tries * 6 // 10:
            yield [self._value() for _ in range(self.size)]

    def look_around(self, x: list[int]) -> None:
        """Try all neighbours of a data set that differ at its ends or in one distinct value."""
        positions = {0, len(x) - 1, *(x.index(value) for value in list(dict.fromkeys(x))[:4])}
        others = [(value,) for value in self.indices] if self.replaced else [()]
        numbers = self._numbers(x)
        for position, other in product(sorted(positions), others):
            pair = _Pair(x, position, other)
            self.worst.append((self._distance(numbers, pair), pair))
            self.worst = sorted(self.worst, key=itemgetter(0), reverse=True)[:_WORST]

    def climb(self) -> None:
        """Change one value on both sides of the worst pairs, unless the distance shrinks."""
        while self.tried < self.tries:
            index = below(len(self.worst), keystream())
            distance, pair = self.worst[index]
            if distance >= _INFINITE:
                return
            position = below(len(pair.x), keystream())
            moved = pair._replace(x=[*pair.x[:position], self._value(), *pair.x[position + 1 :]])
            changed = self._distance(self._numbers(moved.x), moved)
            if changed >= distance:
                self.worst[index] = changed, moved

    def judged(self, tolerance: Fraction | None) -> tuple[_Distance, _Pair]:
        """The worst pair, by the distance that is certain, with the rounding of f."""
        judged = [(self._judge(pair, tolerance), pair) for _, pair in self.worst]
        return max(judged, key=lambda item: item[0].value - item[0].error)

    def values(self, x: list[int]) -> list[Any]:
        """The data set itself."""
        return [self.pool.values[index] for index in x]

    def _judge(self, pair: _Pair, tolerance: Fraction | None) -> _Distance:
        """The distance of one pair: exact if f allows it, else with its floats' rounding."""
        results = [self._result(self.values(x)) for x in (pair.x, pair.other())]
        computed, exactly = _apart(*map(_fractions, results)), Fraction(0)
        if computed >= _INFINITE or all(map(_is_exact, results)):
            return _Distance(computed, exactly, computed)
        error = sum(map(self._rounding, results), exactly) if tolerance is None else tolerance
        if self.pool.exact is not None:
            exact = [
                self._result([self.pool.exact[index] for index in x])
                for x in (pair.x, pair.other())
            ]
            distance = _apart(*map(_fractions, exact))
            # if they are further apart than by rounding, f means something else by fractions
            if all(map(_is_exact, exact)) and abs(distance - computed) <= error:
                return _Distance(distance, exactly, computed)
        return _Distance(computed, error, computed)

    def _rounding(self, result: Any) -> Fraction:
        """How far the numbers of a result may be off, if f adds up n numbers or their squares."""
        numbers, unit = _fractions(result) or [], _unit(result)
        largest = self.pool.largest
        sizes = (max(self.size * largest, largest**2, abs(number)) for number in numbers)
        return sum((self.size * size * unit for size in sizes), Fraction())

    def _distance(self, first: list[Fraction] | None, pair: _Pair) -> Fraction:
        self.tried += 1
        return _apart(first, self._numbers(pair.other()))

    def _numbers(self, x: list[int]) -> list[Fraction] | None:
        """f(x) as fractions; None if it is not a number."""
        return _fractions(self._result(self.values(x)))

    def _result(self, values: list[Any]) -> Any:
        """f of the values; NaN if it raises an error, which is an outcome."""
        try:
            return self.f(values)
        except Exception:
            return math.nan

    def _value(self) -> int:
        return below(len(self.indices), keystream())


def _apart(first: list[Fraction] | None, second: list[Fraction] | None) -> Fraction:
    """‖first − second‖₁; infinite if only one is numbers, or if their lengths differ."""
    if first is None and second is None:
        return Fraction(0)
    if first is None or second is None or len(first) != len(second):
        return _INFINITE
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction())


def _fractions(result: Any) -> list[Fraction] | None:
    """A result of f as fractions; None if it is not a number."""
    try:
        return [Fraction(number) for number in _flat(result)]
    except Exception:  # whatever is no number
        return None


def _is_exact(result: Any) -> bool:
    """Whether a result of f is made of integers and Fractions."""
    return all(isinstance(number, Rational) for number in _flat(result))


def _unit(result: Any) -> Fraction:
    """The largest relative rounding of one operation on floats such as those of a result."""
    if hasattr(result, "dtype") and result.dtype.kind == "f":
        import numpy as np

        return max(_DOUBLE, Fraction(float(np.finfo(result.dtype).eps)) / 2)
    parts = result if isinstance(result, list | tuple) else []
    return max((_unit(part) for part in parts), default=_DOUBLE)


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [item for part in value for item in _flat(part)]
    return [value]


def _pool(domain: Any) -> _Pool:
    """The values of an interval, or those of a list."""
    listed = domain.tolist() if hasattr(domain, "tolist") else domain
    listed = list(listed) if isinstance(listed, list | tuple | range) else None
    if listed is None or len(listed) < 2:
        got = quote(domain) if listed is None else f"a list of {len(listed)}"
        raise InvalidParameter(
            f"domain must be a pair of numbers (lower, upper), or two or more values, got {got}"
        )
    if len(listed) == 2 and all(
        isinstance(end, Real | Decimal) and not isinstance(end, bool) for end in listed
    ):
        return _of_interval(listed)
    if len(listed) > _MOST_POOL:
        if len({type(item) for item in listed}) > 3:
            raise InvalidParameter(
                "domain must be a pair of numbers (lower, upper), or values of one kind"
            )
        step = len(listed) / (_MOST_POOL - 1)
        between = [listed[int(index * step)] for index in range(1, _MOST_POOL - 1)]
        listed = [listed[0], listed[-1], *between]
    values = [*listed[:1], *listed[-1:], *listed[1:-1]] if len(listed) <= _MOST_POOL else listed
    numbers = (
        _fractions(values) if all(isinstance(value, Real | Decimal) for value in values) else None
    )
    return _Pool(values, numbers)


def _of_interval(ends: list[Any]) -> _Pool:
    low, high = exact_bounds(ends)
    kind: Callable[[Fraction], Any] = Fraction
    if any(isinstance(end, float) for end in ends):
        kind = float
    elif all(isinstance(end, int) for end in ends):
        kind = math.floor
    lower, upper, *between = (
        kind(low + (high - low) * Fraction(quarter, 4)) for quarter in (0, 4, 2, 1, 3)
    )
    near = [math.nextafter(lower, upper), math.nextafter(upper, lower)] if kind is float else []
    zero = [kind(Fraction(0))] if low < 0 < high else []
    values = list(dict.fromkeys([lower, upper, *between, *near, *zero]))
    # the float of an end may lie beyond it
    return _Pool(values, [min(max(Fraction(value), low), high) for value in values])


def search_sensitivity(
    f: Callable[[list[Any]], Any],
    domain: Any,
    n: int,
    neighbors: Any = "change-one",
    *,
    claimed: Any = None,
    tolerance: Any = None,
    tries: int = 3_000,
) -> Search:
    """Search for two neighbours on which f differs most: a lower bound on its sensitivity.

    Parameters
    ----------
    f : callable
        A function of a list of values that returns a number or several.
    domain : pair or list
        Two numbers (lower, upper), whose type the values have, or a list of values, such as ["A",
        "B"].
    n : int
        The number of values. Under add-remove, one neighbour has n values and the other has n − 1.
    neighbors : "change-one" or "add-remove"
        The relation of the two data sets.
    claimed : number or text, optional
        The sensitivity that you claim.
    tolerance : number or text, optional
        How far rounding of f may move a distance. By default n·max(n·B, B², |f|)·2⁻⁵³ for each
        float that f returns, where B is the largest absolute value of the domain, and 0 if f can be
        evaluated with Fractions.
    tries : int
        The number of pairs to try.

    Returns
    -------
    Search
        The worst pair, its distance, and whether the claim is `broken`, or `undecided` because of
        rounding.

    Examples
    --------
    >>> search_sensitivity(sum, (0, 1), 10, claimed=1).broken
    False
    >>> search_sensitivity(lambda x: sum(x) / len(x), (0, 1), 10, claimed="1/20").broken
    True

    """
    size, relation = exact_count("n", n), exact_neighbors(neighbors)
    seeker = _Seeker(f, _pool(domain), size, relation == "change-one", exact_count("tries", tries))
    claim = None if claimed is None else exact_sensitivity(claimed)
    rounding = None if tolerance is None else exact_number("tolerance", tolerance)
    if rounding is not None and rounding < 0:
        raise InvalidParameter(f"tolerance must not be negative, got {quote(tolerance)}")
    for x in seeker.corners():
        seeker.look_around(x)
    seeker.climb()
    distance, pair = seeker.judged(rounding)
    return Search(
        sensitivity=math.inf if distance.value >= _INFINITE else distance.value,
        claimed=claim,
        computed=math.inf if distance.computed >= _INFINITE else distance.computed,
        tolerance=distance.error,
        x=seeker.values(pair.x),
        x_neighbor=seeker.values(pair.other()),
        tried=seeker.tried,
    )
