"""Mechanisms to audit: discreet's own statistics (`subjects`), and broken ones that an audit must
catch (`controls`).

A design releases many groups at once, each with independent noise, so groups with the same true
integers are independent draws of one release. `x` is then these integers, and its neighbor is the
worst that one unit can do to them. For a joint question or a report, `x` is a list of rows, and the
design computes the totals. Quantiles, minimum and maximum are released one at a time.

Each broken mechanism violates its claim in a way that was seen in practice: it is right except for
one line, or one parameter of the code that releases. It takes `size`, so that millions of draws are
cheap, uses our own entropy, and protects nobody. Textbook noise on floats is also the naive
mechanism that attacks break.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from discreet import arrays
from discreet.ask.expression import Column
from discreet.ask.keys.column import Keys
from discreet.ask.query import Count, Group, Moment
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.draw.coin import flips
from discreet.draw.entropy import keystream
from discreet.draw.vector import fill
from discreet.engines.base import Exact, OnGrid, Product, Total
from discreet.engines.integers import Integers
from discreet.release.design import Released, items
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.release.profiles.octaves import OctaveDesign
from discreet.release.reports.axes import Axis
from discreet.release.reports.design import ReportDesign
from discreet.release.reports.tables import Attribute
from discreet.release.statistics.counts import CountDesign
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.response import randomized_response

Floats = NDArray[np.float64]

EPSILON = Fraction(1)
_LEVEL = Fraction(19, 20)


@dataclass(frozen=True, slots=True)
class Subject:
    statistic: str
    neighbors: str
    mechanism: Callable[..., Any]
    x: Any
    x_neighbor: Any
    draws: int
    batch: int | None = None
    least: float = 0.0
    """The least bound that an audit with these draws must show; a lower bound would mean that the
    audit is blind.
    """


def subjects() -> list[Subject]:
    """All statistics, each on a pair of neighbours that shows much of ε."""
    change, remove = "change-one", "add-remove"
    many, ages, rows = 1_000_000, [0, 3, 5, 5, 9] * 2, [(0, 0)] * 4
    cells = [(0, 0), (0, 1), (1, 0)]
    median = _array("median", change, 1, confidence=None)
    ninth = _array("quantile", remove, 1, "0.9", confidence=None)
    return [
        Subject("count", change, _counts(change, 1), [40], [41], many, least=0.9),
        Subject("count", remove, _counts(remove, 1), [40], [41], 200_000, least=0.9),
        Subject("sum", change, _moments("sum", change), [5, 20], [5, 30], many, least=0.9),
        Subject("sum", remove, _moments("sum", remove), [5, 20], [6, 30], 200_000, least=0.9),
        Subject("mean", remove, _moments("mean", remove), [2, 10], [3, 20], 50_000, 2**13),
        Subject(
            "variance", remove, _moments("variance", remove), [2, 0, 0], [3, 10, 100], 10_000, 2**10
        ),
        Subject("std", change, _moments("std", change), [3, 0, 0], [3, 10, 100], 10_000, 2**10),
        Subject("median", change, median, [0] * 5, [0] * 4 + [1], 8_000),
        Subject("quantile", remove, ninth, [0] * 10, [*[0] * 10, 1], 8_000),
        Subject("min", change, _array("min", change, 10), ages, [10, *ages[1:]], 8_000),
        Subject("max", remove, _array("max", remove, 10), ages, [*ages, 10], 8_000),
        Subject(
            "proportion", remove, _moments("mean", remove, top=1), [2, 1], [3, 2], 50_000, 2**13
        ),
        Subject("histogram", change, _counts(change, 3), [5, 3, 2], [4, 4, 2], many, least=0.9),
        Subject(
            "joint question",
            remove,
            joint_question(remove),
            rows,
            [*rows, (10, 10)],
            50_000,
            2**13,
            least=0.4,
        ),
        Subject(
            "joint question",
            change,
            joint_question(change),
            rows,
            [*rows[1:], (10, 10)],
            50_000,
            2**13,
            least=0.5,
        ),
        Subject(
            "report",
            remove,
            small_report(remove),
            cells,
            [*cells, (1, 1)],
            50_000,
            2**14,
            least=0.6,
        ),
        Subject(
            "report",
            change,
            small_report(change),
            cells,
            [*cells[1:], (1, 1)],
            50_000,
            2**14,
            least=0.5,
        ),
        Subject("profile", change, _octaves(change), [5, 3], [4, 4], 100_000, least=0.8),
        Subject("profile", remove, _octaves(remove), [5, 3], [5, 4], 100_000, least=0.8),
        Subject("randomized_response", change, _response, 0, 1, many, least=0.9),
        Subject("laplace_mechanism", change, _algorithm, 0, 1, many, least=0.9),
        Subject("laplace_mechanism on floats", change, _algorithm, 0.0, 1.0, many, least=0.9),
    ]


def _release(
    design: Released, totals: list[Any], neighbors: str, cells: int, epsilon: Fraction = EPSILON
) -> NDArray[Any]:
    """The released values of groups with these totals, one column for each measure."""
    terms = UnitLimits(
        rows=1, max_groups=1, replaced=neighbors == "change-one", public=False, cells=cells
    )
    released = items(design, Exact(totals), terms, epsilon, _LEVEL).values()
    columns = [np.array([value for value, _, _ in groups]) for groups in released]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _counts(neighbors: str, cells: int) -> Callable[..., Any]:
    """Counts of one group, or of several at once."""
    design = CountDesign(name="n", of=Count())
    return lambda x, size: _release(design, [x * size], neighbors, cells).reshape(size, cells)


def _octaves(neighbors: str) -> Callable[..., Any]:
    """The last octaves of a column of whole numbers; x is the number of units in each, all other
    bins are empty.
    """
    design = OctaveDesign(name="n", whole=True)
    terms = UnitLimits(
        rows=3, max_groups=3, replaced=neighbors == "change-one", public=False, cells=design.cells
    )

    def release(x: list[int], size: int) -> NDArray[np.int64]:
        exact: Exact[list[Any]] = Exact([np.tile([0] * (design.cells - len(x)) + x, size)])
        noisy: NDArray[np.int64] = design.estimate(exact, terms, EPSILON, _LEVEL)["n"].values
        return noisy.reshape(size, -1)[:, -len(x) :]

    return release


def _moments(
    statistic: Literal["sum", "mean", "variance", "std"], neighbors: str, top: int = 10
) -> Callable[..., Any]:
    """A statistic of whole numbers from 0 to 10, or of truths; x is n, Σa and, for squares, Σa²."""
    design = MomentDesign(wanted=(("m", statistic),), of=_moment("x", top, missing=None))
    return lambda x, size: _release(design, [[number] * size for number in x], neighbors, 1)


def _moment(name: str, top: int, missing: Fraction | None) -> Moment:
    return Moment(
        "mean", Column(name, "number"), Fraction(0), Fraction(top), whole=True, missing=missing
    )


def joint_question(
    neighbors: str,
    *,
    epsilon: Fraction = EPSILON,
    parts: tuple[Fraction, Fraction] = (Fraction(1, 4), Fraction(3, 4)),
) -> Callable[..., Any]:
    """count(*), avg(x), avg(y) of rows (x, y) from 0 to 10: the number of rows, and the product of
    both columns.

    Under change-one, both columns are centred instead of the product. `parts` are the shares of ε.
    """
    columns = tuple(
        MomentDesign(wanted=((f"avg({name})", "mean"),), of=_moment(name, 10, missing=Fraction(0)))
        for name in "xy"
    )
    attributes = ((0,), (1,)) if neighbors == "change-one" else ((), (0, 1))
    families = tuple(zip(attributes, parts, strict=True))
    design = JointDesign(counts=(("count(*)", Count()),), columns=columns, families=families)

    def release(x: list[tuple[int, int]], size: int) -> NDArray[Any]:
        totals = [[_total(measure, x)] * size for measure in design.measures()]
        return _release(design, totals, neighbors, 1, epsilon)

    return release


def small_report(
    neighbors: str,
    *,
    epsilon: Fraction = EPSILON,
    parts: tuple[Fraction, Fraction] = (Fraction(1, 4), Fraction(3, 4)),
) -> Callable[..., Any]:
    """The tables by x, by y and by both, for rows (x, y) of 0 and 1, from two sets: x, and x × y.
    `parts` are of ε.

    A third column says to which of many releases a row belongs. It is in both sets, so that each
    release has its own noise.
    """
    tables = [(1, 0, 1), (0, 1, 1), (1, 1, 1)]

    def release(x: list[tuple[int, int]], size: int) -> NDArray[Any]:
        columns = [_keys("x", 2), _keys("y", 2), _keys("release", size)]
        measured = ((tables[0], parts[0]), (tables[2], parts[1]))
        design = ReportDesign(attributes=tuple(columns), measured=measured)
        counts = np.zeros((2, 2), np.int64)
        np.add.at(counts, tuple(np.array(x).T), 1)
        cells = np.concatenate(
            [np.repeat(table.ravel(), size) for table in (counts.sum(axis=1), counts)]
        )
        terms = UnitLimits(
            rows=1,
            max_groups=1,
            replaced=neighbors == "change-one",
            public=False,
            cells=design.cells,
        )
        exact: Exact[list[Any]] = Exact([Integers(cells)])
        fit = design.fit(design.noisy(exact, terms, epsilon), None)
        estimates = [numerators / below for numerators, below in map(fit.table, tables)]
        return np.concatenate(
            [np.asarray(estimate, np.float64).reshape(-1, size) for estimate in estimates]
        ).T

    return release


def _keys(name: str, size: int) -> Attribute:
    """A group column with so many keys; every row has one of them."""
    group = Group(name, Column(name, "number"), Keys.numbers(range(size)), None)
    return Attribute(Axis((1, size)), ("", name), group=group)


def _total(measure: Any, rows: list[tuple[int, int]]) -> int:
    """The total of a measure over rows (x, y) without missing values."""

    def column(value: OnGrid) -> list[int]:
        return [row["xy".index(cast(Column, value.of).name)] for row in rows]

    match measure:
        case Total(value):
            return sum(column(value))
        case Product(first, second, (power, other)):
            return sum(
                x**power * y**other for x, y in zip(column(first), column(second), strict=True)
            )
    return len(rows)


def _array(
    statistic: str, neighbors: str, top: int, *more: Any, **parameters: Any
) -> Callable[[list[int]], Any]:
    call = getattr(arrays, statistic)
    terms = {"bounds": (0, top), "epsilon": EPSILON, "neighbors": neighbors, **parameters}
    return lambda x: call(np.array(x), *more, **terms)


def _response(x: int, size: int) -> NDArray[np.bool_]:
    return randomized_response(np.full(size, x), epsilon=EPSILON).bits


def _algorithm(x: float, size: int) -> NDArray[Any]:
    return np.asarray(
        laplace_mechanism(np.full(size, x), sensitivity=1, epsilon=EPSILON, changes=1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A mechanism that violates its claim, and two neighbours that show it."""

    name: str
    """What is wrong."""
    mechanism: Callable[..., Any]
    x: Any
    x_neighbor: Any
    epsilon: Fraction = Fraction(1)
    draws: int = 100_000
    """A sufficient number of draws."""


