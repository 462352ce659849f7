"""Histograms, counts of categories, cumulative counts and private bounds of a column in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays.call import Key, Keys, Values, run
from discreet.engines.array import Bins, Listed
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.parameters import Epsilon, Neighbors, Number, Range, exact_count, quote
from discreet.release.account import Account
from discreet.release.intervals.spreads import counted
from discreet.release.profiles.octaves import OctaveDesign
from discreet.release.profiles.plan import refuse_few
from discreet.release.profiles.profile import ColumnProfile
from discreet.release.question import Question, bin_edges, of_tree, public_total, question
from discreet.release.release import Cumulative, Histogram, fields_of
from discreet.release.statistics.counts import HistogramDesign, TreeDesign

_MOST_CELLS = 2**20
"""A confidence band is simulated for all cells at once; beyond this it takes minutes and shows
nothing more.
"""


def histogram(
    x: Values,
    *,
    epsilon: Epsilon,
    bins: int | Sequence[Number] | ArrayLike | None = None,
    bounds: Range | None = None,
    keys: Keys | None = None,
    other: str | None = None,
    neighbors: Neighbors = "change-one",
    missing: Number | Key | None = None,
    **account: Unpack[Account],
) -> Histogram:
    """Count the values in each bin, or the values of each category.

    Parameters
    ----------
    x : array_like
        One value for each person: numbers for bins; texts, numbers, dates or truth values for keys.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added, to empty bins as well.
    bins : int or sequence of numbers, optional
        The number of equal bins between the bounds, or the edges: bins are [edge, next edge), and
        the last is closed.
    bounds : (lower, upper), optional
        For equal bins. Values beyond the bounds or edges are in the first or the last bin.
    keys : sequence, range such as "1..12", or public file, optional
        The categories, listed without looking at the data. Values that are not keys are not
        counted.
    other : text, optional
        The label of one more category, for all values that are not keys and for missing values.
    missing : number or key, optional
        The value of missing values; without it they are not counted.
    neighbors, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Histogram
        Its `value` is an array of whole numbers, which may be negative, one for each of its `keys`
        or bins (`edges`).

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> children, others = discreet.histogram(ages, bins=[0, 18, 120], epsilon=1).value
    >>> bool(100 < children < 260)
    True
    >>> towns = discreet.histogram(
    ...     ["Ash", "Elm", "Ash"] * 100, keys=["Ash", "Elm", "Oak"], epsilon=1
    ... )
    >>> towns.keys, bool(100 < towns["Ash"] < 300)
    (('Ash', 'Elm', 'Oak'), True)

    See docs/statistics.md, "Histogram, cumulative counts".

    """
    if (bins is None) == (keys is None):
        raise InvalidParameter(
            "a histogram takes either bins, for numbers, or keys, for categories; give one of them"
        )
    if keys is not None:
        if bounds is not None:
            raise InvalidParameter("bounds belong to bins, not to keys; leave bounds out")
        return _of_keys(x, keys, other, epsilon, neighbors, missing, account)
    if other is not None:
        raise InvalidParameter(
            "other belongs to keys; values beyond the edges are in the first or the last bin"
        )
    edges, even = bin_edges(bins, bounds)
    ask = question("histogram", x, (edges[0], edges[-1]), epsilon, neighbors, missing=missing)
    home = (
        None
        if ask.missing is None
        else int(np.searchsorted(edges[1:-1], as_float(ask.missing), side="right"))
    )
    design = HistogramDesign(name="histogram", bins=Bins(edges, home, even))
    return run(
        ask, account, lambda: _released(ask, design, edges=tuple(edges.tolist())), edges=edges
    )


def value_counts(
    x: Values,
    *,
    keys: Keys,
    epsilon: Epsilon,
    other: str | None = None,
    neighbors: Neighbors = "change-one",
    missing: Key | None = None,
    sort: bool = True,
    **account: Unpack[Account],
) -> Histogram:
    """Count the values of each key, the most frequent key first.

    Parameters
    ----------
    x : array_like
        One value for each person: texts, numbers, dates or truth values.
    keys : sequence, range such as "1..12", or public file
        The categories, listed without looking at the data. Other values are not counted, unless
        `other` is given.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added, to unused keys as well.
    other : text, optional
        The label of one more category, for all values that are not keys and for missing values.
    missing : key, optional
        The key of missing values; without it they are not counted.
    sort : bool
        Whether to sort by the released counts, largest first; otherwise keys keep their order.
    neighbors, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Histogram
        Its `value` is an array of whole numbers, which may be negative, one for each of its `keys`.

    Examples
    --------
    >>> import discreet
    >>> towns = ["Ash", "Elm", "Elm", "Elm"] * 100
    >>> discreet.value_counts(towns, keys=["Ash", "Elm"], other="elsewhere", epsilon=1).keys[:2]
    ('Elm', 'Ash')

    See docs/statistics.md, "Histogram, cumulative counts".

    """
    release = _of_keys(x, keys, other, epsilon, neighbors, missing, account)
    order = np.argsort(-release.value, kind="stable") if sort else np.arange(len(release))
    _, scale, together = release._spread.args  # type: ignore[attr-defined]
    value = release.value[order]
    return replace(
        release,
        statistic="value_counts",
        value=value,
        keys=tuple(release.keys[index] for index in order),
        _spread=partial(counted, value, scale, together),
    )


def _of_keys(
    x: Values,
    keys: Keys,
    other: object,
    epsilon: Epsilon,
    neighbors: Neighbors,
    missing: object,
    account: Account,
) -> Histogram:
    from discreet.ask.declared import exact_label, listed_keys
    from discreet.ask.keys.column import Keys as Listing
    from discreet.ask.keys.column import key_labels
    from discreet.ask.keys.key import read_key
    from discreet.engines.categories import placed

    listed, label = listed_keys(keys), None if other is None else exact_label(other)
    names, value = key_labels(listed), None if missing is None else read_key(missing)
    if label is not None and listed.has_label(label):
        raise InvalidParameter(
            f"other must not be one of the keys, got {quote(label)}; write another label"
        )
    reader = partial(placed, keys=listed, other=label is not None, missing=value)
    ask = question("histogram", x, (0, 1), epsilon, neighbors, reader=reader)
    labels = names if label is None else (*names, label)
    design = HistogramDesign(name="histogram", bins=Listed(len(labels)))
    rest = "values that are no key are left out" if ask.data.nullable else ""
    rest = rest if label is None else f"values that are no key count as {label}"
    absent = (
        "" if value is None else f"missing values count as {key_labels(Listing.of([value]))[0]}"
    )
    note = "; ".join(filter(None, (absent, rest)))

    def work() -> Histogram:
        return replace(_released(ask, design, keys=labels), missing=note)

    return run(ask, account, work, keys=listed.text, other=label, missing_key=value)


def _released(ask: Question, design: HistogramDesign, **names: Any) -> Histogram:
    scale = design.scale(ask.terms, ask.epsilon)
    noisy = ask.estimates(design)["histogram"].values
    spread = partial(counted, noisy, scale, 1 if design.halves(ask.terms) else design.bins.number)
    release = ask.release(
        noisy, spread, sensitivity=scale * ask.epsilon, scale=scale, step=Fraction(1)
    )
    return Histogram(**fields_of(release), **names, total=public_total(ask))


def cdf(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    cells: int = 1024,
    **account: Unpack[Account],
) -> Cumulative:
    """Count the values up to each point of a grid, from one tree of counts.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    cells : int
        The approximate number of grid points, at most 2²⁰.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Cumulative
        Its `value` is a non-decreasing array, with a count for each of its `points`.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> below = discreet.cdf(ages, bounds=(0, 120), epsilon=1, cells=8)
    >>> len(below.value) == len(below.points)
    True

    See docs/statistics.md, "Histogram, cumulative counts".

    """
    ask = question("cdf", x, bounds, epsilon, neighbors, missing=missing)
    number = exact_count("cells", cells, least=2)
    if number > _MOST_CELLS:
        raise InvalidParameter(f"cells must be at most {_MOST_CELLS:,}, got {number:,}")
    design = TreeDesign(of=ask.quantiles(), bits=number.bit_length() - 1)

    def work() -> Cumulative:
        release = of_tree(ask, design, ask.estimates(design)["below"], step=Fraction(1))
        grid = design.grid
        points = np.array(
            [float((grid.lower + index) * grid.step) for index in range(grid.width + 1)]
        )
        return Cumulative(**fields_of(release), points=points, total=public_total(ask))

    return run(ask, account, work, cells=number)


def bounds(
    x: Values, *, epsilon: Epsilon, neighbors: Neighbors = "change-one", **account: Unpack[Account]
) -> ColumnProfile:
    """Find bounds for the values, powers of two or 0, from a noisy histogram over powers of two.

    Parameters
    ----------
    x : array_like
        One value for each person.
    epsilon : number or text
        The privacy parameter. The bounds need n·ε of about 100; a fifth of the ε of the mean is a
        good choice. The ε of several calls add up.
    neighbors, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    ColumnProfile
        Its `bounds` are (lower, upper), or None if too little is known; `missing`, `zero` and
        `negative` are shares.

    Examples
    --------
    >>> import discreet
    >>> costs = [20, 25, 90, 100, 110] * 1000
    >>> lower, upper = discreet.bounds(costs, epsilon=1).bounds
    >>> lower == 0, upper >= 128
    (True, True)

    See docs/statistics.md, "Bounds".

    """
    ask = question("bounds", x, (0, 1), epsilon, neighbors)
    units = len(ask.data) if ask.neighbors == "change-one" else None
    if units is not None:
        refuse_few(units, ask.epsilon)
    design = OctaveDesign(name="bounds", whole=ask.data.whole)

    def work() -> ColumnProfile:
        return ColumnProfile(
            name="values",
            counts=tuple(ask.estimates(design)["bounds"].values.tolist()),
            scale=design.scale(ask.terms, ask.epsilon),
            epsilon=ask.epsilon,
            whole=design.whole,
            units=units,
        )

    return run(ask, account, work)
