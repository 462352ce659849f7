"""The error of a mean as a function of n and ε, beside randomized response; the error of a plan.

    mean of n values in [L, H]     ± ln(20)·(H − L)/nε at 95 %
    a fraction, root mean square   1/(√2·n·sinh(ε/2)) by discrete Laplace noise
                                   1/(2·√n·sinh(ε/2)) by randomized response
    the largest of d errors        expected: λ(1 + 1/2 + … + 1/d), at most λ(ln d + 1)
    one person of n, in [0, 1]     changes a mean by 1/n, a standard deviation by about 1/√n, a
                                   maximum by 1

All axes are logarithmic. An interval as wide as the bounds is useless: the bounds are public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from discreet.calibrate import lemma, sensitivity
from discreet.draw.laplace import Laplace
from discreet.errors import InvalidParameter
from discreet.parameters import (
    LARGEST,
    MOST_UNITS,
    UNIT,
    Range,
    exact_bounds,
    exact_confidence,
    exact_count,
    exact_epsilon,
)
from discreet.release.plan import Plan
from discreet.show.figures import theme
from discreet.show.figures.theme import alt

_DECADE = 6  # points of a curve per power of ten: the curves are nearly straight
_GUESS = 1_000  # group size for the errors of a plan that has no size
_MOST_PANELS = 4


def error(
    *,
    n: object = 1000,
    epsilon: object = "0.1",
    bounds: Range = (0, 1),
    confidence: object = "0.95",
    width: object = theme.WIDTH,
) -> theme.Figure:
    """The half-width of a mean's interval by n and by ε, with the given point on both."""
    people = exact_count("n", n)
    budget = exact_epsilon(epsilon)
    level = exact_confidence(confidence)
    if isinstance(bounds, str):
        bounds = tuple(part.strip() for part in bounds.split(","))
    ends, wide = exact_bounds(bounds), theme.pixels(width)

    def reach(units: int, cost: Fraction) -> float:
        return mean_reach(units, cost, ends, level)

    own, percent = reach(people, budget), f"{float(level) * 100:g} %"
    budgets = [cost for cost in (budget / 10, budget, budget * 10) if UNIT <= cost <= LARGEST]
    over_n = [
        {"x": units, "error": reach(units, cost), "series": f"ε = {float(cost):.4g}"}
        for cost in budgets
        for units in _steps(max(1, people // 100), min(MOST_UNITS, people * 100))
    ]
    sizes = [units for units in (people // 10, people, people * 10) if 1 <= units <= MOST_UNITS]
    over_epsilon = [
        {"x": float(cost), "error": reach(units, cost), "series": f"n = {units:,}"}
        for units in sizes
        for cost in _exact_around(budget)
    ]
    useless = float(ends[1] - ends[0])
    left = _panel(over_n, "number of people n", f"± at {percent}", people, own, useless)
    right = _panel(over_epsilon, "ε", None, float(budget), own, useless)
    sides = [
        panel.properties(width=max(120, (wide - 90) // 2), height=240) for panel in (left, right)
    ]
    chart = alt.hconcat(*sides).resolve_scale(color="independent", strokeDash="independent")
    within = f"n = {people:,}, ε = {float(budget):.4g}: within ± {own:.3g} at {percent}"
    span = f"values from {float(ends[0]):.4g} to {float(ends[1]):.4g}"
    return theme.framed(chart, "The error of a mean", f"{within} (the dot); {span}", width=wide)


def mean_reach(people: int, epsilon: Fraction, bounds: Range, level: Fraction) -> float:
    """The half-width of the interval of a mean under the Laplace mechanism."""
    return float(Laplace(sensitivity.mean(n=people, bounds=bounds) / epsilon).ppf((1 + level) / 2))


def response(
    *, epsilon: object = 1, largest: object = 1_000_000, width: object = theme.WIDTH
) -> theme.Figure:
    """The root mean square error of a fraction by n: Laplace noise and randomized response."""
    budget = exact_epsilon(epsilon)
    most = exact_count("largest", largest, least=10)
    wide = theme.pixels(width)
    names = ["randomized response: no trusted custodian", "Laplace noise on the exact count"]
    noise = lemma.root_mean_square_error(1 / budget, law="discrete")
    values = [
        {"x": units, "error": reach, "series": name}
        for units in _steps(1, most)
        for name, reach in zip(
            names, (lemma.randomized_response(n=units, epsilon=budget), noise / units), strict=True
        )
    ]
    chart = _lines(
        values, "number of people n", "root mean square error", names, colors=theme.colors(2)[::-1]
    )
    apart = (
        f"at n = {most:,} the error of the Laplace mechanism is √(n/2) = {(most / 2) ** 0.5:,.0f}"
        " times smaller"
    )
    title = f"The error of a fraction of n people at ε = {float(budget):.4g}"
    return theme.framed(chart, title, apart, width=wide, height=280)


def largest(
    *,
    epsilon: object = "0.1",
    most: object = 1_000_000,
    confidence: object = "0.95",
    width: object = theme.WIDTH,
) -> theme.Figure:
    """The largest error of d counts of a histogram by d, beside the error of one count."""
    budget, level = exact_epsilon(epsilon), exact_confidence(confidence)
    cells, wide = exact_count("most", most, least=10), theme.pixels(width)
    scale = sensitivity.histogram(bins=2) / budget
    percent = f"{float(level) * 100:g} %"
    curves: dict[str, Callable[[int], float]] = {
        f"all errors below this, {percent}": lambda d: float(lemma.half_width(scale, level, d=d)),
        "expected largest error: bound λ(ln d + 1)": lambda d: lemma.expected_max(scale, d),
        "expected largest error: exact": lambda d: lemma.expected_max(scale, d, law="continuous"),
        "expected error of one count: λ": lambda _: lemma.expected_error(scale),
    }
    values = [
        {"x": d, "error": error(d), "series": name}
        for name, error in curves.items()
        for d in _steps(1, cells)
    ]
    span = alt.Scale(type="log", nice=False, domain=[1, cells])
    across = alt.Axis(format="~s", values=_powers([1, cells]))
    x = alt.X("x:Q", title="number of counts d", scale=span, axis=across)
    y = alt.Y("error:Q", title="error of a count")
    legend = alt.Legend(title=None, orient="bottom", columns=2)
    paint = theme.series("series", list(curves), "strokeDash", legend=legend)
    chart = theme.chart(values).mark_line().encode(x=x, y=y, **paint)
    title = f"The largest error of a histogram at ε = {float(budget):.4g}"
    note = (
        f"Δ = 2 for any number of counts, so λ = 2/ε = {float(scale):.4g}; only the largest error"
        " grows with d"
    )
    return theme.framed(chart, title, note, width=wide, height=280)


def moves(*, most: object = 10_000, width: object = theme.WIDTH) -> theme.Figure:
    """The sensitivity of several statistics as a function of n, for values in [0, 1]."""
    people, wide, unit = exact_count("most", most, least=10), theme.pixels(width), (0, 1)
    curves: dict[str, Callable[[int], Fraction]] = {
        "histogram": lambda n: sensitivity.histogram(bins=n),
        "maximum, median of an odd n": lambda _: sensitivity.max(bounds=unit),
        "standard deviation": lambda n: sensitivity.std(n=n, bounds=unit),
        "mean, proportion": lambda n: sensitivity.mean(n=n, bounds=unit),
    }
    values = [
        {"x": n, "error": float(delta(n)), "series": name}
        for name, delta in curves.items()
        for n in _steps(2, people)
    ]
    paints = [theme.BLACK[0], theme.VERMILION[0], theme.GREEN[0], theme.BLUE[0]]
    chart = _lines(values, "number of people n", "Δ", list(curves), colors=paints)
    note = "values in [0, 1]; the noise scale is Δ/ε, so the noise vanishes with Δ"
    return theme.framed(
        chart, "How much one of n people can change a statistic", note, width=wide, height=280
    )


def planned(plan: Plan, *, width: object = theme.WIDTH) -> theme.Figure:
    """The errors of a plan as a function of its ε, with the plan itself a point on each curve."""
    wide, size, titles = theme.pixels(width), plan.size or _GUESS, plan.titles()

    def reaches(cost: Fraction) -> dict[str, float]:
        """Half-widths if the whole plan cost this much; quantiles have none before the release."""
        return {
            line.name: line.reach
            for share in plan.shares
            if share.epsilon
            for line in share.design.lines(
                share.terms, share.epsilon * cost / plan.epsilon, plan.level, size
            )
            if line.reach
        }

    own = reaches(plan.epsilon)
    if not own:
        raise InvalidParameter(
            "the errors of this plan depend on the data; they are known only after the release"
        )
    around = {cost: reaches(cost) for cost in _exact_around(plan.epsilon)}
    span = float(min(around)), float(max(around))
    panels = []
    for name, reach in list(own.items())[:_MOST_PANELS]:
        values = [
            {"x": float(cost), "error": reached[name], "series": titles[name]}
            for cost, reached in around.items()
            if name in reached
        ]
        panel = _panel(
            values, "ε of the plan", f"± {titles[name]}", float(plan.epsilon), reach, None, span
        )
        panels.append(panel.properties(width=wide, height=240 if len(own) == 1 else 150))
    left = float(plan.study.remaining)
    percent = f"{float(plan.confidence) * 100:g} %{', all together' if plan.simultaneous else ''}"
    sized = any(line.sized for line in plan.lines)
    return theme.framed(
        theme.stacked(panels),
        "The error of this plan",
        f"half-width at {percent} · the dot is this plan, ε = {float(plan.epsilon):.4g} of"
        f" {left:.4g} left",
        f"for groups of {size:,} rows" if sized else "",
        f"the first {_MOST_PANELS} of {len(own)} columns" if len(own) > _MOST_PANELS else "",
        width=wide,
    )


def _panel(
    values: list[dict[str, Any]],
    horizontal: str,
    vertical: str | None,
    x: float,
    y: float,
    useless: float | None,
    span: tuple[float, float] | None = None,
) -> theme.Figure:
    """Curves, the given point and the zone of useless answers; `span` is the panels' x-range."""
    names = list(dict.fromkeys(row["series"] for row in values))
    colors = (
        [theme.VERMILION[0], theme.BLUE[0], theme.GREEN[0]]
        if len(names) == 3
        else theme.colors(len(names))
    )
    curves = _lines(values, horizontal, vertical, names, colors=colors, span=span)
    own = theme.dots(theme.chart([{"x": x, "error": y}]), 110, color=theme.TEXT[0]).encode(
        x="x:Q", y="error:Q"
    )
    if useless is None:
        return alt.layer(curves, own)
    top = theme.chart([{"error": useless, "name": "wider than the bounds"}])
    zone = top.mark_rect(color=theme.LINE[0], opacity=0.18).encode(y="error:Q", y2=alt.value(0))
    return alt.layer(
        zone,
        curves,
        own,
        top.mark_text(align="right", x="width", dx=-4, y=10).encode(text="name:N"),
    )


def _lines(
    values: list[dict[str, Any]],
    horizontal: str,
    vertical: str | None,
    names: list[str],
    *,
    colors: list[str],
    span: tuple[float, float] | None = None,
) -> theme.Figure:
    legend = alt.Legend(title=None, orient="bottom", direction="vertical") if span is None else None
    ends = (
        [min(row["x"] for row in values), max(row["x"] for row in values)]
        if span is None
        else list(span)
    )
    across = alt.Axis(format="~s" if "people" in horizontal else "~g", values=_powers(ends))
    upward = alt.Axis(format="~g", values=_powers(row["error"] for row in values))
    x = alt.X(
        "x:Q", title=horizontal, scale=alt.Scale(type="log", nice=False, domain=ends), axis=across
    )
    y = alt.Y("error:Q", title=vertical, scale=alt.Scale(type="log"), axis=upward)
    paint = theme.series("series", names, "strokeDash", legend=legend, paints=colors)
    return theme.chart(values).mark_line().encode(x=x, y=y, **paint)


def _steps(first: int, last: int) -> list[int]:
    """Whole numbers in roughly equal ratios."""
    steps, value = [first], float(first)
    while value < last:
        value = min(float(last), value * 10 ** (1 / _DECADE))
        if round(value) > steps[-1]:
            steps.append(round(value))
    return steps


def _powers(numbers: Iterable[float]) -> list[float]:
    """Powers of ten around the numbers, at most about eight of them."""
    logs = [math.log10(number) for number in numbers]
    first, last = math.floor(min(logs)), math.ceil(max(logs))
    return [10.0**power for power in range(first, last + 1, max(1, (last - first) // 6))]


def _exact_around(epsilon: Fraction) -> list[Fraction]:
    """Values from ε/100 to 100·ε, ε included."""
    powers = range(-2 * _DECADE, 2 * _DECADE + 1)
    factors = (Fraction(10 ** (power / _DECADE)).limit_denominator(10**6) for power in powers)
    return [epsilon * factor for factor in factors if UNIT <= epsilon * factor <= LARGEST]
