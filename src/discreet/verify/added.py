"""What is added to exact integers: a release must follow from these and the noise that was drawn.

    released = what follows from step·(⌊total/step + ½⌋ + noise), for every cell of every total
    total    = the law's combination of integers from the slow reference: rows → n, Σa, Σa², …
    noise    = what the sampler noted when it drew, with the scale of the certificate

So noise that is halved, dropped, reused, exchanged between cells, or drawn with a scale that
depends on the totals, is seen, and so is an integer that the rows do not have. A choice is made
again from its random words. Nothing here calls the engines or the code that releases: totals, fits
and estimates are computed a second time, from their definitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.ask.expression import Cast, Expression
from discreet.ask.kinds import kind_of
from discreet.ask.query import Aggregate, Count, CountUnits, Extreme, Moment, Quantiles
from discreet.ask.statistics import moment
from discreet.calibrate.grid import ValueGrid
from discreet.draw.noted import Noted
from discreet.engines.base import (
    Cells,
    Measure,
    OnGrid,
    Present,
    Product,
    Request,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.errors import InvalidParameter
from discreet.release.plan import Plan
from discreet.release.reports.axes import Axis
from discreet.release.reports.plan import ReportPlan
from discreet.release.statistics.counts import CountDesign, KnownCount
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign
from discreet.verify import reference
from discreet.verify.choices import lawful
from discreet.verify.loss import Part
from discreet.verify.recorded import Draw

Integers = list[Any]
Floats = NDArray[np.float64]

_ERROR = 1e-9
"""How far a released float may be off, as a share of the range: far less than any noise."""

_CANCELLED = 1e-10
"""The same each time that a noisy number of rows is less than the totals from which it follows."""

_DOUBT = 1e-12
"""How unlikely draws must be under their law before a proof fails."""

_BATCH = 2**16
"""Cells of a large answer that are drawn together."""


def refuse(holds: bool, sentence: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise InvalidParameter(sentence)


class Drawn:
    """The draws of a release, to be taken in the order in which they were made."""

    def __init__(self, notes: Sequence[Noted]) -> None:
        self._notes = list(notes)

    def noise(self, count: int, scale: Fraction, what: str) -> list[int]:
        """So many draws of discrete Laplace noise, all of this scale."""
        found: list[int] = []
        while len(found) < count:
            note = self._next("laplace", what)
            refuse(
                note.parameter == scale, f"{what} has noise of another scale than its certificate"
            )
            found += note.drawn.tolist()
        refuse(len(found) == count, f"{what} has other draws than cells")
        return found

    def choices(self, groups: int, what: str) -> list[Noted]:
        """The choices of so many groups."""
        found: list[Noted] = []
        while sum(note.count for note in found) < groups:
            found.append(self._next("choice", what))
        refuse(sum(note.count for note in found) == groups, f"{what} has other choices than groups")
        return found

    def coins(self, count: int, what: str) -> Noted:
        """So many tosses of one coin."""
        note = self._next("coin", what)
        refuse(note.count == count, f"{what} has other coins than it tosses")
        return note

    def end(self, what: str) -> None:
        """Refuse draws that nothing was made of."""
        refuse(not self._notes, f"{what} draws more than it adds")

    def rest(self) -> list[Noted]:
        """All draws that are left."""
        rest, self._notes = self._notes, []
        return rest

    def _next(self, law: str, what: str) -> Noted:
        refuse(bool(self._notes) and self._notes[0].law == law, f"{what} is not drawn by its law")
        return self._notes.pop(0)


class Law:
    """Noise drawn at real totals, held against the law of its scale, by how many are drawn at once.

    size    With t the scale, (|X| + 1)/t is never likelier to be small than an exponential
            variable, nor (|X| − 1)/t to be large. So a sum of n of them is below n·x < n, or above
            n·x > n, with a probability of at most e^(−n(x − 1 − ln x)).
    sign    P(X < 0) = 1/(1 + e^(1/t)); n signs differ from it by d with a probability of at most
            2e^(−2d²/n).
    bits    A bit of X of weight 2^k < t/16 is fair but for 2^k/t: noise that leaves it out tells
            that of a total.
    pairs   |X| is that of a draw near it with a probability of at most 1/t, and m of n such pairs
            are equal with one of at most e^(−m(ln(m/μ) − 1) − μ), μ = n/t.
    again   Of a scale beyond 2⁴⁰ no number comes twice, not even in other releases.
    """

    def __init__(self) -> None:
        self._low: dict[int, list[float]] = {}
        self._high: dict[int, list[float]] = {}
        self._fair: dict[tuple[int, int], list[float]] = {}
        self._alike: dict[int, list[float]] = {}
        self._runs: dict[Fraction, set[bytes]] = {}
        self._wide: dict[Fraction, set[int]] = {}

    def add(self, notes: Sequence[Noted], what: str) -> None:
        """Take a release's noise: no eight numbers are drawn twice, nor one of a wide scale."""
        for note in notes:
            if note.law != "laplace" or not note.count:
                continue
            size, scale = np.abs(note.drawn.astype(np.float64)), float(note.parameter)
            place = min(note.count, 2**20).bit_length()
            for sums, shift in ((self._low, 1), (self._high, -1)):
                total = sums.setdefault(place, [0.0, 0.0])
                total[0] += note.count
                total[1] += float(np.maximum(size + shift, 0).sum() / scale)
            drawn = note.drawn[:_LOOKED_AT]
            self._count(place, -1, drawn < 0, 1 / (1 + math.exp(min(1 / scale, 700))), 0.0)
            if drawn.dtype == np.int64 and scale >= _WIDE:
                self._look(place, drawn, size[: len(drawn)], scale)
                self._refuse_again(note, scale, what)

    def _look(self, place: int, drawn: NDArray[np.int64], size: Floats, scale: float) -> None:
        """Count the bits that are fair, and the pairs that are alike."""
        for bit in range(math.floor(math.log2(scale)) - 4):
            self._count(place, bit, drawn >> bit & 1 == 1, 0.5, 2**bit / scale)
        for lag in {1, 2, 3, len(drawn) // 2} - {0}:
            first, second = size[lag:], size[: len(size) - lag]
            pairs = self._alike.setdefault(place, [0.0, 0.0])
            pairs[0] += float((first == second).sum())
            pairs[1] += len(first) / scale

    def _count(self, place: int, bit: int, heads: Any, chance: float, bias: float) -> None:
        """Count heads of a chance, or about that: of a bit, or of signs, which have number −1."""
        found = self._fair.setdefault((place, bit), [0.0, 0.0, 0.0])
        for index, more in enumerate(
            (len(heads), float(heads.sum()) - len(heads) * chance, len(heads) * bias)
        ):
            found[index] += more

    def _refuse_again(self, note: Noted, scale: float, what: str) -> None:
        if note.count >= _RUN:
            windows = np.lib.stride_tricks.sliding_window_view(note.drawn, _RUN)[:_LOOKED_AT]
            found = {window.tobytes() for window in windows}
            known = self._runs.setdefault(note.parameter, set())
            refuse(
                len(found) == len(windows) and not found & known,
                f"{what} uses the same noise twice",
            )
            known |= found
        elif scale >= _WIDEST:
            numbers, before = set(note.drawn.tolist()), self._wide.setdefault(note.parameter, set())
            refuse(
                len(numbers) == note.count and not numbers & before,
                f"{what} uses the same noise twice",
            )
            before |= numbers

    @property
    def draws(self) -> int:
        """How many draws of noise were taken."""
        return sum(int(count) for count, _ in self._low.values())

    def improbable(self) -> list[str]:
        """In words, the noise that does not follow its law."""
        wrong = []
        for place in sorted(self._low):
            for (count, total), side in ((self._low[place], 1), (self._high[place], -1)):
                mean = total / count
                wide = mean > 0 and _exponent(mean) * count > -math.log(_DOUBT)
                if wide and (mean < 1) == (side == 1):
                    wrong.append(
                        f"{_drawn(place)} is too {'small' if side == 1 else 'large'} for its scale"
                    )
        unfair = {
            (place, "signs" if bit < 0 else "bits")
            for (place, bit), (count, off, bias) in self._fair.items()
            if abs(off) > bias + math.sqrt(count * math.log(2 / _DOUBT) / 2)
        }
        wrong += [f"{_drawn(place)} has {what} that are not fair" for place, what in sorted(unfair)]
        for place, (alike, expected) in self._alike.items():
            if alike > expected and alike * (
                math.log(alike / expected) - 1
            ) + expected > -2 * math.log(_DOUBT):
                wrong.append(f"{_drawn(place)} is too often as large as noise beside it")
        return wrong


def _drawn(place: int) -> str:
    return f"noise that is drawn for up to {2**place - 1:,} numbers at once"


_RUN, _WIDE, _WIDEST = 8, 1000, 2.0**40
"""So many numbers in a row, of at least this scale, agree with others by chance once in 10²⁰ pairs;
one number of the last scale does so once in 10¹²."""

_LOOKED_AT = 2**17
"""Of a long array."""


def _exponent(mean: float) -> float:
    return mean - 1 - math.log(mean)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a column must hold: integers exactly, or floats within a distance."""

    values: Any
    within: Any = 0
    """One distance for all, or one for each."""

    def require(self, found: Sequence[Any] | NDArray[Any], what: str) -> None:
        """Refuse numbers that are not these."""
        numbers = found.tolist() if isinstance(found, np.ndarray) else list(found)
        refuse(len(numbers) == len(self.values), f"{what} has another number of cells")
        if isinstance(self.within, int) and not self.within:
            same = all(mine == theirs for mine, theirs in zip(numbers, self.values, strict=True))
        else:
            mine, theirs = (
                np.array([float(one) for one in column]) for column in (numbers, self.values)
            )
            same = bool((np.abs(mine - theirs) <= self.within).all())
        refuse(same, f"{what} is not the exact number plus the noise that was drawn for it")


# -- integers --------------------------------------------------------------------------------------


def log2(number: Fraction) -> int:
    """⌊log₂ number⌋."""
    power = 0
    while number >= 2:
        number, power = number / 2, power + 1
    while number < 1:
        number, power = number * 2, power - 1
    return power


@cache
def grid_within(lower: Fraction, upper: Fraction, bits: int, whole: bool) -> ValueGrid:
    """A column's grid: about 2^bits steps, or step 1 for whole numbers if that is as fine."""
    exponent = max(log2(upper - lower) - bits, log2(max(abs(lower), abs(upper))) - 50, -1022)
    exact = whole and exponent <= 0 and lower.denominator == upper.denominator == 1
    step = Fraction(1) if exact else Fraction(2) ** exponent
    return ValueGrid(
        exponent=0 if exact else exponent,
        lower=math.floor(lower / step),
        upper=math.ceil(upper / step),
        exact=exact,
    )


def on_grid(of: Expression, grid: ValueGrid, missing: Fraction | None) -> OnGrid:
    """An expression on its grid: a truth is 1 or 0; a missing value is as declared, or dropped."""
    point = (
        None
        if missing is None
        else math.floor(missing / Fraction(2) ** grid.exponent + Fraction(1, 2))
    )
    point = None if point is None else min(max(point, grid.lower), grid.upper)
    return OnGrid(Cast(of, "number") if kind_of(of) == "truth" else of, grid, point)


def moment_grid(of: Moment, squares: bool) -> ValueGrid:
    """The grid of a summed column: 30 bits, 22 for squares, fewer for a declared precision."""
    bits = 22 if squares else 30
    if of.precision is not None:
        bits = min(bits, max(1, math.ceil((of.upper - of.lower) / of.precision).bit_length()))
    return grid_within(of.lower, of.upper, bits, of.whole and of.precision is None)


def rank_grid(of: Quantiles | Extreme, cells: int) -> ValueGrid:
    """The grid of a quantile, or of an extreme, in so many groups."""
    bits = 5 if isinstance(of, Extreme) else max(9, min(16, 24 - (cells - 1).bit_length()))
    return grid_within(of.lower, of.upper, bits, of.whole)


@dataclass(frozen=True, slots=True)
class Column:
    """A column whose sums are released."""

    of: Moment
    squares: bool
    names: tuple[str, ...]
    statistics: tuple[str, ...]
    """The statistic of each name; a + marks that of a sample."""

    @property
    def grid(self) -> ValueGrid:
        return moment_grid(self.of, self.squares)

    @property
    def value(self) -> OnGrid:
        return on_grid(self.of.of, self.grid, self.of.missing)

    def measures(self) -> list[Measure]:
        found: list[Measure] = [Present(self.value), Total(self.value), Squares(self.value)]
        return found[: 3 if self.squares else 2]


def column_of(names: Sequence[str], aggregates: Mapping[str, Aggregate]) -> Column:
    """The only column of some numbers of a question."""
    moments = [one for one in (aggregates[name] for name in names) if isinstance(one, Moment)]
    subjects = {
        (one.of, one.lower, one.upper, one.whole, one.missing, one.precision) for one in moments
    }
    refuse(
        len(moments) == len(names) and len(subjects) == 1,
        "statistics that share sums must be of one column",
    )
    statistics = tuple(one.statistic + "+" * one.sample for one in moments)
    return Column(
        moments[0],
        any(moment(one).base == "variance" for one in statistics),
        tuple(names),
        statistics,
    )


@dataclass(frozen=True, slots=True)
class Joint:
    """Counts and columns that are released together."""

    counts: tuple[tuple[str, Count], ...]
    columns: tuple[Column, ...]
    families: tuple[tuple[tuple[int, ...], Fraction], ...]

    @property
    def conditions(self) -> list[Expression]:
        """The conditions of counts that are not of a column's values."""
        found = (
            count.of
            for _, count in self.counts
            if count.of is not None and self.counted(count) is None
        )
        return list(dict.fromkeys(found))

    def counted(self, count: Count) -> int | None:
        """The column whose values, or truths, are counted."""
        alike = (
            index
            for index, column in enumerate(self.columns)
            if column.of.of == count.of and column.of.missing is None
        )
        return next(alike, None)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The columns that are multiplied."""
        return [
            (attributes[0], attributes[1])
            for attributes, _ in self.families
            if len(attributes) == 2
        ]

    def measures(self) -> list[Measure]:
        found: list[Measure] = [Rows()]
        for column in self.columns:
            found += column.measures()
        found += [Rows(of) for of in self.conditions]
        for first, second in self.pairs:
            values = self.columns[first].value, self.columns[second].value
            found += [Product(*values, powers) for powers in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return found


Asked = Count | CountUnits | Column | Joint | Quantiles | Extreme


def asked_in(plan: Plan) -> list[tuple[tuple[str, ...], Asked]]:
    """For each share of a plan, the names of its numbers, and what they ask of the rows."""
    aggregates: dict[str, Aggregate] = {}
    for name, aggregate in plan.query.aggregates:
        many = len(aggregate.shares) if isinstance(aggregate, Quantiles) else 1
        aggregates |= (
            {f"{name}.{index}": aggregate for index in range(many)}
            if many > 1
            else {name: aggregate}
        )
    found: list[tuple[tuple[str, ...], Asked]] = []
    for share in plan.shares:
        design, names = share.design, tuple(share.design.names)
        match design:
            case JointDesign():
                counts = []
                for name, _ in design.counts:
                    count = aggregates[name]
                    counts.append((name, count if isinstance(count, Count) else Count()))
                columns = tuple(column_of(column.names, aggregates) for column in design.columns)
                found.append((names, Joint(tuple(counts), columns, design.families)))
            case MomentDesign():
                found.append((names, column_of(names, aggregates)))
            case CountDesign() | KnownCount() | QuantileDesign() | ExtremeDesign():
                [subject] = {aggregates[name] for name in names}
                refuse(
                    not isinstance(subject, Moment), f"{names[0]} is released as another statistic"
                )
                found.append((names, subject))  # type: ignore[arg-type]
            case _:
                raise InvalidParameter(f"a proof knows no design {type(design).__name__}")
    named = sorted(name for names, _ in found for name in names)
    refuse(named == sorted(aggregates), "each number of a question must be released once")
    return found


def measures_of(asked: Asked, cells: int) -> list[Measure]:
    """The integers that a share needs."""
    match asked:
        case Count(of):
            return [Rows(of)]
        case CountUnits():
            return [Units()]
        case Quantiles() | Extreme():
            return [Cells(on_grid(asked.of, rank_grid(asked, cells), asked.missing))]
    return asked.measures()


def request_of(plan: Plan) -> Request:
    """What a plan must read of the rows."""
    policy, cells = plan.study.policy, math.prod(group.size for group in plan.query.groups)
    measures = [measure for _, asked in asked_in(plan) for measure in measures_of(asked, cells)]
    return Request(
        measures=tuple(measures),
        groups=plan.query.groups,
        where=plan.query.where,
        unit=policy.unit_column,
        max_rows=policy.max_rows,
        max_groups=policy.max_groups,
    )


# -- totals ----------------------------------------------------------------------------------------


def totals_of(  # noqa: PLR0911 - one for each law
    law: str, grid: ValueGrid, n: int, total: int, squared: int = 0
) -> list[int]:
    """The totals of a law from the number, the sum and the sum of squares of a = x − L."""
    width, mixed = grid.width, grid.width * total - squared
    match law:
        case "sum":
            return [total + grid.lower * n]
        case "lone":
            return [total]
        case "pair":
            return [total, n * width - total]
        case "centred":
            return [2 * total - n * width, n]
        case "joint":
            return [total, mixed]
        case "squares":
            return [2 * total - n * width, 8 * mixed - n * width**2, n]
        case "bernstein":
            return [n * width**2 - 2 * width * total + squared, 2 * mixed, squared]
    raise InvalidParameter(f"a proof knows no totals of the law {law}")


def noisy(total: int, step: Fraction, noise: int) -> int:
    """A total, rounded to its step, with noise."""
    return (
        int(step * (math.floor(total / step + Fraction(1, 2)) + noise))
        if step > 1
        else total + noise
    )


def with_noise(columns: Sequence[Sequence[int]], part: Part, drawn: Drawn) -> list[list[int]]:
    """The totals of some cells, column by column, with the noise that was drawn for each."""
    found = []
    for column, scale, step in zip(columns, part.scales, part.steps, strict=True):
        noise = drawn.noise(len(column), scale, part.statistic)
        found.append([noisy(total, step, draw) for total, draw in zip(column, noise, strict=True)])
    return found


# -- estimates -------------------------------------------------------------------------------------


def spread_of(law: str, width: int, totals: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
    """The weights over which a value u spreads, and their noisy sums, from the noisy totals."""

    def over(column: Sequence[int], unit: int) -> Floats:
        return np.array([total / unit for total in column])

    match law:
        case "pair":
            return np.array([1.0, 0.0]), np.array([over(column, width) for column in totals])
        case "centred":
            half, rows = over(totals[0], 2 * width), over(totals[1], 1)
            return np.array([1.0, 0.0]), np.array([half + rows / 2, rows / 2 - half])
        case "bernstein":
            return np.array([0.0, 0.5, 1.0]), np.array(
                [over(column, width**2) for column in totals]
            )
    centre = over(totals[0], 2 * width)
    mixed = over(totals[1], 8 * width**2)
    rows = over(totals[2], 1)
    sums = [3 / 8 * rows - centre - mixed, 2 * mixed + rows / 4, 3 / 8 * rows + centre - mixed]
    return np.array([0.0, 0.5, 1.0]), np.array(sums)


def statistic_of(
    name: str, grid: ValueGrid, values: Floats, sums: Floats, largest: Floats | None = None
) -> Expected:
    """A statistic of each group from the noisy sums over which its values spread.

    `largest` is the size of the numbers from which the sums follow, if that is not their own.
    """
    row, sample = moment(name), name.endswith("+")
    size, width, step = sums.sum(axis=0), float(grid.width), float(Fraction(2) ** grid.exponent)
    largest = np.abs(sums).sum(axis=0) if largest is None else largest
    if row.base == "count":
        return Expected(size, _ERROR * (1 + largest))
    if row.base == "sum":
        weights = grid.lower + values * width
        return Expected(
            weights @ sums * step, _ERROR * step * (np.abs(weights).max() * largest + 1)
        )
    with np.errstate(all="ignore"):
        share = np.where(size > 0, np.clip(values @ sums / size, 0, 1), 0.5)
        # where a number of rows is 0 up to rounding, it is above 0 in one computation
        # and not in the other
        loose = _ERROR + _CANCELLED * (1 + largest) / np.maximum(np.abs(size), 1e-300)
        if row.base == "mean":
            found, unit = (grid.lower + share * width) * step, (width + abs(grid.lower)) * step
        else:
            found = np.where(
                size > 0, np.clip(sums[-1] / size - share**2, 0, share * (1 - share)), 0
            )
            more = np.maximum(size, 2)
            unit = (width * step) ** 2
            found = found * unit * (more / (more - 1) if sample else 1)
            loose = loose * (2 if sample else 1)
    return _shaped(name, found, loose * unit)


def _shaped(name: str, found: Floats, within: Any) -> Expected:
    """An increasing function of a mean or of a variance; a root is compared by its square."""
    if moment(name).shape is None:
        return Expected(found, within)
    refuse(name.rstrip("+") == "std", f"a proof knows no {name}")
    roots = np.sqrt(found)
    return Expected(roots, np.sqrt(found + within) - np.sqrt(np.maximum(found - within, 0)))


def known_of(name: str, grid: ValueGrid, n: int, totals: Sequence[int]) -> Expected:
    """A statistic of a public number of values from its noisy totals."""
    row, step, width, many = moment(name), Fraction(2) ** grid.exponent, grid.width, max(n, 1)
    if row.base == "sum":
        value = (totals[0] + n * grid.lower) * step
        return Expected([value], 0 if grid.exact else abs(value) * Fraction(1, 10**12))
    mean = min(max(Fraction(totals[0], many), Fraction(0)), Fraction(width))
    if row.base == "mean":
        return _shaped(
            name,
            np.array([float((grid.lower + mean) * step)]),
            _ERROR * float((width + abs(grid.lower)) * step),
        )
    variance = min(
        max(mean * (width - mean) - Fraction(totals[1], many), Fraction(0)), Fraction(width**2, 4)
    )
    factor = Fraction(many, many - 1) if name.endswith("+") and many > 1 else Fraction(1)
    return _shaped(
        name, np.array([float(variance * step**2 * factor)]), _ERROR * float((width * step) ** 2)
    )


def sums_released(
    names: Mapping[str, str],
    grid: ValueGrid,
    part: Part,
    measured: Sequence[Sequence[int]],
    noisy_totals: list[list[int]],
) -> dict[str, Expected]:
    """The statistics, by name, that follow from the noisy totals of one column."""
    if part.law in ("lone", "joint"):
        [n] = measured[0]
        return {
            name: known_of(statistic, grid, n, [column[0] for column in noisy_totals])
            for name, statistic in names.items()
        }
    if part.law == "sum":
        step = Fraction(2) ** grid.exponent
        values = [total * step for total in noisy_totals[0]]
        within = (
            0 if grid.exact else max((abs(float(value)) for value in values), default=0.0) * _ERROR
        )
        return {name: Expected(values, within) for name in names}
    found = spread_of(part.law, grid.width, noisy_totals)
    return {name: statistic_of(statistic, grid, *found) for name, statistic in names.items()}


# -- several columns -------------------------------------------------------------------------------


def joint_totals(asked: Joint, law: str, measured: Sequence[Sequence[int]]) -> list[list[int]]:
    """The totals of a joint release, cell by cell, from its measures."""
    rows, rest, columns = measured[0], list(measured[1:]), []
    for column in asked.columns:
        size = 3 if column.squares else 2
        columns.append([list(one) for one in rest[:size]])
        del rest[:size]
    holding = [rest.pop(0) for _ in asked.conditions]
    both = {pair: [rest.pop(0) for _ in range(4)] for pair in asked.pairs}
    groups = range(len(rows))
    found: list[list[int]] = []

    def cells(law_of_one: str, index: int) -> list[list[int]]:
        grid = asked.columns[index].grid
        return [
            list(one)
            for one in zip(
                *(
                    totals_of(law_of_one, grid, *values)
                    for values in zip(*columns[index], strict=True)
                ),
                strict=True,
            )
        ]

    if law == "columns":
        for attributes, _ in asked.families:
            for index in attributes:
                found += cells("squares" if asked.columns[index].squares else "centred", index)[:-1]
        return [*found, list(rows)]
    for attributes, _ in asked.families:
        if not attributes:
            found.append(list(rows))
        elif len(attributes) == 2:
            by_group = [
                _products(
                    asked,
                    attributes,
                    rows[g],
                    [[one[g] for one in columns[i]] for i in attributes],
                    [one[g] for one in both[attributes[0], attributes[1]]],
                )
                for g in groups
            ]
            found += [list(one) for one in zip(*by_group, strict=True)]
        elif attributes[0] < len(asked.columns):
            [index] = attributes
            found += cells("bernstein" if asked.columns[index].squares else "pair", index)
            if asked.columns[index].of.missing is None:
                found.append([rows[g] - columns[index][0][g] for g in groups])
        else:
            true = holding[attributes[0] - len(asked.columns)]
            found += [list(true), [rows[g] - true[g] for g in groups]]
    return found


def _products(
    asked: Joint, pair: tuple[int, ...], rows: int, own: list[list[int]], both: list[int]
) -> list[int]:
    """Σ p·q over the rows, for p in {a, R−a, no a} and q in {b, S−b, no b}."""
    wide, other = (asked.columns[index].grid.width for index in pair)
    missing = [asked.columns[index].of.missing is None for index in pair]
    (n, s, *_), (m, t, *_), (count, left, right, mixed) = *own, both
    firsts = {"a": (0, 1), "rest": (wide, -1), "none": None}
    seconds = {"a": (0, 1), "rest": (other, -1), "none": None}
    found = []
    for p in ("a", "rest", *(["none"] if missing[0] else [])):
        for q in ("a", "rest", *(["none"] if missing[1] else [])):
            x, y = firsts[p], seconds[q]
            if x is not None and y is not None:
                found.append(
                    x[0] * y[0] * count
                    + x[1] * y[0] * left
                    + x[0] * y[1] * right
                    + x[1] * y[1] * mixed
                )
            elif x is not None:  # rows with the first value and without the second
                found.append(x[0] * (n - count) + x[1] * (s - left))
            elif y is not None:
                found.append(y[0] * (m - count) + y[1] * (t - right))
            else:
                found.append(rows - n - m + count)
    return found


def joint_released(asked: Joint, law: str, totals: list[list[int]]) -> dict[str, Expected]:
    """The numbers of a joint release, by name, from its noisy totals."""
    if law == "columns":
        return _centred_released(asked, totals)
    shape = [
        *(
            [width_of(column)] * (3 if column.squares else 2) + [1] * (column.of.missing is None)
            for column in asked.columns
        ),
        *([1, 1] for _ in asked.conditions),
    ]
    units = [
        [math.prod(cell) for cell in product(*(shape[index] for index in attributes))]
        for attributes, _ in asked.families
    ]
    margins = [_margin(tuple(map(len, shape)), attributes) for attributes, _ in asked.families]
    weights = np.concatenate(
        [
            np.full(len(unit), float(part))
            for unit, (_, part) in zip(units, asked.families, strict=True)
        ]
    )
    flat = [unit for family in units for unit in family]
    drawn = np.array(
        [[total / unit for total in column] for column, unit in zip(totals, flat, strict=True)]
    )
    # the nearest table, in units of the noise: each family is a margin of it
    table = np.linalg.pinv(np.vstack(margins) * weights[:, None], rcond=1e-10) @ (
        drawn * weights[:, None]
    )
    within = _ERROR * (1 + np.abs(drawn).max(axis=0))

    def sums(index: int) -> Floats:
        return np.asarray(_margin(tuple(map(len, shape)), (index,)) @ table)

    found: dict[str, Expected] = {}
    for name, count in asked.counts:
        at = asked.counted(count)
        if count.of is None:
            number = table.sum(axis=0)
        elif at is None:
            number = sums(len(asked.columns) + asked.conditions.index(count.of))[0]
        else:
            column = asked.columns[at]
            values = np.array([0.0, 0.5, 1.0] if column.squares else [1.0, 0.0])
            own = sums(at)[: len(values)]
            number = values @ own if kind_of(count.of) == "truth" else own.sum(axis=0)
        found[name] = Expected(number, 0.5 + within)  # it is rounded to an integer
    for index, column in enumerate(asked.columns):
        values = np.array([0.0, 0.5, 1.0] if column.squares else [1.0, 0.0])
        found |= _named(column, values, sums(index)[: len(values)], np.abs(drawn).max(axis=0))
    return found


def width_of(column: Column) -> int:
    """What a row adds to the sums of a column in all."""
    return column.grid.width ** (2 if column.squares else 1)


def _named(
    column: Column, values: Floats, sums: Floats, largest: Floats | None = None
) -> dict[str, Expected]:
    statistic = dict(zip(column.names, column.statistics, strict=True))
    return {
        name: statistic_of(statistic[name], column.grid, values, sums, largest)
        for name in column.names
    }


@cache
def _margin(shape: tuple[int, ...], attributes: tuple[int, ...]) -> Floats:
    """The cells of some attributes as sums of the cells of the table of all."""
    cells = list(product(*map(range, shape)))
    chosen = list(product(*(range(shape[index]) for index in attributes)))
    return np.array(
        [
            [float(tuple(cell[index] for index in attributes) == one) for cell in cells]
            for one in chosen
        ]
    )


def _centred_released(asked: Joint, totals: list[list[int]]) -> dict[str, Expected]:
    """The same with centred totals for each column; the last total is the number of all rows."""
    found: dict[str, Expected] = {}
    for name, _ in asked.counts:
        found[name] = Expected([float(total) for total in totals[-1]], 0.5)
    start = 0
    for attributes, _ in asked.families:
        for index in attributes:
            column = asked.columns[index]
            law, size = ("squares", 2) if column.squares else ("centred", 1)
            values, sums = spread_of(
                law, column.grid.width, [*totals[start : start + size], totals[-1]]
            )
            found |= _named(column, values, sums)
            start += size
    return found


# -- choices ---------------------------------------------------------------------------------------


def chosen_cells(
    drawn: Drawn,
    part: Part,
    counts: Sequence[NDArray[np.int64]],
    offset: Fraction,
    *,
    beyond: bool = False,
) -> list[int]:
    """For each group the cell chosen near a rank, after its costs and the choice are redone."""
    notes = drawn.choices(part.cells, part.statistic)
    terms = (part.facts["share"], offset, part.facts["over"], part.facts["under"], beyond, None)
    draw = Draw("choice", terms, tuple(notes))
    for group in range(part.cells):
        unit, costs = draw.costs(part.cells, group)
        excess = costs - lawful(counts[group], terms, unit, costs.size, part)
        excess -= excess.min()
        refuse(
            not excess.any()
            or (not beyond and np.unique(excess).size == 2 and _even(np.flatnonzero(excess == 0))),
            f"a rank of {part.statistic} does not cost what the rows say",
        )
    for note in notes:
        _require_choice(note, part.statistic)
    return [int(cell) for note in notes for cell in note.drawn]


def _even(points: NDArray[np.int64]) -> bool:
    """Whether points are a power of two apart."""
    gaps = np.unique(np.diff(points))
    return gaps.size == 1 and int(gaps[0]).bit_count() == 1


def _require_choice(note: Noted, what: str) -> None:
    """Refuse chosen cells other than those of the random words: the earliest run, and its cell."""
    runs, words = note.runs, note.words
    if words is None:
        raise InvalidParameter(f"a choice of {what} must come from random words")
    first, second = words[: runs.sizes.size], words[runs.sizes.size :]
    ends = np.append(runs.rows, runs.sizes.size)
    uniform = first.astype(np.float64) * 2.0**-64
    with np.errstate(all="ignore"):
        times = np.log(-np.expm1(np.log1p(-uniform) / runs.sizes))
    for row, (start, stop) in enumerate(pairwise(ends.tolist())):
        least = int(runs.exponents[start:stop].min())
        far = np.array(
            [float(note.parameter * (int(one) - least)) for one in runs.exponents[start:stop]]
        )
        late = times[start:stop] + far
        rivals = np.flatnonzero(late <= late.min() + 1e-6) + start  # floats do not tell these apart
        sizes = runs.sizes[rivals].astype(np.uint64)
        if len(words) != runs.sizes.size + len(runs.rows):  # a word was drawn again
            continue
        cells = runs.cell(rivals, (second[row] % sizes).astype(np.int64))
        refuse(
            int(note.drawn[row]) in cells.tolist(),
            f"a choice of {what} is not that of its random words",
        )


def rank_reach(cells: int, rate: Fraction, doubt: Fraction) -> Fraction:
    """T = ln(cells/(2·doubt))/rate, rounded up to quarters."""
    exact = (
        (arb(cells) * doubt.denominator / (2 * doubt.numerator)).log()
        * 4
        * rate.denominator
        / rate.numerator
    )
    return Fraction(_rounded_up(exact), 4)


def _rounded_up(exact: arb) -> int:
    whole = exact.ceil().unique_fmpz()
    if whole is None:
        raise InvalidParameter("a rank lies too near to an integer to be told from it")
    return int(whole)


def coarse_of(grid: ValueGrid) -> tuple[ValueGrid, NDArray[np.int64]]:
    """The grid of brackets, about 2⁹ points, and where each finer point goes: to the nearest."""
    bits = max(0, (grid.width + 1).bit_length() - 10)

    def near(point: Any) -> Any:
        return point + (1 << bits) // 2 >> bits

    lower, upper = near(grid.lower), near(grid.upper)
    coarse = ValueGrid(
        exponent=grid.exponent + bits, lower=lower, upper=upper, exact=bits == 0 and grid.exact
    )
    return coarse, near(grid.lower + np.arange(grid.width + 1)) - lower


def quantile_released(
    parts: Sequence[Part],
    grid: ValueGrid,
    counts: Sequence[NDArray[np.int64]],
    drawn: Drawn,
    level: Fraction | None,
) -> Expected:
    """A quantile of each group from its choices: with a level, the ends of its bracket first."""
    lows: Any = np.full(parts[0].cells, 2 * grid.lower)
    highs: Any = np.full(parts[0].cells, 2 * grid.upper)
    if level is not None:
        coarse, places = coarse_of(grid)
        gathered = [
            np.bincount(places, weights=one, minlength=coarse.width + 1).astype(np.int64)
            for one in counts
        ]
        ends = []
        for part, side in zip(parts, (-1, 1), strict=False):
            reach = rank_reach(coarse.width + 3, part.facts["over"], (1 - level) / 2)
            ends.append(chosen_cells(drawn, part, gathered, side * reach, beyond=True))
        first, last = np.clip(np.sort(ends, axis=0) + coarse.lower - 1, coarse.lower, coarse.upper)
        times = 1 << coarse.exponent - grid.exponent
        rounding = (0 if coarse.exact else times) + (0 if grid.exact else 1)
        lows = np.maximum(2 * times * first - rounding, lows)
        highs = np.minimum(2 * times * last + rounding, highs)
    chosen = chosen_cells(drawn, parts[-1], counts, Fraction(0))
    doubled = np.clip(2 * (grid.lower + np.array(chosen)), lows, highs).tolist()
    if grid.exact:
        return Expected([one // 2 for one in doubled])
    return Expected([math.ldexp(one, grid.exponent - 1) for one in doubled])


def extreme_released(
    part: Part, of: Extreme, grid: ValueGrid, counts: Sequence[NDArray[np.int64]], drawn: Drawn
) -> Expected:
    """A minimum or maximum of each group from its choice."""
    side = 1 if of.side == "max" else -1
    rate = max(part.facts["over"], part.facts["under"])
    beyond = _rounded_up(arb(grid.width + 1).log() * rate.denominator / rate.numerator)
    chosen = chosen_cells(drawn, part, counts, Fraction(-side * beyond))
    points = [grid.lower + cell for cell in chosen]
    if grid.exact:
        return Expected(points)
    step = Fraction(2) ** grid.exponent
    ends = [min(max((point + Fraction(side, 2)) * step, of.lower), of.upper) for point in points]
    return Expected([float(end) for end in ends])


# -- a plan ----------------------------------------------------------------------------------------


def expected_of(
    plan: Plan,
    parts: Sequence[Sequence[Part]],
    measured: Sequence[Any],
    drawn: Drawn,
    *,
    in_file: bool = False,
) -> dict[str, Expected]:
    """Every number that a plan releases, by name, from exact integers and the release's draws."""
    asked = asked_in(plan)
    sizes = [len(measures_of(one, plan.cells)) for _, one in asked]
    ends = [*accumulate(sizes, initial=0)]
    choice = any(isinstance(one, Quantiles | Extreme) for _, one in asked)
    batches = [slice(0, plan.cells)]
    if in_file or not choice:
        batches = [
            slice(start, min(start + _BATCH, plan.cells)) for start in range(0, plan.cells, _BATCH)
        ]
    columns: list[list[list[int]]] = [[] for _ in asked]
    found: dict[str, Expected] = {}
    for batch in batches:
        for index, ((names, one), own) in enumerate(zip(asked, parts, strict=True)):
            exact = [column[batch] for column in measured[ends[index] : ends[index + 1]]]
            match one:
                case Quantiles() | Extreme():
                    found |= _ranked(names, one, own, exact[0], drawn, plan)
                case _ if own[0].law == "public":
                    found[names[0]] = Expected(exact[0])
                case _:
                    totals = with_noise(_totals(one, own[0], exact), own[0], drawn)
                    columns[index] = (
                        totals
                        if not columns[index]
                        else [a + b for a, b in zip(columns[index], totals, strict=True)]
                    )
    for (names, one), own, totals, start in zip(asked, parts, columns, ends, strict=False):
        match one:
            case Joint():
                found |= joint_released(one, own[0].law, totals)
            case Column():
                statistics = dict(zip(names, one.statistics, strict=True))
                found |= sums_released(statistics, one.grid, own[0], [measured[start]], totals)
            case Count() | CountUnits() if own[0].law != "public":
                found[names[0]] = Expected(totals[0])
    return found


def _totals(asked: Asked, part: Part, exact: Sequence[Sequence[int]]) -> list[list[int]]:
    """The totals of some cells that get noise."""
    match asked:
        case Joint():
            return joint_totals(asked, part.law, exact)
        case Column():
            rows = [
                totals_of(part.law, asked.grid, *map(int, cell))
                for cell in zip(*exact, strict=True)
            ]
            return [list(column) for column in zip(*rows, strict=True)]
    return [list(exact[0])]


def _ranked(
    names: Sequence[str],
    asked: Quantiles | Extreme,
    parts: Sequence[Part],
    counts: Any,
    drawn: Drawn,
    plan: Plan,
) -> dict[str, Expected]:
    grid = rank_grid(asked, plan.cells)
    if isinstance(asked, Extreme):
        return {names[0]: extreme_released(parts[0], asked, grid, counts, drawn)}
    found = {}
    for index, name in enumerate(names):
        own = parts[3 * index : 3 * index + 3]
        refuse(
            own[-1].facts["share"] == asked.shares[index],
            f"{own[-1].statistic} is at another share",
        )
        found[name] = quantile_released(own, grid, counts, drawn, plan.level)
    return found


# -- a report --------------------------------------------------------------------------------------


def _coarser(table: NDArray[Any], placed: Sequence[tuple[Axis, int]]) -> NDArray[Any]:
    """A table added up to a level of each of its axes."""
    for place, (axis, level) in enumerate(placed):
        cells = list(range(axis.sizes[-1]))
        for step in range(axis.levels, level, -1):
            above = [0] * axis.sizes[step] if step == 1 else axis.parents[step - 2]
            cells = [above[cell] for cell in cells]
        shape = [*table.shape[:place], axis.sizes[level], *table.shape[place + 1 :]]
        added = np.zeros(shape, object)
        for finest, cell in enumerate(cells):
            np.moveaxis(added, place, 0)[cell] += np.moveaxis(table, place, 0)[finest]
        table = added
    return table


def report_totals(plan: ReportPlan, rows: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """The exact columns of all measured sets of a report, from the rows."""
    policy, design = plan.study.policy, plan.design
    groups = [attribute.group for attribute in design.attributes if attribute.group is not None]
    numbered = [
        index for index, one in enumerate(design.attributes) if one.number is not None and one.half
    ]
    columns = [Column(design.attributes[index].number.of, False, (), ()) for index in numbered]  # type: ignore[union-attr]
    sets = []
    for levels, part in plan.measured:
        halves = tuple(at for at, index in enumerate(numbered) if levels[index])
        placed = [
            (one.axis, level)
            for level, one in zip(levels, design.attributes, strict=True)
            if one.group is not None
        ]
        sets.append((placed, halves, part))
    singles = sorted({at for _, halves, _ in sets for at in halves})
    pairs = list(dict.fromkeys(halves for _, halves, _ in sets if len(halves) == 2))
    measures: list[Measure] = [Rows()]
    for at in singles:
        measures += columns[at].measures()
    for first, second in pairs:
        values = columns[first].value, columns[second].value
        measures += [Product(*values, powers) for powers in ((0, 0), (1, 0), (0, 1), (1, 1))]
    request = Request(
        tuple(measures),
        tuple(groups),
        plan.layout.where,
        policy.unit_column,
        max_rows=policy.max_rows,
        max_groups=policy.max_groups,
    )
    shape = [len(group.keys) + (group.other is not None) for group in groups]
    tables = [np.array(one, object).reshape(shape) for one in reference.fetch(request, rows)]
    found: list[list[int]] = []
    for placed, halves, part in sets:
        cells = [np.ravel(_coarser(table, placed)).tolist() for table in tables]
        own = [cells[1 + 2 * singles.index(at) : 3 + 2 * singles.index(at)] for at in halves]
        start = 1 + 2 * len(singles) + 4 * (pairs.index(halves) if halves in pairs else 0)
        measured = [
            cells[0],
            *(one for pair in own for one in pair),
            *(cells[start : start + 4] if len(halves) == 2 else []),
        ]
        asked = Joint((), tuple(columns[at] for at in halves), ((tuple(range(len(halves))), part),))
        found += joint_totals(asked, "families", measured)
    return found
