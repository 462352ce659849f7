"""Figures of the course: Laplace densities, two densities shifted by Δ, and the limit of an attacker.

    h(y) = e^(−|y|/λ) / 2λ                       h(y) / h(y−Δ) ≤ e^ε  everywhere, with λ = Δ/ε

`slide` shows the proof: changing one person shifts the curve by at most Δ, and the ratio of the two curves stays
between e^−ε and e^ε. With `law="discrete"` the curves are the probabilities of the noise, on the integers. `attacker`
shows the consequence: anyone who guesses between two data sets that differ in one person is right with probability at
most e^ε / (1 + e^ε), whatever they know and compute. Measured rates may be drawn over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.draw.laplace import DiscreteLaplace, Laplace
from discreet.errors import InvalidParameter
from discreet.parameters import Number, exact, exact_count, exact_epsilon, exact_number, quote
from discreet.show.figures import theme
from discreet.show.figures.theme import alt

_POINTS = 160  # points on either side of a peak: enough for a curve to look smooth
_MOST_INTEGERS = 400  # most dots of a discrete law: more would run together, and the continuous law looks the same


def densities(*, scales: Iterable[Number] = (1, 2, 4, 7), width: object = theme.WIDTH) -> theme.Figure:
    """The densities of Lap(λ) for up to five scales λ."""
    wide = exact_count("width", width)
    if isinstance(scales, str):
        scales = [part.strip() for part in scales.split(",")]
    laws = [Laplace(scale) for scale in (scales if isinstance(scales, Iterable) else [scales])]
    if not 1 <= len(laws) <= len(theme.SERIES):
        raise InvalidParameter(f"scales must be one to {len(theme.SERIES)} numbers, got {len(laws)}")
    names = [f"λ = {float(law.scale):.4g}" for law in laws]
    reach = 2.2 * float(max(law.scale for law in laws))
    points = [step / _POINTS * reach for step in range(-_POINTS, _POINTS + 1)]
    values = [
        {"noise": point, "density": law.pdf(point), "scale": name}
        for law, name in zip(laws, names, strict=True)
        for point in points
    ]
    chart = (
        theme.chart(values)
        .mark_line()
        .encode(
            x=alt.X("noise:Q", title="noise y", scale=alt.Scale(nice=False)),
            y=alt.Y("density:Q", title="density h(y)"),
            **theme.series("scale", names, "strokeDash", legend=alt.Legend(title=None)),
        )
    )
    formula = "h(y) = e^(−|y|/λ) / 2λ: the mean absolute error is λ, the standard deviation √2·λ"
    return theme.framed(chart, "The Laplace distribution Lap(λ)", formula, width=wide, height=280)


def slide(
    *, epsilon: object = 1, sensitivity: object = 1, law: object = "continuous", width: object = theme.WIDTH
) -> theme.Figure:
    """Two densities centred Δ apart, and their ratio between e^−ε and e^ε."""
    budget, delta, wide = exact_epsilon(epsilon), exact("sensitivity", sensitivity), exact_count("width", width)
    if budget > 100:
        raise InvalidParameter(f"epsilon must be at most 100 to draw the ratio, got {quote(epsilon)}")
    if law not in ("continuous", "discrete"):
        raise InvalidParameter(f"law must be 'continuous' or 'discrete', got {quote(law)}")
    discrete = law == "discrete"
    values = list((_discrete if discrete else _continuous)(delta / budget, delta))
    shift = f"{float(delta):.4g}"
    chart = alt.vconcat(
        _curves(values, shift, discrete, wide).properties(width=wide, height=220),
        _ratio(values, budget, discrete).properties(width=wide, height=130),
        spacing=16,
    )
    subtitle = f"changing one person shifts the {'probabilities' if discrete else 'density'} by at most Δ = {shift}"
    name = "DLap" if discrete else "Lap"
    noise = f"noise {name}(Δ/ε) = {name}({float(delta / budget):.4g})"
    return theme.framed(chart, f"Two neighbouring data sets at ε = {float(budget):.4g}", subtitle, noise, width=wide)


def attacker(
    *, measured: Iterable[tuple[object, object]] = (), largest: object = 6, width: object = theme.WIDTH
) -> theme.Figure:
    """The limit of an attacker's success as a function of ε, with measured pairs (ε, rate) over it."""
    wide, rates = exact_count("width", width), [_rate_point(pair) for pair in measured]
    end = max([float(exact("largest", largest)), *(point["epsilon"] for point in rates)])
    if end > 700:
        raise InvalidParameter(f"largest must be at most 700, got {quote(largest)}")

    def limits(*epsilons: float) -> theme.Figure:
        return theme.chart([{"epsilon": epsilon, "rate": 1 / (1 + math.exp(-epsilon))} for epsilon in epsilons])

    x = alt.X("epsilon:Q", title="ε", scale=alt.Scale(domain=[0, end], nice=False))
    percent, span = alt.Axis(format="%"), alt.Scale(domain=[0.45, 1.05], nice=False)
    y = alt.Y("rate:Q", title="right guesses", axis=percent, scale=span)
    limit = limits(*(end * step / 200 for step in range(201))).mark_line().encode(x=x, y=y)
    marks = [
        {"rate": 1, "name": "without noise: 100 %", "up": True},
        {"rate": 0.5, "name": "coin flip: 50 %", "up": False},
    ]
    lines = theme.chart(marks).encode(y=y)
    above = lines.transform_filter("datum.up").mark_text(align="left", x=6, dy=-8).encode(text="name:N")
    below = lines.transform_filter("!datum.up").mark_text(align="right", x="width", dx=-6, dy=10).encode(text="name:N")
    label = limits(end * 0.3).mark_text(align="left", dx=10, dy=12, color=theme.BLUE[0])
    name = label.encode(x=x, y=y, text=alt.value("at most e^ε / (1 + e^ε)"))
    parts = [theme.dashed(lines), above, below, limit, name]
    if rates:
        points = theme.dots(theme.chart(rates), 70, color=theme.VERMILION[0])
        parts.append(points.encode(x=x, y=y, tooltip=["epsilon:Q", "rate:Q"]))
    return theme.framed(
        alt.layer(*parts),
        "How often an attacker can guess right",
        "guessing which of two data sets, different in one person, gave the answer",
        "dots: measured" if rates else "",
        width=wide,
        height=280,
    )


