"""discreet's own statistics as mechanisms that an audit can run millions of times, through the code that releases.

Designs of a study release many groups at once, each with noise of its own: groups that all hold the same true integers
are so many draws of one release. `x` is then those integers, and its neighbor what one unit can make of them at worst.
Quantiles, minimum and maximum are released one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import arrays
from discreet.ask.expression import Column
from discreet.ask.query import Count, Moment
from discreet.calibrate.sensitivity import Terms
from discreet.engines.base import Exact
from discreet.release.design import items
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.release.statistics.counts import CountDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.response import randomized_response

EPSILON = Fraction(1)
_LEVEL = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A statistic with two neighbours."""

    statistic: str
    neighbors: str
    mechanism: Callable[..., Any]
    x: Any
    x_neighbor: Any
    draws: int
    batch: int | None = None
    least: float = 0.0
    """What an audit of so many draws must at least show: it would be blind otherwise."""


def subjects() -> list[Subject]:
    """All statistics, each on a pair of neighbours that shows much of ε."""
    change, remove = "change-one", "add-remove"
    ages = [0, 3, 5, 5, 9] * 2
    return [
        _subject("count", change, _counts(change, 1), [40], [41], 1_000_000, least=0.9),
        _subject("count", remove, _counts(remove, 1), [40], [41], 200_000, least=0.9),
        _subject("sum", change, _moments("sum", change), [5, 20], [5, 30], 1_000_000, least=0.9),
        _subject("sum", remove, _moments("sum", remove), [5, 20], [6, 30], 200_000, least=0.9),
        _subject("mean", remove, _moments("mean", remove), [2, 10], [3, 20], 50_000, batch=2**13),
        _subject("variance", remove, _moments("variance", remove), [2, 0, 0], [3, 10, 100], 10_000, batch=2**10),
        _subject("std", change, _moments("std", change), [3, 0, 0], [3, 10, 100], 10_000, batch=2**10),
        _subject("median", change, _array("median", change, 1, confidence=None), [0] * 5, [0] * 4 + [1], 8_000),
        _subject(
            "quantile", remove, _array("quantile", remove, 1, q="0.9", confidence=None), [0] * 10, [*[0] * 10, 1], 8_000
        ),
        _subject("min", change, _array("min", change, 10), ages, [10, *ages[1:]], 8_000),
        _subject("max", remove, _array("max", remove, 10), ages, [*ages, 10], 8_000),
        _subject("proportion", remove, _moments("proportion", remove), [2, 1], [3, 2], 50_000, batch=2**13),
        _subject("histogram", change, _counts(change, 3), [5, 3, 2], [4, 4, 2], 1_000_000, least=0.9),
        _subject("randomized_response", change, _response, 0, 1, 1_000_000, least=0.9),
        _subject("laplace_mechanism", change, _algorithm, 0, 1, 1_000_000, least=0.9),
        _subject("laplace_mechanism on floats", change, _algorithm, 0.0, 1.0, 1_000_000, least=0.9),
    ]


def _subject(statistic: str, neighbors: str, mechanism: Callable[..., Any], *pair: Any, **more: Any) -> Subject:
    x, x_neighbor, draws = pair
    given = {"x": x, "x_neighbor": x_neighbor, "draws": draws, **more}
    return Subject(statistic=statistic, neighbors=neighbors, mechanism=mechanism, **given)


def _terms(neighbors: str, cells: int) -> Terms:
    return Terms(rows=1, spread=1, replaced=neighbors == "change-one", public=False, cells=cells)


def _counts(neighbors: str, cells: int) -> Callable[..., Any]:
    """Counts of one group, or of several at once."""
    design = CountDesign(name="n", of=Count())

    def mechanism(x: list[int], size: int) -> NDArray[Any]:
        found = items(design, Exact([x * size]), _terms(neighbors, cells), EPSILON, _LEVEL)
        return _values(found["n"]).reshape(size, cells)

    return mechanism


_Asked = Literal["sum", "mean", "variance", "std", "proportion"]


def _moments(asked: _Asked, neighbors: str) -> Callable[..., Any]:
    """A statistic of whole numbers from 0 to 10, a proportion of truths; x is n, Σa and, for squares, Σa²."""
    top = 1 if asked == "proportion" else 10
    of = Moment(
        statistic="mean", of=Column("x", "number"), lower=Fraction(0), upper=Fraction(top), whole=True, missing=None
    )
    design = MomentDesign(wanted=(("m", "mean" if asked == "proportion" else asked),), of=of)

    def mechanism(x: list[int], size: int) -> NDArray[Any]:
        exact = Exact([[number] * size for number in x])
        return _values(items(design, exact, _terms(neighbors, 1), EPSILON, _LEVEL)["m"])

    return mechanism


def _values(items: list[Any]) -> NDArray[Any]:
    return np.array([value for value, _, _ in items])


def _array(statistic: str, neighbors: str, top: int, **given: Any) -> Callable[[list[int]], Any]:
    call = getattr(arrays, statistic)
    more = () if "q" not in given else (given.pop("q"),)

    def mechanism(x: list[int]) -> Any:
        return call(np.array(x), *more, bounds=(0, top), epsilon=EPSILON, neighbors=neighbors, **given)

    return mechanism


def _response(x: int, size: int) -> NDArray[np.bool_]:
    return randomized_response(np.full(size, x), epsilon=EPSILON).bits


def _algorithm(x: float, size: int) -> NDArray[Any]:
    found: NDArray[Any] = laplace_mechanism(np.full(size, x), sensitivity=1, epsilon=EPSILON, changes=1)
    return found
