"""Octaves: the powers of two between which the values of a column lie, from one noisy histogram.

    whole numbers   … [−4, −2) [−2, −1) [−1, 0) | 0 | [1, 2) [2, 4) [4, 8) …  up to 2⁶³
    reals           the same from 2⁻⁴⁰ to 2⁶⁴, and (0, 2⁻⁴⁰) with its negative beside 0
    and             values beyond, on either side; missing values
    rows of a unit  1, 2, 3–4, 5–8, …                                         up to 2²⁰, and beyond

A unit is in one bin, however many its rows: Δ = 1, or 2 if units are replaced. Each bin, even an
empty one, has noise of scale b = Δ/ε. The rest is post-processing, and finds where the values lie
[WZLDSG20], [AKMV19]:

    core      the bins that noise alone would fill in less than one profile of a million
    growth    outward from the core while the next bin has more than 3b, from the third on 8b, up to
              0 and not across
    across 0  if the ten largest octaves of the other sign, up to the same size, have more than 30b
              together

So a bound is more than two octaves outside the data in about two profiles of a million. A profile
finds no bounds for fewer people than a core needs, about 20b in one octave, and it does not look
inside an octave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.array import Bins
from discreet.release.design import Estimate, Secret
from discreet.release.mechanism import noisy_counts

_END = Fraction(10**100)  # the largest number of the engines

_POWERS = {True: range(64), False: range(-40, 65)}
"""The powers of two between octaves: 64 bits for integers; 2⁻⁴⁰ has few enough decimals."""

ROW_LIMITS = tuple(2**power for power in range(21))
"""The largest number of rows of a unit in each bin except the last."""

_FALSE_CORE = 1e-6
_NEAR, _FAR, _STEPS = 3.0, 8.0, 2
# P(Σ of ten draws > 30b) ≤ e^(−30θ)/(1 − θ²)¹⁰, which is 6·10⁻⁷ at θ = 0.72
_ACROSS, _OTHERS = 30.0, 10
# a bound of at most this share of the other bound is set to 0: the range grows by less than a
# seventh
_SMALL = 8


@lru_cache(maxsize=2)
def octave_edges(whole: bool) -> tuple[Fraction, ...]:
    """The edges of the bins, the last of which is closed; missing values have one more bin."""
    powers = [Fraction(2) ** power for power in _POWERS[whole]]
    zero = [Fraction(0)] if whole else [Fraction(0), 1 / _END]
    return (-_END, *(-power for power in reversed(powers)), *zero, *powers, _END)


@dataclass(frozen=True, slots=True, kw_only=True)
class OctaveDesign:
    """The number of units in each bin."""

    name: str
    whole: bool

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def cells(self) -> int:
        return len(octave_edges(self.whole))

    def measures(self) -> tuple[Any, ...]:
        """The measures of a column in memory."""
        return (Bins(np.array(octave_edges(self.whole), np.float64), None, even=False, apart=True),)

    @staticmethod
    def scale(terms: UnitLimits, epsilon: Fraction) -> Fraction:
        return terms.profile / epsilon

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        counts = noisy_counts(
            exact.map(lambda measures: np.asarray(measures[0], np.int64)),
            self.scale(terms, epsilon),
        )
        return {self.name: Estimate(counts, lambda _: (counts, counts))}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRowsDesign(OctaveDesign):
    """The number of units by their number of rows."""

    whole: bool = True

    @property
    def cells(self) -> int:
        return len(ROW_LIMITS) + 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The counts above which bins are taken as not empty."""

    core: float
    near: float
    far: float
    across: float


def limits_of(scale: Fraction, cells: int) -> Limits:
    """The limits at a noise scale: P(X ≥ m) = r^m/(1 + r) for each bin, r = e^(−1/b)."""
    b = float(scale)
    core = math.ceil(b * math.log(cells / (_FALSE_CORE * (1 + math.exp(-1 / b)))))
    return Limits(core=core, near=_NEAR * b, far=_FAR * b, across=_ACROSS * b)


def span(
    counts: Sequence[float], limits: Limits, zero: int | None = None
) -> tuple[int, int] | None:
    """The first and last of the bins that hold values, or None; growth ends at the bin `zero`."""
    core = [index for index, count in enumerate(counts) if count >= limits.core]
    if not core:
        return None
    first, last = core[0], core[-1]
    floor = zero if zero is not None and first >= zero else 0
    ceiling = zero if zero is not None and last <= zero else len(counts) - 1
    return first - _grown(counts[floor:first][::-1], limits), last + _grown(
        counts[last + 1 : ceiling + 1], limits
    )


def _grown(counts: Sequence[float], limits: Limits) -> int:
    for step, count in enumerate(counts):
        if count <= (limits.near if step < _STEPS else limits.far):
            return step
    return len(counts)


def ends(counts: Sequence[float], whole: bool, limits: Limits) -> tuple[Fraction, Fraction] | None:
    """The edges between which the values lie, or None if unknown; `counts` are of all bins."""
    edges = octave_edges(whole)
    inner = counts[1 : len(edges) - 2]
    zero = edges.index(Fraction(0))
    full = span(inner, limits, zero - 1)
    if full is None:
        return None
    first, last = full[0] + 1, full[1] + 1
    # 0 itself, not the edge of its bin
    lower, upper = edges[first], edges[last] if last == zero else edges[last + 1]
    lower = Fraction(0) if lower == 1 / _END else lower
    if lower < upper and (lower >= 0 or upper <= 0):
        opposite = bins_between(whole, *other_side(lower, upper))
        if sum(counts[index] for index in opposite) > limits.across:
            lower, upper = min(lower, -upper), max(upper, -lower)
    return lower, upper


def other_side(lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """For values of one sign, the ten largest octaves of the other sign, up to the same size."""
    return (-upper, -upper / 2**_OTHERS) if lower >= 0 else (-lower / 2**_OTHERS, -lower)


def bins_between(whole: bool, low: Fraction, high: Fraction) -> list[int]:
    """The bins that begin at `low` or above, and below `high`."""
    return [index for index, edge in enumerate(octave_edges(whole)[:-1]) if low <= edge < high]


def rounded_bounds(lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction] | None:
    """The bounds to propose, with 0 for an end that is relatively small; None if all are 0."""
    if 0 < lower <= upper / _SMALL:
        lower = Fraction(0)
    elif 0 > upper >= lower / _SMALL:
        upper = Fraction(0)
    return (lower, upper) if lower < upper else None
