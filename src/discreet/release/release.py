"""A release: numbers that may be published, each with its error, and what they cost.

A `Release` is immutable. Everything done with it is post-processing and costs nothing: arithmetic,
`float()`, `numpy.asarray`. Arithmetic between two releases takes from each an interval with half
the error probability, so the result holds whether or not they are independent.

    accuracy(c)    half-width of the interval at confidence c
    interval(c)    lower and upper end; for a vector one interval for each number, or with
                   simultaneous=True all at once
    to_json()      everything, including the inputs of the intervals; `from_json` reads it; pickle
                   and copy work, too

Intervals cover the noise. They do not cover the sampling of people or the clamping of values to the
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, one_line
from discreet.formats import decimal_text, rounded, shown, with_interval
from discreet.parameters import Number, exact_confidence
from discreet.release.intervals.spreads import (
    OPERATIONS,
    Ends,
    Spread,
    combined,
    divided,
    in_order,
    mapped,
)
from discreet.release.intervals.storage import Stored
from discreet.release.statistics.tree import project

_USUAL = Fraction(19, 20)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release(Stored):
    """A released number with its error and its cost.

    A release is not a number: `<`, `<=`, `>` and `>=` refuse to compare it, because the result
    might depend on its error. Compare its `.value`, or use its `.interval()`. Two releases are
    equal if all their fields are. `float(r)`, `round(r, 1)` and `f"{r:.2f}"` use the number alone.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.mean([20.0, 30.0, 40.0] * 100, bounds=(0, 120), epsilon=1)
    >>> low, high = release.interval("0.9")
    >>> low < high, release.epsilon
    (True, Fraction(1, 1))

    """

    # numpy's numbers leave arithmetic to the release, which keeps the interval
    __array_ufunc__ = None

    value: float
    """The number, an integer if the statistic is; in subclasses, an array of numbers."""
    epsilon: Fraction
    """The exact ε that it cost."""
    sensitivity: Fraction
    """Δ: how far one unit moves the exact answer, in its own units (the L1 norm over a vector)."""
    scale: Fraction
    """The scale of the noise, in the units of the answer."""
    step: Fraction
    """Released numbers are multiples of this before any rounding to decimals."""
    neighbors: str
    """The relation of neighbouring data sets: "change-one" or "add-remove"."""
    statistic: str
    """The name of the function that released it."""
    missing: str = ""
    """What was done with missing values; empty if there can be none."""
    error: str = ""
    """A description of the error where the interval says nothing: in ranks, or in records beyond.
    """
    rounding: str = ""
    """What the interval leaves out of the rounding of values to the grid; empty if it covers that.
    """
    _spread: Spread = field(kw_only=True)

    @property
    def note(self) -> str:
        """What a reader should know besides the numbers: about their error and about missing
        values.
        """
        return "; ".join(filter(None, (self.error, self.rounding, self.missing)))

    def interval(self, confidence: Number = _USUAL, *, simultaneous: bool = False) -> Ends:
        """The confidence interval of the exact number.

        Parameters
        ----------
        confidence : number or text
            The probability that the interval covers the exact number.
        simultaneous : bool
            For a vector, whether all intervals must hold together; otherwise each holds on its own.

        Returns
        -------
        tuple
            The lower and the upper end; for a vector, an array of each.

        """
        return self._spread(exact_confidence(confidence), simultaneous)

    def accuracy(self, confidence: Number = _USUAL, *, simultaneous: bool = False) -> Any:
        """The largest distance from the exact number at this confidence: the longer side of the
        interval.
        """
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
        return True  # whatever its number

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else str(self)

    def _refuse_order(self, _other: object) -> NoReturn:
        raise TypeError(
            "a release has an error, so it cannot be compared: compare its .value, or use its"
            " .interval()"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_order

    def __repr__(self) -> str:
        cost = f"ε {shown(self.epsilon)} · Δ {shown(self.sensitivity)} · {self.neighbors}"
        return " · ".join(
            filter(None, (f"{self._shown_value()}   {cost}", self.rounding, self.missing))
        )

    def _shown_value(self) -> str:
        low, high = self.interval()
        if self.error:
            return f"{self.value:,.6g} ({self.error})"
        if isinstance(self.value, np.ndarray):
            value, low, high, digits = rounded(self.value, low, high)
            most = int(digits.min(initial=12))
            reach = np.max(np.maximum(value - low, high - value), initial=0).item()
            first = ", ".join(decimal_text(number, most) for number in value[:6].tolist())
            more = f", … {len(value):,} numbers" if len(value) > 6 else ""
            return f"[{first}{more}] ± {decimal_text(reach, most)} (95 % each)"
        text = with_interval(self.value, low, high)
        return f"{text[:-1]}, 95 %)" if text.endswith(")") else f"{text} (95 %)"

    def _mapped(self, sign: str, number: Any, *, factor: Fraction = Fraction(1)) -> Release:
        number = number.item() if isinstance(number, np.number) else number
        return replace(
            self,
            value=OPERATIONS[sign](self.value, number),
            sensitivity=self.sensitivity * factor,
            scale=self.scale * factor,
            step=self.step * factor,
            _spread=partial(mapped, self._spread, sign, number),
        )

    def _with(self, other: Release, sign: str) -> Release:
        return replace(
            self,
            value=OPERATIONS[sign](self.value, other.value),
            epsilon=self.epsilon if self is other else self.epsilon + other.epsilon,
            sensitivity=self.sensitivity + other.sensitivity,
            scale=self.scale + other.scale,
            statistic=f"{self.statistic} {sign} {other.statistic}",
            missing=self.missing if self.missing == other.missing else "",
            error="",
            rounding=self.rounding or other.rounding,
            _spread=partial(combined, self._spread, other._spread, sign),
        )

    def __add__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, "+")
        return self._mapped("+", other) if _is_number(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Release:
        return self._mapped("×", -1)

    def __sub__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, "−")
        return self._mapped("−", other) if _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Release:
        return -self + other if _is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._with(other, "×")
        if not _is_number(other) or not np.isfinite(float(other)) or other == 0:
            return NotImplemented
        return self._mapped("×", other, factor=abs(_fraction(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Release:
        if isinstance(other, Release):
            return self._ratio(other)
        if not _is_number(other) or not np.isfinite(float(other)) or other == 0:
            return NotImplemented
        return self._mapped("/", other, factor=abs(1 / _fraction(other)))

    def _ratio(self, other: Release) -> Release:
        if np.ndim(self.value) or np.ndim(other.value):
            raise InvalidParameter(
                "a ratio needs single numbers, not vectors: take the ratio of each pair of numbers"
            )
        value = self.value / other.value if other.value else math.nan
        statistic = f"{self.statistic} / {other.statistic}"
        spread = partial(divided, self._spread, other._spread)
        return replace(self._with(other, "+"), value=value, statistic=statistic, _spread=spread)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Vector(Release):
    """Several released numbers, in an array."""

    value: NDArray[Any]  # type: ignore[assignment] # a number and a vector have the same methods
    """The numbers."""

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __round__(self, digits: int | None = None) -> NDArray[Any]:
        return np.round(self.value, digits or 0)

    def __format__(self, form: str) -> str:
        return (
            f"[{', '.join(format(number, form) for number in self.value.tolist())}]"
            if form
            else str(self)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Histogram(Vector):
    """Released counts of bins or keys. They are unbiased and add up; `projected` is for display."""

    edges: tuple[float, ...] = ()
    """The edges of the bins: one more than there are counts."""
    keys: tuple[Any, ...] = ()
    """The keys, one for each count; the label of all other values, if there is one, is last."""
    total: int | None
    """The number of units, if it is public."""

    @property
    def labels(self) -> list[str]:
        """The bins or keys as they are displayed."""
        edges = [f"{edge:,.6g}" for edge in self.edges]
        return [str(key) for key in self.keys] or [
            f"{left} to {right}" for left, right in pairwise(edges)
        ]

    def _shown_value(self) -> str:
        if not self.keys:
            return Vector._shown_value(self)
        reach = float(np.max(self.accuracy(), initial=0))
        first = ", ".join(
            f"{one_line(label)} {self.value[index]:,}"
            for index, label in enumerate(self.labels[:6])
        )
        more = f", … {len(self.value):,} keys" if len(self.value) > 6 else ""
        return f"{first}{more} ± {reach:,.0f} (95 % each)"

    def items(self) -> list[tuple[Any, int]]:
        """Pairs of a key, or the label of a bin, and its count."""
        return list(zip(self.keys or self.labels, self.value.tolist(), strict=True))

    def __getitem__(self, key: Any) -> Any:
        if not self.keys or isinstance(key, slice | np.ndarray):
            return self.value[key]
        if key not in self.keys:
            raise KeyError(f"there is no key {key!r}; .keys lists all keys")
        return self.value[self.keys.index(key)]

    def projected(self) -> NDArray[np.float64]:
        """The nearest nonnegative counts that add up to the total (or to the noisy total)."""
        counts = self.value.astype(np.float64)
        return project(
            counts, float(self.total) if self.total is not None else max(0.0, float(counts.sum()))
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cumulative(Vector):
    """Released numbers of units at or below each of the `points`; the intervals hold at all points
    together.
    """

    points: NDArray[np.float64]
    total: int | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Releases(Stored, Mapping[str, Release]):
    """Several statistics from one joint release, by name.

    Examples
    --------
    >>> import discreet
    >>> both = discreet.mean_and_std([20.0, 30.0, 40.0] * 100, bounds=(0, 120), epsilon=1)
    >>> list(both), both["mean"] == both.mean, both.epsilon
    (['mean', 'std'], True, Fraction(1, 1))

    """

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

    def __reduce__(self) -> tuple[Any, ...]:
        return Releases, (dict(self.parts), self.epsilon)

    def __getattr__(self, name: str) -> Release:
        try:
            return self.parts[name]
        except KeyError:
            raise AttributeError(
                f"there is no {name!r} in this release; it has {', '.join(self.parts)}"
            ) from None

    def interval(self, confidence: Number = _USUAL) -> dict[str, Ends]:
        """One interval for each statistic; all of them hold together at this confidence."""
        miss = (1 - exact_confidence(confidence)) / len(self.parts)
        return {name: part._spread(1 - miss, False) for name, part in self.parts.items()}

    def __repr__(self) -> str:
        width = max(map(len, self.parts))
        lines = [f"{name:<{width}}  {part._shown_value()}" for name, part in self.parts.items()]
        first = next(iter(self.parts.values()))
        end = f"ε {shown(self.epsilon)} in all · {first.neighbors}"
        return "\n".join([*lines, f"{end} · {first.missing}" if first.missing else end])


def fields_of(release: Release) -> dict[str, Any]:
    """The fields of a release, to build one of a subclass."""
    return {field.name: getattr(release, field.name) for field in fields(release)}


def _is_number(other: Any) -> bool:
    return isinstance(other, int | float | Fraction | np.number) and not isinstance(other, bool)


def _fraction(other: Any) -> Fraction:
    return Fraction(other.item() if isinstance(other, np.number) else other)


def together(parts: Sequence[Release], epsilon: Fraction, statistic: str) -> Vector:
    """Several quantiles as one vector, in ascending order, each in an interval that contains its
    own.
    """
    value = np.sort([part.value for part in parts])
    spread = partial(in_order, [part._spread for part in parts])
    changes = {
        "value": value,
        "epsilon": epsilon,
        "statistic": statistic,
        "error": "",
        "_spread": spread,
    }
    return Vector(**{**fields_of(parts[0]), **changes})
