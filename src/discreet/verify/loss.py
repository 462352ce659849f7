"""What one unit can change, stated independently of the release code, and the privacy loss.

A part of a release is integers with independent discrete Laplace noise, or choices, or coins.
Adding DLap(tᵢ) to integers that move by kᵢ costs Σ kᵢ/tᵢ, as P(k)/P(k + m) ≤ e^(m/t), with equality
at k ≥ 0. A row can add to them:

    rows, units   1                               lone       a in [0, R], always
    joint         (a, a(R−a)), always             pair       (a, R−a)
    centred       (2a−R, 1)                       bernstein  ((R−a)², 2a(R−a), a²)
    tree          1 in each of H levels           squares    (2a−R, 8a(R−a)−R², 1)
    sum           x in [L, H], or nothing if the row does not count
    answer        Δ in total, as its caller declares
    families      one unit, spread over the cells of each
    columns       (2a−R) or (2a−R, 8a(R−a)−R²) of each column, and 1

A unit has up to `rows` rows in up to `spread` of the `cells` groups. A total that is first rounded
to a step c moves by at most (m + c − 1)/c steps. A choice costs the range of the moves of its gaps
(permute-and-flip [MS20]): an added row moves some gaps up by at most max(under·q, over·(1−q)),
others down by at most max(under·(1−q), over·q); a replaced row shifts them by under and over.
Everything is a `Fraction`; nothing here reads ε.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import groupby
from operator import add
from typing import Any

from flint import arb

from discreet.calibrate.ball import ball
from discreet.errors import InvalidParameter
from discreet.outside import read_fraction, read_json
from discreet.parameters import exact_count, exact_neighbors

Vector = tuple[Fraction, ...]
# of an added or removed row, and of a row that is replaced in its group
Moves = tuple[list[Vector], list[Vector]]

NOISE = (
    "rows",
    "units",
    "sum",
    "lone",
    "pair",
    "joint",
    "bernstein",
    "centred",
    "squares",
    "tree",
    "answer",
)
JOINT = ("families", "columns")
"""Laws of several attributes; facts: units of cells 0.0, 0.1, …, or 0.width and 0.squares."""
OTHER = ("choice", "coin", "public")

_COORDINATES = {"pair": 2, "joint": 2, "bernstein": 3, "centred": 2, "squares": 3}
ALWAYS = ("lone", "joint")  # laws in which one row is replaced by another row that also counts
_FACTS = {
    **{
        law: {"lower", "upper"}
        for law in ("sum", "lone", "pair", "joint", "bernstein", "centred", "squares")
    },
    "tree": {"height"},
    "answer": {"sensitivity", "changes"},
    "choice": {"share", "over", "under"},
    "coin": {"exponent"},
}
"""What a law needs besides scales and steps: grid points, a share, rates per rank, and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a release: its law, the limits of a unit, and the noise."""

    statistic: str
    law: str
    neighbors: str
    epsilon: Fraction  # its share of the claimed ε
    facts: dict[str, Fraction]
    scales: Vector = ()  # of the noise on each integer, in steps
    steps: Vector = ()
    rows: int = 1
    spread: int = 1
    cells: int = 1

    def __post_init__(self) -> None:
        exact_neighbors(self.neighbors)
        laws = (*NOISE, *JOINT, *OTHER)
        self._refuse(self.law in laws, f"the law must be one of {', '.join(laws)}")
        if self.law in JOINT:
            self._refuse(
                all(value >= 0 for value in self.facts.values()) and bool(self.facts),
                "it must have attributes",
            )
        else:
            self._refuse(
                set(self.facts) == _FACTS.get(self.law, set()), "it must have the facts of its law"
            )
        self._refuse(
            min(self.rows, self.spread, self.cells) >= 1,
            "rows, spread and cells must be at least 1",
        )
        numbers = _COORDINATES.get(self.law, 1) if self.law in NOISE else self._cells
        self._refuse(
            len(self.scales) == len(self.steps) == numbers,
            f"it must have {numbers} scales and steps",
        )
        self._refuse(
            all(scale > 0 for scale in (*self.scales, *self.steps)),
            "scales and steps must be positive",
        )
        if self.law in ALWAYS:
            self._refuse(
                self.replaced and self.rows == self.cells == 1,
                "the number of its rows must be public",
            )
        if self.law == "public":
            self._refuse(self.replaced, "a number is public under change-one only")
        if "upper" in self.facts:
            self._refuse(self.facts["lower"] < self.facts["upper"], "lower must be below upper")
        if self.law == "choice":
            rates = self.facts["over"], self.facts["under"]
            self._refuse(
                0 <= self.facts["share"] <= 1 and min(rates) >= 0, "rates must be positive"
            )

    @property
    def _cells(self) -> int:
        """The integers of a law of several attributes."""
        match self.law:
            case "families":
                return len(self.facts)
            case "columns":
                return 1 + sum(
                    1 + (value > 0)
                    for name, value in self.facts.items()
                    if name.endswith(".squares")
                )
        return 0

    def _refuse(self, holds: bool, sentence: str) -> None:
        if not holds:
            raise InvalidParameter(
                f"a part of a certificate ({self.statistic}) is impossible: {sentence}"
            )

    @property
    def replaced(self) -> bool:
        """Whether a unit is replaced, rather than added or removed."""
        return self.neighbors == "change-one"

    @property
    def touched(self) -> int:
        return min(self.cells, self.spread * (2 if self.replaced else 1))

    @property
    def sensitivity(self) -> Fraction:
        """Δ: how far one unit moves the integers in all, in grid units; for a choice, in ranks."""
        if self.law == "choice":
            return Fraction(self.rows * (2 if self.replaced and self.cells > 1 else 1))
        return Fraction(0) if self.law in OTHER else self._most([Fraction(1)] * len(self.scales))[0]

    @property
    def loss(self) -> Fraction:
        """An upper bound on the privacy loss, exact."""
        if self.law in OTHER:  # for a coin, p/(1−p) = e^x
            return (
                self._choice() if self.law == "choice" else self.facts.get("exponent", Fraction(0))
            )
        pairs = list(zip(self.scales, self.steps, strict=True))
        moved, _ = self._most([1 / (scale * step) for scale, step in pairs])
        return moved + sum(((self._rounding(step) / scale) for scale, step in pairs), Fraction())

    @property
    def log_ratio(self) -> arb:
        """ln P(0)/P(m) in closed form, at the largest moves m: a ball that the loss bounds."""
        if self.law == "coin":
            heads = 1 / (1 + (-ball(self.facts["exponent"])).exp())
            return (heads / (1 - heads)).log()
        if self.law in OTHER:
            return ball(self.loss)
        pairs = list(zip(self.scales, self.steps, strict=True))
        _, moves = self._most([1 / (scale * step) for scale, step in pairs])
        steps = [
            math.floor(move / step + self._rounding(step))
            for move, step in zip(moves, self.steps, strict=True)
        ]
        return sum(
            (_log_ratio(scale, step) for scale, step in zip(self.scales, steps, strict=True)),
            arb(0),
        )

    def _rounding(self, step: Fraction) -> Fraction:
        """The steps that rounding can add to the move of an integer."""
        if self.law == "answer":
            return self.facts["changes"]
        return self.touched * (step - 1) / step

    def _most(self, weights: list[Fraction]) -> tuple[Fraction, Vector]:
        """The largest Σ wᵢ·mᵢ over all moves of one unit, and these moves."""
        alone, pairs = (
            self._attributes(weights)
            if self.law in JOINT
            else _row_of(self.law, self.facts, weights)
        )
        if self.law == "units":
            rows: list[Vector] = [(Fraction(self.touched),)]
        elif self.law == "answer":
            rows = [(self.facts["sensitivity"],)]
        elif not self.replaced:
            rows = alone
        elif self.cells == 1:
            rows = pairs
        else:  # removed and added rows are in different groups, or in the same group
            rows = [tuple(2 * move for move in row) for row in alone] + pairs
        many = 1 if self.law in ("units", "answer") else self.rows
        moves = [tuple(many * move for move in row) for row in rows]
        return max(
            (sum((w * m for w, m in zip(weights, move, strict=True)), Fraction()), move)
            for move in moves
        )

    def _attributes(self, weights: list[Fraction]) -> Moves:
        """The moves of a row with several attributes, each at its own worst."""
        if self.law == "families":
            worst: list[Fraction] = []
            for _, family in groupby(
                self.facts.items(), key=lambda fact: fact[0].partition(".")[0]
            ):
                units = [unit for _, unit in family]
                own = [
                    unit * weight
                    for unit, weight in zip(units, weights[len(worst) :], strict=False)
                ]
                top = own.index(max(own))
                worst += [unit if index == top else Fraction(0) for index, unit in enumerate(units)]
            return [tuple(worst)], [tuple(2 * unit for unit in worst)]
        comes: list[Fraction] = []
        moves: list[Fraction] = []
        for column in (name.partition(".")[0] for name in self.facts if name.endswith(".width")):
            law, count = ("squares", 2) if self.facts[f"{column}.squares"] else ("centred", 1)
            own = [*weights[len(comes) : len(comes) + count], Fraction(0)]
            single, both = _row_of(
                law, {"lower": Fraction(0), "upper": self.facts[f"{column}.width"]}, own
            )
            comes += _heaviest(single, own)[:count]
            moves += _heaviest(both, own)[:count]
        arrival = (*comes, Fraction(1))
        return [arrival], [arrival, (*moves, Fraction(0))]

    def _choice(self) -> Fraction:
        share, over, under = (self.facts[name] for name in ("share", "over", "under"))
        comes = max(under * share, over * (1 - share)) + max(under * (1 - share), over * share)
        moves = over + under
        if not self.replaced:
            return self.rows * comes
        return self.rows * (max(moves, comes) if self.cells == 1 else max(moves, 2 * comes))


def _row_of(law: str, facts: dict[str, Fraction], weights: list[Fraction]) -> Moves:  # noqa: PLR0911 - a law each
    """The moves of a row that may be the worst, by its law."""
    zero = Fraction(0)
    lower, upper = facts.get("lower", zero), facts.get("upper", zero)
    width = upper - lower
    match law:
        case "tree":
            return [(facts["height"],)], [(2 * facts["height"],)]
        case "sum":
            return [(max(abs(lower), abs(upper)),)], [(max(upper, zero) - min(lower, zero),)]
        case "lone":
            return [], [(width,)]
        case "pair":
            ends: list[Vector] = [(width, zero), (zero, width)]
            return ends, [*ends, (width, width)]
        case "joint":  # |Δ a(R−a)| = d·|R − s| ≤ d(R−d) where a, a′ differ by d and add up to s
            return [], [
                (d, d * (width - d))
                for d in _tops(width, weights[0] + width * weights[1], -weights[1])
            ]
        case "bernstein":
            linear = 2 * width * (weights[1] - weights[0])
            tops = _tops(width, linear, weights[0] - 2 * weights[1] + weights[2])
            single: list[Vector] = [((width - a) ** 2, 2 * a * (width - a), a**2) for a in tops]
            return single, [
                tuple(map(add, removed, added)) for removed in single for added in single
            ]
        case "centred":  # at either end 2a − R is as far from 0 as it can be
            return [(width, Fraction(1))], [(2 * width, zero), (width, Fraction(1))]
        # with z = |2a − R| the second is R² − 2z²; two rows that differ by d move it by 8d(R−d)
        case "squares":
            comes: list[Vector] = [
                (z, abs(width**2 - 2 * z**2), Fraction(1)) for z in _distances(width, weights)
            ]
            tops = _tops(width, 2 * weights[0] + 8 * width * weights[1], -8 * weights[1])
            return comes, [*comes, *((2 * d, 8 * d * (width - d), zero) for d in tops)]
    return [(Fraction(1),)], [(Fraction(1),)]


def _distances(width: Fraction, weights: list[Fraction]) -> list[Fraction]:
    """The z = |2a − R|, from 0 or 1 to R in steps of 2, where w₀·z + w₁·|R² − 2z²| can be largest.

    Beyond R/√2 it rises, so that R is best; before, it is a parabola with its top at w₀/4w₁.
    """
    least, top = int(width) % 2, math.floor(weights[0] / (4 * weights[1]))
    near = (z for z in range(top - 2, top + 4) if z % 2 == least and least <= z < width)
    return [width, Fraction(least), *map(Fraction, near)]


def _heaviest(moves: list[Vector], weights: list[Fraction]) -> Vector:
    return max(
        moves, key=lambda move: sum((w * m for w, m in zip(weights, move, strict=True)), Fraction())
    )


def _tops(width: Fraction, linear: Fraction, square: Fraction) -> list[Fraction]:
    """Among the integers from 0 to the width, those where linear·a + square·a² can be largest."""
    points = [Fraction(0), width]
    if square < 0:
        vertex = math.floor(-linear / (2 * square))
        points += [Fraction(a) for a in (vertex, vertex + 1) if 0 < a < width]
    return points


def _log_ratio(scale: Fraction, move: int) -> arb:
    """ln P(0) − ln P(move) of the discrete Laplace law, from its probabilities."""
    ratio = (-1 / ball(scale)).exp()
    front = (1 - ratio) / (1 + ratio)
    return front.log() - (front * (ratio.log() * move).exp()).log()


def part_from(stated: Any) -> Part:
    """The part with these JSON fields; `InvalidParameter` for anything else."""
    try:
        return Part(
            statistic=str(stated["statistic"]),
            law=str(stated["law"]),
            neighbors=stated["neighbors"],
            epsilon=read_fraction(stated["epsilon"]),
            facts={str(name): read_fraction(value) for name, value in stated["facts"].items()},
            scales=tuple(map(read_fraction, stated["scales"])),
            steps=tuple(map(read_fraction, stated["steps"])),
            **{name: exact_count(name, stated[name]) for name in ("rows", "spread", "cells")},
        )
    except InvalidParameter:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParameter(
            "a certificate must list its parts with law, facts, scales and steps"
        ) from None


def fields_of(part: Part) -> dict[str, Any]:
    """The JSON fields of a part: its inputs, and what follows from them."""
    inputs = read_json(json.dumps(asdict(part), default=str))  # fractions as texts
    return {**inputs, "sensitivity": str(part.sensitivity), "loss": str(part.loss)}