def controls() -> list[Control]:
    """The broken mechanisms that an audit must catch.

    Examples
    --------
    >>> raises = next(control for control in controls() if control.name == "a row raises")
    >>> raises.draws
    1000

    """
    five, rows, whole = [5] * 20, [(0, 0)] * 4, Fraction(1)
    cells = [(0, 0), (0, 1), (1, 0)]
    wide = Fraction(10)  # values are declared to lie in [0, 10]
    # name, mechanism, a data set, its neighbour, draws
    table: list[tuple[str, Callable[..., Any], Any, Any, int]] = [
        ("textbook noise on floats", _textbook, 0.0, 1.0, 100_000),
        ("scale 5 % too small", _noisy(lambda x: x, Fraction(95, 100)), 0, 1, 1_000_000),
        ("sign 51 : 49", _biased_sign, 0, 1, 10_000_000),
        ("clamped after the sum", _noisy(_late_clamp, wide), five, [*five[1:], 1000], 100_000),
        ("private n used as it is", _raw_count, [1] * 9, [1] * 10, 100_000),
        ("NaN comes through", _noisy(_float_sum, wide), [1.0, 2.0], [1.0, math.nan], 100_000),
        (
            "a row raises",
            _noisy(lambda x: sum(10 // value for value in x), wide),
            [1, 2],
            [1, 0],
            1_000,
        ),
        ("a group without rows is left out", _observed_groups, [0, 1], [0, 0], 1_000),
        (
            "a joint question at half its noise",
            _joint(epsilon=Fraction(2)),
            rows,
            [*rows, (10, 10)],
            20_000,
        ),
        (
            "a joint question, a part forgotten",
            _joint(parts=(whole, whole)),
            rows,
            [*rows, (10, 10)],
            20_000,
        ),
        (
            "a report, a set forgotten",
            _report(parts=(whole, whole)),
            cells,
            [*cells, (1, 1)],
            20_000,
        ),
    ]
    return [
        Control(name=name, mechanism=mechanism, x=x, x_neighbor=other, draws=draws)
        for name, mechanism, x, other, draws in table
    ]


def secrets(count: int) -> NDArray[np.bool_]:
    """Fair coins: the bits that an attacker tries to guess."""
    return flips(Fraction(1, 2), count)


def uniforms(count: int) -> Floats:
    """Multiples of 2⁻⁵³ in (0, 1], as every generator of floats returns them."""
    words = np.empty(count, np.int64)
    keystream().fill(words)
    return ((words.view(np.uint64) >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def float_noise(scale: float, count: int) -> list[float]:
    """Draws of s·b·ln U, with a fair sign s, by `math.log`: the least bits are those of a textbook
    [Mir12].
    """
    signs = np.where(secrets(count), scale, -scale).tolist()
    return [
        sign * math.log(uniform)
        for sign, uniform in zip(signs, uniforms(count).tolist(), strict=True)
    ]


def many_floats(scale: float, count: int) -> Floats:
    """Draws from the same distribution by numpy, where millions are needed."""
    return np.where(secrets(count), scale, -scale) * np.log(uniforms(count))


def _noise(scale: Fraction, size: int) -> NDArray[np.int64]:
    out = np.empty(size, np.int64)
    fill(out, scale)
    return out


def _noisy(answer: Callable[[Any], Any], scale: Fraction) -> Callable[..., Any]:
    return lambda x, size: answer(x) + _noise(scale, size)


def _textbook(x: float, size: int) -> Floats:
    return x + many_floats(1.0, size)


def _biased_sign(x: int, size: int) -> NDArray[np.int64]:
    noise = np.abs(_noise(Fraction(1), size))
    return x + np.where(uniforms(size) < 0.51, noise, -noise)


def _late_clamp(x: list[int]) -> int:
    return min(max(sum(x), 0), 10 * len(x))


def _raw_count(x: list[int], size: int) -> Floats:
    """The mean of values in [0, 1] under add-remove: a noisy sum over the true n."""
    return (sum(x) + _noise(Fraction(1), size)) / len(x)


def _float_sum(x: list[float]) -> float:
    return float(np.clip(np.array(x), 0, 10).sum())  # which lets NaN through


_joint, _report = partial(joint_question, "add-remove"), partial(small_report, "add-remove")
"""The number of rows and the product of two columns, and two sets of a report, by the code that
releases. With parts that add up to more than ε, each has the noise of a part that costs everything.
"""


def _observed_groups(x: list[int], size: int) -> NDArray[np.int64]:
    """A count for each group that occurs in the data."""
    counts = np.unique(np.array(x), return_counts=True)[1]
    return counts + _noise(Fraction(2), size * counts.size).reshape(size, counts.size)