def _continuous(scale: Fraction, delta: Fraction) -> Iterable[dict[str, Any]]:
    """Points of both curves, with a point at each peak."""
    law, shift, reach = Laplace(scale), float(delta), 4 * float(scale)
    inner = max(2, min(_POINTS, math.ceil(_POINTS * shift / reach)))
    between = [shift * step / inner for step in range(inner + 1)]
    outside = [reach * step / _POINTS for step in range(1, _POINTS + 1)]
    points = [*(-point for point in reversed(outside)), *between, *(shift + point for point in outside)]
    return (_pair(point, law.pdf(point), law.pdf(point - shift), shift, scale) for point in points)


def _discrete(scale: Fraction, delta: Fraction) -> Iterable[dict[str, Any]]:
    """Probabilities of the integers in reach."""
    if delta.denominator != 1:
        raise InvalidParameter(f"sensitivity must be a whole number for the discrete law, got {delta}")
    law, shift, reach = DiscreteLaplace(scale), int(delta), max(3, math.ceil(4 * scale))
    if 2 * reach + shift > _MOST_INTEGERS:
        raise InvalidParameter("sensitivity/epsilon must be at most 49 for the discrete law; use law='continuous'")
    integers = range(-reach, shift + reach + 1)
    return (_pair(number, law.pmf(number), law.pmf(number - shift), shift, scale) for number in integers)


def _pair(output: float, first: float, second: float, shift: float, scale: Fraction) -> dict[str, Any]:
    """An output: its probability from either data set, and their ratio e^((|y−Δ|−|y|)/λ), which cannot overflow."""
    ratio = math.exp((abs(output - shift) - abs(output)) / float(scale))
    return {"output": output, "first": first, "second": second, "ratio": ratio}


def _curves(values: list[dict[str, Any]], shift: str, discrete: bool, width: int) -> theme.Figure:
    names = ["answer 0: your data", f"answer {shift}: one person changed"]
    tidy = [
        {"output": row["output"], "probability": row[key], "data": name}
        for row in values
        for key, name in zip(("first", "second"), names, strict=True)
    ]
    base = theme.chart(tidy).encode(
        x=alt.X("output:Q", title=None, scale=alt.Scale(nice=False)),
        y=alt.Y("probability:Q", title="probability" if discrete else "density"),
    )
    legend = alt.Legend(title=None, orient="top", columns=2 if width > 400 else 1)
    paint = theme.series("data", names, "shape" if discrete else "strokeDash", legend=legend)
    if not discrete:
        return base.mark_line().encode(**paint)
    return base.mark_line(opacity=0.35, strokeWidth=1).encode(color=paint["color"]) + theme.dots(base, 40).encode(
        **paint
    )


def _ratio(values: list[dict[str, Any]], epsilon: Fraction, discrete: bool) -> theme.Figure:
    top = math.exp(float(epsilon))
    limits = [{"limit": top, "name": f"e^ε = {top:.4g}"}, {"limit": 1 / top, "name": f"e^−ε = {1 / top:.4g}"}]
    scale = alt.Scale(type="log", domain=[top**-1.5, top**1.5], nice=False)
    axis = alt.Axis(values=[1 / top, 1, top], format=".3~g", grid=False)
    curve = theme.chart(values).encode(
        x=alt.X("output:Q", title="released number", scale=alt.Scale(nice=False)),
        y=alt.Y("ratio:Q", title="ratio", scale=scale, axis=axis),
    )
    line = curve.mark_line(color=theme.GREEN[0], strokeWidth=1 if discrete else 2)
    lines = theme.chart(limits).encode(y=alt.Y("limit:Q"))
    above = lines.transform_filter("datum.limit >= 1").mark_text(align="right", x="width", dx=-4, dy=-8)
    below = lines.transform_filter("datum.limit < 1").mark_text(align="left", x=4, dy=10)
    points = [theme.dots(curve, 30, color=theme.GREEN[0])] if discrete else []
    texts = [above.encode(text="name:N"), below.encode(text="name:N")]
    return alt.layer(theme.dashed(lines), line, *points, *texts)


def _rate_point(pair: Any) -> dict[str, float]:
    match pair:
        case [epsilon, rate]:
            cost, share = exact_number("epsilon", epsilon), exact_number("rate", rate)
            if cost >= 0 and 0 <= share <= 1:
                return {"epsilon": float(cost), "rate": float(share)}
    raise InvalidParameter("measured must be pairs (epsilon, rate) with 0 ≤ rate ≤ 1")
