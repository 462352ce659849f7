"""A release: numbers that may be published, each with its error, and what they cost.

A `Release` is a frozen value. Everything done with it is post-processing and costs nothing: arithmetic, `float()`,
`numpy.asarray`. Arithmetic between two releases takes an interval from each at half of the error, so it holds whether
or not they are independent.

    accuracy(c)    half-width of the interval at confidence c
    interval(c)    lower and upper end; for a vector one interval for each number, or with simultaneous=True all at once

Intervals cover the noise. They do not cover the sampling of people, nor values that were clamped to the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet import views
from discreet.errors import InvalidParameter
from discreet.formats import rounded, shown, with_interval
from discreet.parameters import Number, exact_confidence
from discreet.release.statistics.tree import project

Ends: TypeAlias = tuple[Any, Any]
Spread: TypeAlias = Callable[[Fraction, bool], Ends]
"""The ends of the interval at a confidence, for each number or simultaneously."""

_USUAL = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release:
    """Released numbers with their error and their cost."""

    value: float
    """A number, whole where the statistic is; in the classes below, an array of numbers."""
    epsilon: Fraction
    """What it cost, exactly."""
    sensitivity: Fraction
    """Δ: how far one unit moves the exact answer, in its own units (the L1 norm over a vector)."""
    scale: Fraction
    """The scale of the noise, in the units of the answer."""
    step: Fraction
    """Released numbers are multiples of this before any rounding to decimals."""
    neighbors: str
    """Between whom it hides the difference: "change-one" or "add-remove"."""
    statistic: str
    """The name of the function that released it."""
    missing: str = ""
    """What was done with missing values; empty where there can be none."""
    error: str = ""
    """What is known of the error where the interval tells nothing: in ranks, or in records beyond."""
    _spread: Spread = field(kw_only=True)

    @property
    def note(self) -> str:
        """What a reader should know besides the numbers: of their error, and of missing values."""
        return "; ".join(filter(None, (self.error, self.missing)))

    def interval(self, confidence: Number = _USUAL, *, simultaneous: bool = False) -> Ends:
        """The lower and the upper end of the interval that holds the exact number at this confidence.

        Of a vector, an array of lower and one of upper ends, which hold one by one, or all together (`simultaneous`).
        """
        return self._spread(exact_confidence(confidence), simultaneous)

    def accuracy(self, confidence: Number = _USUAL, *, simultaneous: bool = False) -> Any:
        """How far the number is from the exact one at most, at this confidence: the larger side of the interval."""
        low, high = self.interval(confidence, simultaneous=simultaneous)
        if isinstance(low, np.ndarray):
            return np.maximum(self.value - low, high - self.value)
        return max(self.value - low, high - self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return round(float(self.value)) if isinstance(self.value, float) else int(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=True if copy is None else copy)

    def __bool__(self) -> bool:
        return True  # a release is something, whatever its number

    def figure(self, **options: Any) -> Any:
        """The numbers with their intervals as a chart."""
        return views.figure(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        cost = f"ε {shown(self.epsilon)} · Δ {shown(self.sensitivity)} · {self.neighbors}"
        return f"{self._shown_value()}   {cost}" + (f" · {self.missing}" if self.missing else "")

    def _shown_value(self) -> str:
        low, high = self.interval()
        if self.error:
            return f"{self.value:,.6g} ({self.error})"
        if isinstance(self.value, np.ndarray):
            reach = float(np.max(np.maximum(self.value - low, high - self.value), initial=0))
            some = ", ".join(rounded(number, reach) for number in self.value[:6].tolist())
            more = f", … {len(self.value):,} numbers" if len(self.value) > 6 else ""
            return f"[{some}{more}] ± {rounded(reach, reach)} (95 % each)"
        text = with_interval(self.value, low, high)
        return f"{text[:-1]}, 95 %)" if text.endswith(")") else f"{text} (95 %)"

    def _mapped(self, function: Callable[[Any], Any], *, rising: bool, factor: Fraction) -> Release:
        def spread(confidence: Fraction, simultaneous: bool) -> Ends:
            low, high = (function(end) for end in self._spread(confidence, simultaneous))
            return (low, high) if rising else (high, low)

        return replace(
            self,
            value=function(self.value),
            sensitivity=self.sensitivity * factor,
            scale=self.scale * factor,
            step=self.step * factor,
            _spread=spread,
        )

    def _with(self, other: Release, function: Callable[[Any, Any], Any], name: str) -> Release:
        def spread(confidence: Fraction, simultaneous: bool) -> Ends:
            each = (1 + confidence) / 2
            ends = [function(a, b) for a in self._spread(each, simultaneous) for b in other._spread(each, simultaneous)]
            return (np.minimum.reduce(ends), np.maximum.reduce(ends)) if np.ndim(ends[0]) else (min(ends), max(ends))

        return replace(
            self,
            value=function(self.value, other.value),
            epsilon=self.epsilon if self is other else self.epsilon + other.epsilon,
            sensitivity=self.sensitivity + other.sensitivity,
            scale=self.scale + other.scale,
            statistic=f"{self.statistic} {name} {other.statistic}",
            missing=self.missing if self.missing == other.missing else "",
            error="",
            _spread=spread,
        )

    def __add__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, lambda a, b: a + b, "+")
        if not _is_number(other):
            return NotImplemented
        return self._mapped(lambda a: a + other, rising=True, factor=Fraction(1))

    __radd__ = __add__

    def __neg__(self) -> Release:
        return self._mapped(lambda a: -a, rising=False, factor=Fraction(1))

    def __sub__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, lambda a, b: a - b, "−")
        return (
            self._mapped(lambda a: a - other, rising=True, factor=Fraction(1)) if _is_number(other) else NotImplemented
        )

    def __rsub__(self, other: Any) -> Release:
        return -self + other if _is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, lambda a, b: a * b, "×")
        if not _is_number(other) or not np.isfinite(float(other)) or other == 0:
            return NotImplemented
        return self._mapped(lambda a: a * other, rising=other > 0, factor=abs(_fraction(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._ratio(other)
        if not _is_number(other) or not np.isfinite(float(other)) or other == 0:
            return NotImplemented
        return self._mapped(lambda a: a / other, rising=other > 0, factor=abs(1 / _fraction(other)))

    def _ratio(self, other: Release) -> Release:
        if np.ndim(self.value) or np.ndim(other.value):
            raise InvalidParameter("a ratio is taken of single numbers; take it one by one")

        def spread(confidence: Fraction, simultaneous: bool) -> Ends:
            each = (1 + confidence) / 2
            above, below = self._spread(each, simultaneous), other._spread(each, simultaneous)
            if below[0] <= 0 <= below[1]:
                return -math.inf, math.inf
            ends = [a / b for a in above for b in below]
            return min(ends), max(ends)

        value = self.value / other.value if other.value else math.nan
        return replace(self._with(other, lambda a, _: a, "/"), value=value, _spread=spread)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Vector(Release):
    """Several released numbers, in an array."""

    value: NDArray[Any]  # type: ignore[assignment] # one number and several have the same methods
    """The numbers."""

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Histogram(Vector):
    """Released counts of bins. They are unbiased and add up; `projected` is for display."""

    edges: tuple[float, ...]
    total: int | None
    """The number of units, where it is public."""

    def projected(self) -> NDArray[np.float64]:
        """The nearest counts that are not negative and add up to the total (or to the noisy total)."""
        counts = self.value.astype(np.float64)
        return project(counts, float(self.total) if self.total is not None else max(0.0, float(counts.sum())))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cumulative(Vector):
    """Released numbers of units at or below each of the `points`; the intervals hold at all points at once."""

    points: NDArray[np.float64]
    total: int | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Releases(Mapping[str, Release]):
    """Several statistics out of one joint release: `found["mean"]`, `found.mean`."""

    parts: Mapping[str, Release]
    epsilon: Fraction

    def __init__(self, parts: Mapping[str, Release], epsilon: Fraction) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(parts)))
        object.__setattr__(self, "epsilon", epsilon)

    def __getitem__(self, name: str) -> Release:
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getattr__(self, name: str) -> Release:
        try:
            return self.parts[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} in this release; it has {', '.join(self.parts)}") from None

    def interval(self, confidence: Number = _USUAL) -> dict[str, Ends]:
        """One interval for each statistic, all of them holding together at this confidence."""
        miss = (1 - exact_confidence(confidence)) / len(self.parts)
        return {name: part._spread(1 - miss, False) for name, part in self.parts.items()}

    def figure(self, **options: Any) -> Any:
        """The numbers with their intervals as a chart; `column=` chooses one."""
        return views.figure(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        width = max(map(len, self.parts))
        lines = [f"{name:<{width}}  {part._shown_value()}" for name, part in self.parts.items()]
        one = next(iter(self.parts.values()))
        end = f"ε {shown(self.epsilon)} in all · {one.neighbors}"
        return "\n".join([*lines, f"{end} · {one.missing}" if one.missing else end])


def fields_of(release: Release) -> dict[str, Any]:
    """What makes up a release, to make a more special one of it."""
    return {one.name: getattr(release, one.name) for one in fields(release)}


def _is_number(other: Any) -> bool:
    return isinstance(other, int | float | Fraction | np.number) and not isinstance(other, bool)


def _fraction(other: Any) -> Fraction:
    return Fraction(other.item() if isinstance(other, np.number) else other)


def together(parts: Sequence[Release], epsilon: Fraction, statistic: str) -> Vector:
    """Several quantiles as one vector, in rising order; sorted ends still hold rising truths."""

    def spread(confidence: Fraction, simultaneous: bool) -> Ends:
        level = 1 - (1 - confidence) / len(parts) if simultaneous else confidence
        lows, highs = zip(*(part._spread(level, False) for part in parts), strict=True)
        return np.sort(lows), np.sort(highs)

    value = np.sort([part.value for part in parts])
    told = {"value": value, "epsilon": epsilon, "statistic": statistic, "error": "", "_spread": spread}
    return Vector(**{**fields_of(parts[0]), **told})
