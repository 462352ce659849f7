"""A search for neighbours that refute the claimed sensitivity of a function.

    search_sensitivity(statistics.pstdev, (0, 1), 100, claimed="1/100")      finds 0.0995: it is about 1/√n

Data sets at the ends of the domain come first (all alike, two values in every proportion, near the ends), then random
ones. From the worst pairs the search climbs: it changes one value at a time and keeps the change if the distance does
not shrink. Distances are L1 norms of f(x) − f(x′), in exact fractions of the integers, Fractions or floats that f
returns. An error or a NaN on one side only is an infinite distance. The search proves no sensitivity: it finds a lower
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from operator import itemgetter
from typing import Any, NamedTuple

from discreet.draw.coin import below
from discreet.draw.entropy import keystream
from discreet.errors import InvalidParameter
from discreet.parameters import exact_bounds, exact_count, exact_neighbors, exact_sensitivity

_INFINITE = Fraction(10**400)  # stands for a distance without bound in comparisons
_MOST_POOL = 12
_WORST = 4
_PREFIXES = 64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Search:
    """The tried pair of neighbours on which f differs most."""

    sensitivity: Fraction | float
    """The distance of f between them, a lower bound on its sensitivity; `inf` if f fails on only one of them."""
    claimed: Fraction | None
    x: list[Any]
    x_neighbor: list[Any]
    tried: int
    """The number of pairs tried."""

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.claimed is not None and self.sensitivity > self.claimed

    def __repr__(self) -> str:
        summary = f"f moves by {float(self.sensitivity):.6g} between neighbours ({self.tried:,} pairs tried)"
        if self.claimed is None:
            return summary
        if not self.broken:
            return f"{summary}, claimed {float(self.claimed):.6g}: not broken"
        times = f"{float(self.sensitivity / self.claimed):.4g} times the claim" if self.sensitivity != math.inf else ""
        return f"{summary}: the claim, {float(self.claimed):.6g}, is BROKEN {times}".rstrip()


class _Pair(NamedTuple):
    """A data set, and the position at which its neighbour has another value or no value."""

    x: list[Any]
    position: int
    values: tuple[Any, ...]

    def other(self) -> list[Any]:
        return [*self.x[: self.position], *self.values, *self.x[self.position + 1 :]]


class _Seeker:
    """A search for distant pairs, and the worst pairs tried so far."""

    def __init__(self, f: Callable[[list[Any]], Any], pool: list[Any], size: int, replaced: bool, tries: int) -> None:
        self.f, self.pool, self.size, self.replaced, self.tries = f, pool, size, replaced, tries
        self.tried = 0
        self.worst: list[tuple[Fraction, _Pair]] = []

    def corners(self) -> Iterator[list[Any]]:
        """Data sets of one or two values, in every proportion, and some random ones."""
        step = max(1, self.size // _PREFIXES)
        counts = sorted({*range(0, self.size, step), self.size // 2, self.size // 2 + 1, self.size - 1})
        for (first, second), count in product(permutations(self.pool[:4], 2), counts):
            if self.tried >= self.tries // 2:
                break
            yield [first] * count + [second] * (self.size - count)
        while self.tried < self.tries * 6 // 10:
            yield [self._value() for _ in range(self.size)]

    def look_around(self, x: list[Any]) -> None:
        """Try all neighbours of a data set that differ at its ends, or in one of its distinct values."""
        positions = {0, len(x) - 1, *(x.index(value) for value in list(dict.fromkeys(x))[:4])}
        others = [(value,) for value in self.pool] if self.replaced else [()]
        numbers = self._numbers(x)
        for position, other in product(sorted(positions), others):
            pair = _Pair(x, position, other)
            self.worst.append((self._distance(numbers, pair), pair))
            self.worst = sorted(self.worst, key=itemgetter(0), reverse=True)[:_WORST]

    def climb(self) -> None:
        """Change one value on both sides of the worst pairs, and keep the change unless the distance shrinks."""
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

    def _distance(self, first: list[Fraction] | None, pair: _Pair) -> Fraction:
        self.tried += 1
        second = self._numbers(pair.other())
        if first is None and second is None:
            return Fraction(0)
        if first is None or second is None or len(first) != len(second):
            return _INFINITE
        return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction())

    def _numbers(self, x: list[Any]) -> list[Fraction] | None:
        """f(x) as fractions; None if it is not a number."""
        try:
            return [Fraction(number) for number in _flat(self.f(list(x)))]
        except Exception:  # an error of f is an outcome
            return None

    def _value(self) -> Any:
        return self.pool[below(len(self.pool), keystream())]


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [item for part in value for item in _flat(part)]
    return [value]


def _pool(domain: Any) -> list[Any]:
    """Values for the data sets: the ends first, then values near them and between them."""
    listed = list(domain) if isinstance(domain, list | tuple | range) else []
    if len(listed) > _MOST_POOL:
        if len({type(item) for item in listed}) > 3:
            raise InvalidParameter("domain must be a pair (lower, upper) or a list of values of one kind")
        step = len(listed) / (_MOST_POOL - 1)
        between = [listed[int(index * step)] for index in range(1, _MOST_POOL - 1)]
        return list(dict.fromkeys([listed[0], listed[-1], *between]))
    if len(listed) > 2:
        return listed[:1] + listed[-1:] + listed[1:-1]
    low, high = exact_bounds(domain)
    kind: Callable[[Fraction], Any] = Fraction
    if any(isinstance(end, float) for end in listed):
        kind = float
    elif all(isinstance(end, int) for end in listed):
        kind = math.floor
    lower, upper, *between = (kind(low + (high - low) * Fraction(quarter, 4)) for quarter in (0, 4, 2, 1, 3))
    near = [math.nextafter(lower, upper), math.nextafter(upper, lower)] if kind is float else []
    zero = [kind(Fraction(0))] if low < 0 < high else []
    return list(dict.fromkeys([lower, upper, *between, *near, *zero]))


def search_sensitivity(
    f: Callable[[list[Any]], Any],
    domain: Any,
    n: int,
    neighbors: Any = "change-one",
    *,
    claimed: Any = None,
    tries: int = 3_000,
) -> Search:
    """Search for two neighbours on which f differs most: a lower bound on its sensitivity.

    Parameters
    ----------
    f : callable
        A function of a list of values that returns a number or several.
    domain : pair or list
        (lower, upper), whose type the values have, or a list of three or more values.
    n : int
        The number of values. Under add-remove, one neighbour has n values and the other has n − 1.
    neighbors : "change-one" or "add-remove"
        The relation of the two data sets.
    claimed : number or text, optional
        The sensitivity that you claim.
    tries : int
        The number of pairs to try.

    Returns
    -------
    Search
        The worst pair, its distance, and whether the claim is `broken`.

    Examples
    --------
    >>> search_sensitivity(sum, (0, 1), 10, claimed=1).broken
    False

    """
    size, relation = exact_count("n", n), exact_neighbors(neighbors)
    seeker = _Seeker(f, _pool(domain), size, relation == "change-one", exact_count("tries", tries))
    claim = None if claimed is None else exact_sensitivity(claimed)
    for x in seeker.corners():
        seeker.look_around(x)
    seeker.climb()
    distance, pair = max(seeker.worst, key=itemgetter(0))
    return Search(
        sensitivity=math.inf if distance >= _INFINITE else distance,
        claimed=claim,
        x=pair.x,
        x_neighbor=pair.other(),
        tried=seeker.tried,
    )
