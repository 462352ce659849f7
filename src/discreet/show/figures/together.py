"""Why tables are asked together: the error of each table of a report, measured together and one by
one.

If k tables are asked one by one, each gets ε/k, and its cells have variance 2k²/ε² (add or remove
one row). Together, the tables are combinations of a few measured sets, among which the planner of
reports divides ε.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

from discreet.errors import InvalidParameter
from discreet.parameters import exact_count, exact_epsilon, quote
from discreet.release.reports.allocation import Target, allocated, variance
from discreet.release.reports.axes import Axis
from discreet.show.figures import theme
from discreet.show.figures.theme import alt

SIZES = {"work": 9, "marital status": 7, "race": 5, "sex": 2, "relationship": 6, "income": 2}
"""Columns of a census, each with its number of cells."""

_NAMES = ("one by one", "together")
_MOST = 8  # most columns of a report: more tables would not fit on a page


def together(
    *, epsilon: object = 1, sizes: dict[str, int] | None = None, width: object = theme.WIDTH
) -> theme.Figure:
    """The error of every table of one and two columns, asked together and one by one."""
    budget, wide = exact_epsilon(epsilon), theme.pixels(width)
    columns = SIZES if sizes is None else sizes
    if not 2 <= len(columns) <= _MOST:
        raise InvalidParameter(
            f"sizes must name 2 to {_MOST} columns with their cells, got {quote(len(columns))}"
        )
    errors, sets = _errors({name: exact_count("sizes", size) for name, size in columns.items()})
    alone = math.sqrt(2) * len(errors)
    rows = sorted(
        ((name, error / float(budget)) for name, error in errors.items()), key=lambda row: row[1]
    )
    values = [
        {"table": name, "error": error, "series": series}
        for name, jointly in rows
        for series, error in zip(_NAMES, (alone / float(budget), jointly), strict=True)
    ]
    mean = math.sqrt(sum(error**2 for _, error in rows) / len(rows))
    subtitle = (
        f"error {alone / float(budget):.3g} one by one, {mean:.3g} together on average; {sets} sets"
        " are measured"
    )
    title = f"{len(rows)} tables at ε = {float(budget):.4g}"
    return theme.framed(
        _draw(values, [name for name, _ in rows]),
        title,
        subtitle,
        width=wide,
        height=18 * len(rows),
    )


def _errors(sizes: dict[str, int]) -> tuple[dict[str, float], int]:
    """The root mean square error of each table at ε = 1, and the number of measured sets."""
    axes = tuple(Axis((1, size)) for size in sizes.values())
    tables = [set(columns) for size in (1, 2) for columns in combinations(range(len(axes)), size)]
    targets = []
    for table in tables:
        levels = tuple(int(index in table) for index in range(len(axes)))
        spreads = tuple(
            tuple(axis.spreads(level).tolist()) for axis, level in zip(axes, levels, strict=True)
        )
        targets.append(Target(levels, spreads))
    measured = allocated(axes, tuple(targets), frozenset(), known=False)
    names = [
        " × ".join(name for index, name in enumerate(sizes) if index in table) for table in tables
    ]
    errors = [math.sqrt(variance(axes, target, measured, known=False)) for target in targets]
    return dict(zip(names, errors, strict=True)), len(measured)


def _draw(values: list[dict[str, Any]], order: list[str]) -> theme.Figure:
    base = theme.chart(values)
    y = alt.Y("table:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, grid=False))
    x = alt.X("error:Q", title="root mean square error of a count", scale=alt.Scale(zero=True))
    line = base.mark_line(strokeWidth=2, color=theme.GRID[0]).encode(x=x, y=y, detail="table:N")
    legend = alt.Legend(title=None, orient="bottom")
    paint = theme.series(
        "series", list(_NAMES), "shape", legend=legend, paints=[theme.VERMILION[0], theme.BLUE[0]]
    )
    return alt.layer(
        line,
        theme.dots(base, 60).encode(x=x, y=y, tooltip=["table:N", "series:N", "error:Q"], **paint),
    )
