"""The result of a profile: where values lie, how many are missing, zero or negative, and lines for
the policy.

All of it is post-processing of noisy counts. Nothing is changed automatically: the custodian reads
the lines and writes them to study.toml.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.ask.declared import Declared
from discreet.ask.policy import Policy, declared_toml, toml
from discreet.errors import InvalidParameter, one_line
from discreet.formats import readable, shown, table_lines, with_interval
from discreet.parameters import quote
from discreet.release.profiles.octaves import (
    ROW_LIMITS,
    Limits,
    bins_between,
    ends,
    limits_of,
    octave_edges,
    other_side,
    rounded_bounds,
    span,
)
from discreet.release.statistics.spread import combined_radius, half_width

_LEVEL = Fraction(19, 20)
_UNKNOWN = "too few to say: ask at a larger epsilon"


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the units, and its error at 95 %."""

    value: float
    within: float

    @property
    def text(self) -> str:
        """The share in percent; "none seen" if noise alone explains it."""
        if self.value <= self.within:
            return "none seen"
        value, within = 100 * self.value, 100 * self.within
        if within < 0.001:  # with a large ε
            return f"{readable(value, 3)} %"
        return f"{with_interval(value, value - within, value + within)} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    name: str
    counts: tuple[int, ...]
    """The noisy number of units in each bin."""
    scale: Fraction
    """The noise scale of each bin."""
    epsilon: Fraction
    """Its share of the cost."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnProfile(_Counted):
    """The octaves of a column."""

    whole: bool
    units: int | None
    """The number of units, if it is public."""

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges of the bins; missing values have one more bin, the last."""
        return octave_edges(self.whole)

    @property
    def _limits(self) -> Limits:
        return limits_of(self.scale, len(self.counts))

    @property
    def between(self) -> tuple[float, float] | None:
        """The powers of two, or 0, between which the values lie; None if too little is known."""
        return _plain_pair(self._ends)

    @property
    def _ends(self) -> tuple[Fraction, Fraction] | None:
        return ends(self.counts, self.whole, self._limits)

    @property
    def exact_bounds(self) -> tuple[Fraction, Fraction] | None:
        """The bounds as fractions."""
        values = self._ends
        return None if values is None else rounded_bounds(*values)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The proposed bounds; None if too little is known, or if there are only zeros."""
        return _plain_pair(self.exact_bounds)

    @property
    def missing(self) -> Share | None:
        """The share of units whose value is missing; None if too little is known."""
        return self._share([len(self.counts) - 1])

    @property
    def zero(self) -> Share | None:
        """The share of units whose value is 0."""
        return self._share([self.edges.index(Fraction(0))])

    @property
    def negative(self) -> Share | None:
        """The share of units whose value is negative and lies in an octave that stands out from the
        noise.
        """
        values = self._ends
        if values is None:
            return None
        lower, upper = values
        low, high = (lower, min(upper, Fraction(0))) if lower < 0 else other_side(lower, upper)
        return self._share(bins_between(self.whole, low, high))

    @property
    def beyond(self) -> Share | None:
        """The share of units whose value exceeds the last power of two in size, or is infinite."""
        return self._share([0, len(self.counts) - 2])

    def _share(self, bins: Collection[int]) -> Share | None:
        """The share of units in these bins: of all units, or, if their number is private, of those
        in full bins.
        """
        values = self._ends
        total, doubt = self.units, 0.0
        if total is None:
            if values is None:
                return None
            last = len(self.counts) - 1
            counted = {
                *bins_between(self.whole, *values),
                self.edges.index(Fraction(0)),
                0,
                last - 1,
                last,
            }
            total, doubt = self._sum(counted)
        count, within = self._sum(bins)
        if total <= doubt:
            return None
        value = min(max(0.0, count / total), 1.0)
        return Share(value, (within + value * doubt) / (total - doubt))

    def _sum(self, bins: Collection[int]) -> tuple[int, float]:
        """The number of units in some bins, and its error."""
        if len(bins) == 1:
            reach = float(half_width(self.scale, _LEVEL))
        else:  # a sum of discrete draws lies on integers
            reach = float(self.scale) * _reach(len(bins) or 1) + 1
        return sum(self.counts[index] for index in bins), reach if bins else 0.0

    @property
    def cells(self) -> list[str]:
        """Missing, zero, negative and where the values lie, as text."""
        shares = [
            "unknown" if share is None else share.text
            for share in (self.missing, self.zero, self.negative)
        ]
        beyond, values = self.beyond, self._ends
        between = _UNKNOWN
        if values is not None:
            between = (
                "only 0" if values[0] == values[1] else " and ".join(map(_number_text, values))
            )
        if beyond is not None and max(self.counts[0], self.counts[-2]) >= self._limits.core:
            between += f"; {beyond.text} beyond {_number_text(self.edges[-2])}"
        return [*shares, between]

    def to_dict(self) -> dict[str, Any]:
        """The profile in JSON's types."""
        ends = {
            name: pair and list(pair)
            for name, pair in (("bounds", self.bounds), ("between", self.between))
        }
        shares = {name: getattr(self, name) for name in ("missing", "zero", "negative", "beyond")}
        errors = {
            name: share and {"share": share.value, "within": share.within}
            for name, share in shares.items()
        }
        return {**ends, **errors, "epsilon": str(self.epsilon)}

    def __repr__(self) -> str:
        missing, zero, negative, between = self.cells
        text = f"between {between} · missing {missing} · zero {zero} · negative {negative}"
        return one_line(f"ColumnProfile({text} · bounds {self.bounds} · ε {shown(self.epsilon)})")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UnitProfile(_Counted):
    """The number of rows per unit."""

    @property
    def max_rows(self) -> int | None:
        """A limit that few units exceed; None if too little is known."""
        bins = span(self.counts[:-1], limits_of(self.scale, len(self.counts)))
        return None if bins is None else ROW_LIMITS[bins[1]]

    def __repr__(self) -> str:
        return f"UnitProfile(max_rows {self.max_rows} · ε {shown(self.epsilon)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile:
    """The profiles of some columns, and of the number of rows per unit, if that was asked for."""

    columns: Mapping[str, ColumnProfile]
    unit: UnitProfile | None
    epsilon: Fraction
    """The exact ε that it cost."""
    remaining: Fraction
    """What was left of the study's ε afterwards."""
    entry: str
    """The request id in the ledger."""
    policy: Policy

    def __getitem__(self, column: str) -> ColumnProfile:
        """The profile of a column."""
        if column not in self.columns:
            raise InvalidParameter(
                f"the profile is of {', '.join(self.columns)}, got {quote(column)}"
            )
        return self.columns[column]

    @property
    def proposals(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Bounds for each column of which enough is known; they include the value for missing
        values.
        """
        proposals = {}
        for name, column in self.columns.items():
            bounds, missing = column.exact_bounds, self.policy.columns[name].missing
            if bounds is not None:
                inside = [*bounds, missing] if isinstance(missing, Fraction) else bounds
                proposals[name] = min(inside), max(inside)
        return proposals

    @property
    def lines(self) -> dict[str, str]:
        """The proposed lines of the policy."""
        columns, proposals = self.policy.columns, self.proposals
        lines = {name: _line(name, columns[name], bounds) for name, bounds in proposals.items()}
        if self.unit is not None and self.unit.max_rows is not None:
            lines[self.unit.name] = f"max_rows = {self.unit.max_rows}"
        return lines

    @property
    def table(self) -> list[list[str]]:
        """The table of all columns as text, with its header."""
        lines = self.lines
        rows = [[name, *column.cells, lines.get(name, "")] for name, column in self.columns.items()]
        if self.unit is not None:
            most = self.unit.max_rows
            between = _UNKNOWN if most is None else f"1 and {most:,} rows"
            rows.append([self.unit.name, "", "", "", between, lines.get(self.unit.name, "")])
        return [
            ["column", "missing", "zero", "negative", "between", "proposal for study.toml"],
            *rows,
        ]

    def to_dict(self) -> dict[str, Any]:
        """The profile in JSON's types."""
        lines = self.lines
        columns = {
            name: {**column.to_dict(), "proposal": lines.get(name)}
            for name, column in self.columns.items()
        }
        unit = (
            None
            if self.unit is None
            else {"column": self.unit.name, "max_rows": self.unit.max_rows}
        )
        return {
            "columns": columns,
            "unit": unit,
            "epsilon": str(self.epsilon),
            "left": str(self.remaining),
        }

    def __repr__(self) -> str:
        headings, *rows = self.table
        columns = "1 column" if len(rows) == 1 else f"{len(rows)} columns"
        return "\n".join([f"ε {shown(self.epsilon)} for {columns}", *table_lines(headings, rows)])


@lru_cache(maxsize=512)
def _reach(draws: int) -> float:
    """The 95 % radius of the sum of so many draws of scale 1."""
    return float(combined_radius(np.ones((1, 1)), float(_LEVEL), np.array([float(draws)]))[0])


def _line(name: str, declared: Declared, bounds: tuple[Fraction, Fraction]) -> str:
    """A column as the policy would declare it."""
    key = (
        name
        if name.replace("_", "a").replace("-", "a").isalnum() and name.isascii()
        else toml(name)
    )
    return f"{key} = {declared_toml(declared, bounds=bounds)}"


def _plain_pair(pair: tuple[Fraction, Fraction] | None) -> tuple[float, float] | None:
    return None if pair is None else (_plain(pair[0]), _plain(pair[1]))


def _plain(number: Fraction) -> float:
    """An integer, or a float, which represents a power of two exactly."""
    return int(number) if number.denominator == 1 else float(number)


def _number_text(number: Fraction) -> str:
    return f"{int(number):,}" if number.denominator == 1 else readable(float(number), 4)
