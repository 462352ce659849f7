"""Two figures of the texts: the Laplace law at several scales, and two of them that slide by Δ.

    h(y) = e^(−|y|/λ) / 2λ                       h(y) / h(y−Δ) ≤ e^ε  everywhere, with λ = Δ/ε

`slide` is the proof as a picture: move one person, and the curve moves by at most Δ; the ratio of the two curves never
leaves the lines e^ε and e^−ε. With `law="discrete"` the curves are those of the noise that is drawn, on the integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.draw.laplace import DiscreteLaplace, Laplace
from discreet.errors import InvalidParameter
from discreet.parameters import exact, exact_count, exact_epsilon, quote
from discreet.show.figures import theme

_POINTS = 160
"""To either side of a peak; a curve of so many straight lines looks smooth."""

_MOST_INTEGERS = 400
"""Dots of a discrete law: beyond that they run together, and the continuous law is the same picture."""


def densities(*, scales: Iterable[object] = (1, 2, 4, 7), width: object = theme.WIDTH) -> theme.Figure:
    """The densities of Lap(λ) for up to five scales λ."""
    alt = theme.altair()
    wide = exact_count("width", width)
    laws = [Laplace(scale) for scale in _several(scales)]
    if not 1 <= len(laws) <= len(theme.SERIES):
        raise InvalidParameter(f"scales must be one to {len(theme.SERIES)} numbers, got {len(laws)}")
    names = [f"λ = {float(law.scale):.4g}" for law in laws]
    reach = 2.2 * float(max(law.scale for law in laws))
    points = [at / _POINTS * reach for at in range(-_POINTS, _POINTS + 1)]
    values = [
        {"noise": at, "density": law.pdf(at), "scale": name}
        for law, name in zip(laws, names, strict=True)
        for at in points
    ]
    chart = (
        alt.Chart(theme.rows(values))
        .mark_line()
        .encode(
            x=alt.X("noise:Q", title="noise y", scale=alt.Scale(nice=False)),
            y=alt.Y("density:Q", title="density h(y)"),
            **theme.series("scale", names, "strokeDash", legend=alt.Legend(title=None)),
        )
        .properties(width=wide, height=280)
    )
    return theme.framed(
        chart,
        "The Laplace law Lap(λ)",
        "h(y) = e^(−|y|/λ) / 2λ: the mean error is λ, the deviation √2·λ",
        width=wide,
    )


def slide(
    *, epsilon: object = 1, sensitivity: object = 1, law: object = "continuous", width: object = theme.WIDTH
) -> theme.Figure:
    """Two densities that are centred Δ apart, and their ratio between e^−ε and e^ε."""
    budget, delta, wide = exact_epsilon(epsilon), exact("sensitivity", sensitivity), exact_count("width", width)
    if budget > 100:
        raise InvalidParameter(f"epsilon must be at most 100 for a picture of its ratio, got {quote(epsilon)}")
    match law:
        case "continuous":
            values = _continuous(budget, delta)
        case "discrete":
            values = _discrete(budget, delta)
        case _:
            raise InvalidParameter(f"law must be 'continuous' or 'discrete', got {quote(law)}")
    discrete = law == "discrete"
    shown = f"{float(delta):.4g}"
    subtitle = f"one person moves the answer by Δ = {shown}, and the {'chances' if discrete else 'curve'} with it"
    chart = theme.altair().vconcat(
        _curves(values, shown, discrete, wide).properties(width=wide, height=220),
        _ratio(values, budget, discrete).properties(width=wide, height=130),
        spacing=16,
    )
    noise = f"{'DLap' if discrete else 'Lap'}(Δ/ε) = {'DLap' if discrete else 'Lap'}({float(delta / budget):.4g})"
    return theme.framed(chart, f"Sliding by Δ under ε = {float(budget):.4g}", subtitle, f"noise {noise}", width=wide)


def _several(scales: Any) -> list[object]:
    """The scales, from a list or from a text such as "1,2,4,7"."""
    if isinstance(scales, str):
        return [part.strip() for part in scales.split(",")]
    return list(scales) if isinstance(scales, Iterable) else [scales]


def _continuous(epsilon: Fraction, delta: Fraction) -> list[dict[str, Any]]:
    """Points of both curves; each peak is one of them."""
    scale = delta / epsilon
    law, shift = Laplace(scale), float(delta)
    reach = 4 * float(scale)
    inner = max(2, min(_POINTS, math.ceil(_POINTS * shift / reach)))
    between = [shift * at / inner for at in range(inner + 1)]
    outside = [reach * at / _POINTS for at in range(1, _POINTS + 1)]
    points = [*(-at for at in reversed(outside)), *between, *(shift + at for at in outside)]
    return [_pair(at, law.pdf(at), law.pdf(at - shift), shift, scale) for at in points]


def _discrete(epsilon: Fraction, delta: Fraction) -> list[dict[str, Any]]:
    """Chances of every integer in reach."""
    if delta.denominator != 1:
        raise InvalidParameter(f"sensitivity must be a whole number for the discrete law, got {delta}")
    scale = delta / epsilon
    law, shift = DiscreteLaplace(scale), int(delta)
    reach = max(3, math.ceil(4 * scale))
    if 2 * reach + shift > _MOST_INTEGERS:
        raise InvalidParameter("sensitivity/epsilon must be at most 49 for the discrete law: use law='continuous'")
    return [_pair(at, law.pmf(at), law.pmf(at - shift), shift, scale) for at in range(-reach, shift + reach + 1)]


def _pair(at: float, first: float, second: float, shift: float, scale: Fraction) -> dict[str, Any]:
    """One output: its chance from either data set, and their ratio e^((|y−Δ|−|y|)/λ), which cannot overflow here."""
    ratio = math.exp((abs(at - shift) - abs(at)) / float(scale))
    return {"output": at, "first": first, "second": second, "ratio": ratio}


def _curves(values: list[dict[str, Any]], shown: str, discrete: bool, width: int) -> theme.Figure:
    alt = theme.altair()
    names = ["answer 0: your data", f"answer {shown}: one person changed"]
    tidy = [
        {"output": row["output"], "chance": row[key], "data": name}
        for row in values
        for key, name in zip(("first", "second"), names, strict=True)
    ]
    base = alt.Chart(theme.rows(tidy)).encode(
        x=alt.X("output:Q", title=None, scale=alt.Scale(nice=False)),
        y=alt.Y("chance:Q", title="chance" if discrete else "density"),
    )
    legend = alt.Legend(title=None, orient="top", columns=2 if width > 400 else 1)
    if not discrete:
        return base.mark_line().encode(**theme.series("data", names, "strokeDash", legend=legend))
    paint = theme.series("data", names, "shape", legend=legend)
    line = base.mark_line(opacity=0.35, strokeWidth=1).encode(color=paint["color"])
    return line + base.mark_point(filled=True, size=40, opacity=1).encode(**paint)


def _ratio(values: list[dict[str, Any]], epsilon: Fraction, discrete: bool) -> theme.Figure:
    alt = theme.altair()
    top = math.exp(float(epsilon))
    limits = [{"at": top, "name": f"e^ε = {top:.4g}"}, {"at": 1 / top, "name": f"e^−ε = {1 / top:.4g}"}]
    scale = alt.Scale(type="log", domain=[top**-1.5, top**1.5], nice=False)
    axis = alt.Axis(values=[1 / top, 1, top], format=".3~g", grid=False)
    y = alt.Y("ratio:Q", title="ratio", scale=scale, axis=axis)
    x = alt.X("output:Q", title="released number", scale=alt.Scale(nice=False))
    curve = alt.Chart(theme.rows(values)).encode(x=x, y=y)
    drawn = curve.mark_point(filled=True, size=30, color=theme.GREEN[0], opacity=1) if discrete else None
    line = curve.mark_line(color=theme.GREEN[0], strokeWidth=1 if discrete else 2)
    lines = alt.Chart(theme.rows(limits)).encode(y=alt.Y("at:Q"))
    bounds = lines.mark_rule(strokeDash=[4, 4], color=theme.LINE[0])
    texts = lines.mark_text(align="right", dx=-4, x="width")
    above = texts.transform_filter("datum.at >= 1").mark_text(align="right", x="width", dx=-4, dy=-8)
    below = texts.transform_filter("datum.at < 1").mark_text(align="left", x=4, dy=10)
    parts = [
        bounds,
        line,
        *([drawn] if drawn is not None else []),
        above.encode(text="name:N"),
        below.encode(text="name:N"),
    ]
    return alt.layer(*parts)
