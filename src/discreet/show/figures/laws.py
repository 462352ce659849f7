"""Figures of the course: Laplace densities, two densities shifted by Δ, the loss, and the limit of
an attacker.

    h(y) = e^(−|y|/λ) / 2λ                       h(y) / h(y−Δ) ≤ e^ε  everywhere, with λ = Δ/ε

`slide` shows the proof: changing one person shifts the curve by at most Δ, and the ratio of the two
curves stays between e^−ε and e^ε. `loss` shows its logarithm, the privacy loss, and how often the
loss exceeds ε if the scale is too small. With `law="discrete"` the curves are the probabilities of
the noise, on the integers. `attacker` shows the consequence: anyone who guesses between two data
sets that differ in one person is right with probability at most e^ε / (1 + e^ε), whatever they know
and compute. Measured rates may be drawn over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Literal

from discreet.draw.laplace import DiscreteLaplace, Laplace
from discreet.errors import InvalidParameter
from discreet.parameters import Number, exact, exact_epsilon, exact_number, quote
from discreet.show.figures import theme
from discreet.show.figures.theme import alt

_POINTS = 160  # points on either side of a peak: enough for a curve to look smooth
_BENDS = 40  # points of a tail, which is nearly straight
_LARGEST_LOSS = 100  # e^100 is the largest ratio on an axis
# of an axis of losses for each unit of the largest: room for words beyond the limits
_ROOM = Fraction(7, 5)
# most dots of a discrete law: more would run together, and the continuous law looks the same
_MOST_INTEGERS = 400


def densities(
    *,
    scales: Iterable[Number] = (1, 2, 4, 7),
    law: object = "continuous",
    width: object = theme.WIDTH,
) -> theme.Figure:
    """The densities of Lap(λ) for up to five scales λ."""
    wide, discrete = theme.pixels(width), _is_discrete(law)
    if isinstance(scales, str):
        scales = [part.strip() for part in scales.split(",")]
    laws = [Laplace(scale) for scale in (scales if isinstance(scales, Iterable) else [scales])]
    if not 1 <= len(laws) <= len(theme.SERIES):
        raise InvalidParameter(
            f"scales must be one to {len(theme.SERIES)} numbers, got {len(laws)}"
        )
    names = [f"λ = {float(one.scale):.4g}" for one in laws]
    reach = Fraction(11, 5) * max(one.scale for one in laws)
    values = [
        {"noise": point, "density": height, "scale": name}
        for one, name in zip(laws, names, strict=True)
        for point, height in (_chances(one.scale, reach) if discrete else _heights(one, reach))
    ]
    base = theme.chart(values).encode(
        x=alt.X("noise:Q", title="noise k" if discrete else "noise y", scale=alt.Scale(nice=False)),
        y=alt.Y("density:Q", title="probability P(k)" if discrete else "density h(y)"),
    )
    mark: Literal["shape", "strokeDash"] = "shape" if discrete else "strokeDash"
    paint = theme.series("scale", names, mark, legend=alt.Legend(title=None))
    if not discrete:
        formula = (
            "h(y) = e^(−|y|/λ) / 2λ: the mean absolute error is λ, the standard deviation √2·λ"
        )
        chart = base.mark_line().encode(**paint)
        return theme.framed(
            chart, "The Laplace distribution Lap(λ)", formula, width=wide, height=280
        )
    formula = "P(k) = (1−q)/(1+q)·q^|k| with q = e^(−1/λ), for whole numbers k"
    chart = _dotted(base, paint, 30)
    return theme.framed(
        chart, "The discrete Laplace distribution DLap(λ)", formula, width=wide, height=280
    )


def slide(
    *,
    epsilon: object = 1,
    sensitivity: object = 1,
    law: object = "continuous",
    width: object = theme.WIDTH,
) -> theme.Figure:
    """Two densities centred Δ apart, and their ratio between e^−ε and e^ε."""
    budget = exact_epsilon(epsilon)
    delta = exact("sensitivity", sensitivity)
    wide = theme.pixels(width)
    if budget > _LARGEST_LOSS:
        raise InvalidParameter(
            f"epsilon must be at most {_LARGEST_LOSS} to draw the ratio, got {quote(epsilon)}"
        )
    discrete = _is_discrete(law)
    values = list((_discrete if discrete else _continuous)(delta / budget, delta))
    shift = f"{float(delta):.4g}"
    chart = alt.vconcat(
        _curves(values, shift, discrete, wide).properties(width=wide, height=220),
        _ratio(values, budget, discrete).properties(width=wide, height=130),
        spacing=16,
    )
    subtitle = (
        f"changing one person shifts the {'probabilities' if discrete else 'density'} by at most Δ"
        f" = {shift}"
    )
    name = "DLap" if discrete else "Lap"
    noise = f"noise {name}(Δ/ε) = {name}({float(delta / budget):.4g})"
    return theme.framed(
        chart, f"Two neighbouring data sets at ε = {float(budget):.4g}", subtitle, noise, width=wide
    )


def loss(
    *,
    epsilon: object = 1,
    sensitivity: object = 1,
    scale: object = None,
    law: object = "continuous",
    width: object = theme.WIDTH,
) -> theme.Figure:
    """The ratio and the privacy loss of each output, and how often the loss exceeds ε at a wrong
    scale.
    """
    budget = exact_epsilon(epsilon)
    delta = exact("sensitivity", sensitivity)
    wide = theme.pixels(width)
    discrete, right = _is_discrete(law), delta / budget
    given = right / 2 if scale is None else exact("scale", scale)
    if max(budget, delta / given) > _LARGEST_LOSS:
        raise InvalidParameter(
            f"epsilon and sensitivity/scale must be at most {_LARGEST_LOSS} to draw the ratio, "
            f"got {quote(str(budget))} and {quote(str(delta / given))}"
        )
    most, name = max(budget, delta / given), "DLap" if discrete else "Lap"
    scales = {f"right: λ = Δ/ε = {float(right):.4g}": right}
    if given != right:
        size = "too small" if given < right else "larger"
        scales[f"{size}: λ = {float(given):.4g}"] = given
    reach = 2 * max(right, given) + delta / 2
    outputs = list(_outputs(delta, reach, discrete))
    values = [
        {"output": y, "loss": loss, "ratio": math.exp(loss), "scale": name}
        for name, of in scales.items()
        for y, loss in ((float(y), float((abs(y - delta) - abs(y)) / of)) for y in outputs)
    ]
    tails = [
        {"loss": at, "tail": chance, "scale": name}
        for name, of in scales.items()
        for at, chance in _tails(delta, of, _ROOM * most, discrete)
    ]
    beyond = _beyond(delta, given, budget, discrete)
    paints = [theme.BLUE[0], theme.VERMILION[0]][: len(scales)]
    legend = alt.Legend(
        title=None, orient="bottom", symbolType="stroke", columns=2 if wide > 400 else 1
    )
    paint = theme.series("scale", list(scales), "strokeDash", legend=legend, paints=paints)
    ends = float(_ROOM * most)
    chart = alt.vconcat(
        _losses(values, "ratio", budget, ends, paint, discrete).properties(width=wide, height=150),
        _losses(values, "loss", budget, ends, paint, discrete).properties(width=wide, height=150),
        _tail_panel(tails, budget, beyond, ends, paint).properties(width=wide, height=170),
        spacing=18,
    )
    percent = f"{100 * beyond:.3g} %"
    told = (
        f"with noise {name}({float(given):.4g}) the loss exceeds ε = {float(budget):.4g} with"
        f" probability {percent}"
        if beyond
        else f"with noise {name}({float(given):.4g}) the loss never exceeds ε = {float(budget):.4g}"
    )
    formula = (
        "loss = ln(ratio) = (|y−Δ| − |y|)/λ; the exact numbers of the two data sets are 0 and Δ"
    )
    return theme.framed(
        chart, f"The privacy loss at Δ = {float(delta):.4g}", told, formula, width=wide
    )


def attacker(
    *,
    measured: Iterable[tuple[object, object]] = (),
    largest: object = 6,
    width: object = theme.WIDTH,
) -> theme.Figure:
    """The limits of an attacker's success as functions of ε, with measured pairs (ε, rate) over
    them.
    """
    wide, rates = theme.pixels(width), [_rate_point(pair) for pair in measured]
    end = max([float(exact("largest", largest)), *(point["epsilon"] for point in rates)])
    if end > 350:
        raise InvalidParameter(f"largest must be at most 350, got {quote(largest)}")
    curves = {
        "e^ε/(1 + e^ε): change-one; add-remove, presence": 1,
        "e^2ε/(1 + e^2ε): add-remove, a value": 2,
    }
    limits = [
        {"epsilon": at, "rate": 1 / (1 + math.exp(-times * at)), "limit": name}
        for name, times in curves.items()
        for at in (end * step / 200 for step in range(201))
    ]
    x = alt.X("epsilon:Q", title="ε", scale=alt.Scale(domain=[0, end], nice=False))
    percent, span = alt.Axis(format="%"), alt.Scale(domain=[0.45, 1.05], nice=False)
    y = alt.Y("rate:Q", title="right guesses, at most", axis=percent, scale=span)
    paint = theme.series(
        "limit",
        list(curves),
        "strokeDash",
        legend=alt.Legend(title=None, orient="bottom", columns=1),
    )
    limit = theme.chart(limits).mark_line().encode(x=x, y=y, **paint)
    marks = [
        {"rate": 1, "name": "without noise: 100 %", "up": True},
        {"rate": 0.5, "name": "coin flip: 50 %", "up": False},
    ]
    lines = theme.chart(marks).encode(y=y)
    above = (
        lines.transform_filter("datum.up").mark_text(align="left", x=6, dy=-8).encode(text="name:N")
    )
    below = (
        lines.transform_filter("!datum.up")
        .mark_text(align="right", x="width", dx=-6, dy=10)
        .encode(text="name:N")
    )
    parts = [theme.dashed(lines), above, below, limit]
    if rates:
        points = theme.dots(theme.chart(rates), 70, color=theme.TEXT[0])
        parts.append(points.encode(x=x, y=y, tooltip=["epsilon:Q", "rate:Q"]))
    return theme.framed(
        alt.layer(*parts),
        "How often an attacker can guess right",
        "guessing which of two data sets, different in one person, gave the answer",
        "dots: measured" if rates else "",
        width=wide,
        height=280,
    )


def _is_discrete(law: object) -> bool:
    if law not in ("continuous", "discrete"):
        raise InvalidParameter(f"law must be 'continuous' or 'discrete', got {quote(law)}")
    return law == "discrete"


def _heights(law: Laplace, reach: Fraction) -> Iterable[tuple[float, float]]:
    points = [step / _POINTS * float(reach) for step in range(-_POINTS, _POINTS + 1)]
    return ((point, law.pdf(point)) for point in points)


def _chances(scale: Fraction, reach: Fraction) -> Iterable[tuple[float, float]]:
    law, far = DiscreteLaplace(scale), math.ceil(reach)
    if 2 * far > _MOST_INTEGERS:
        raise InvalidParameter(
            "scales must be at most 90 for the discrete law; use law='continuous'"
        )
    return ((k, law.pmf(k)) for k in range(-far, far + 1))


def _outputs(delta: Fraction, reach: Fraction, discrete: bool) -> Iterable[Fraction]:
    """The outputs that are drawn, around the middle of 0 and Δ; the loss bends at these two."""
    if not discrete:
        bends = {Fraction(0), delta}
        steps = (delta / 2 + reach * step / _POINTS for step in range(-_POINTS, _POINTS + 1))
        return sorted({*steps, *bends})
    _refuse_broken(delta)
    far = math.ceil(max(reach, delta))
    if 2 * far > _MOST_INTEGERS:
        raise InvalidParameter(
            "scales must be at most 90 for the discrete law; use law='continuous'"
        )
    return map(Fraction, range(math.floor(delta / 2) - far, math.ceil(delta / 2) + far + 1))


def _beyond(
    delta: Fraction, scale: Fraction, loss: Fraction, discrete: bool, *, or_at: bool = False
) -> float:
    """P(L > loss) or P(L ≥ loss) of the loss L, for 0 ≤ loss.

    Δ/λ is the largest loss, of all y ≤ 0. Below it the loss is (Δ − 2y)/λ, so that L > loss means y
    < (Δ − loss·λ)/2.
    """
    end = (delta - loss * scale) / 2
    if end < 0 or (end == 0 and not or_at):
        return 0.0
    if not discrete:
        return float(Laplace(scale).cdf(end))
    return float(DiscreteLaplace(scale).cdf(math.floor(end) if or_at else math.ceil(end) - 1))


def _tails(
    delta: Fraction, scale: Fraction, end: Fraction, discrete: bool
) -> Iterator[tuple[float, float]]:
    """The points (t, P(L > t)) of a line for 0 ≤ t ≤ end, with both ends of each step."""
    most = delta / scale
    steps = (
        {(delta - 2 * y) / scale for y in range(math.floor(delta / 2) + 1)} if discrete else {most}
    )
    smooth = set() if discrete else {most * step / _BENDS for step in range(_BENDS)}
    for at in sorted({Fraction(0), *smooth, *steps}):
        if at in steps:
            yield float(at), _beyond(delta, scale, at, discrete, or_at=True)
        yield float(at), _beyond(delta, scale, at, discrete)
    yield float(end), 0.0


def _losses(
    values: list[dict[str, Any]],
    field: Literal["ratio", "loss"],
    epsilon: Fraction,
    end: float,
    paint: dict[str, Any],
    discrete: bool,
) -> theme.Figure:
    """The ratio or the loss over the output, with its limits: two axes for one curve."""
    ratio, limit = field == "ratio", float(epsilon)
    shown = math.exp if ratio else float
    names = ("e^ε", "e^−ε") if ratio else ("ε", "−ε")
    limits = [
        {
            "limit": shown(at),
            "name": f"{name} = {shown(at):.4g}".replace("= -", "= −"),
            "up": at > 0,
        }
        for at, name in zip((limit, -limit), names, strict=True)
    ]
    span = alt.Scale(
        type="log" if ratio else "linear", domain=[shown(-end), shown(end)], nice=False
    )
    axis = alt.Axis(values=[shown(-limit), shown(0), shown(limit)], format=".3~g", grid=False)
    title = "ratio (logarithmic)" if ratio else "privacy loss"
    curve = theme.chart(values).encode(
        x=alt.X(
            "output:Q", title=None if ratio else "released number y", scale=alt.Scale(nice=False)
        ),
        y=alt.Y(f"{field}:Q", title=title, scale=span, axis=axis),
    )
    lines = theme.chart(limits).encode(y=alt.Y("limit:Q", scale=span))
    above = lines.transform_filter("datum.up").mark_text(align="right", x="width", dx=-4, dy=-8)
    below = lines.transform_filter("!datum.up").mark_text(align="left", x=4, dy=10)
    drawn = curve.mark_line(strokeWidth=1 if discrete else 2).encode(**paint)
    points = [theme.dots(curve, 18).encode(color=paint["color"])] if discrete else []
    texts = [above.encode(text="name:N"), below.encode(text="name:N")]
    return alt.layer(theme.dashed(lines), drawn, *points, *texts)


def _tail_panel(
    tails: list[dict[str, Any]], epsilon: Fraction, beyond: float, end: float, paint: dict[str, Any]
) -> theme.Figure:
    """How often the loss exceeds t, with the part beyond ε."""
    limit = float(epsilon)
    across = alt.X("loss:Q", title="t", sort=None, scale=alt.Scale(domain=[0, end], nice=False))
    upward = alt.Y("tail:Q", title="P(loss > t)", scale=alt.Scale(domain=[0, 1], nice=False))
    zone = theme.chart([{"from": limit, "to": end}]).mark_rect(color=theme.LINE[0], opacity=0.18)
    line = theme.chart(tails).mark_line().encode(x=across, y=upward, **paint)
    edge = theme.dashed(theme.chart([{"from": limit}])).encode(x="from:Q")
    place = {"from": limit, "tail": 0.93, "name": f"ε = {limit:.4g}"}
    mark = (
        theme.chart([place])
        .mark_text(align="right", dx=-5)
        .encode(x="from:Q", y="tail:Q", text="name:N")
    )
    parts = [zone.encode(x=alt.X("from:Q", title="t"), x2="to:Q"), edge, line, mark]
    if beyond:
        told = theme.chart(
            [{"loss": limit, "tail": beyond, "name": f"{100 * beyond:.3g} % beyond ε"}]
        )
        parts.append(theme.dots(told, 60, color=theme.TEXT[0]).encode(x="loss:Q", y="tail:Q"))
        words = told.mark_text(align="left", dx=8, dy=-10, color=theme.TEXT[0])
        parts.append(words.encode(x="loss:Q", y="tail:Q", text="name:N"))
    return alt.layer(*parts)


def _continuous(scale: Fraction, delta: Fraction) -> Iterable[dict[str, Any]]:
    """Points of both curves, with a point at each peak."""
    law, shift, reach = Laplace(scale), float(delta), 4 * float(scale)
    inner = max(2, min(_POINTS, math.ceil(_POINTS * shift / reach)))
    between = [shift * step / inner for step in range(inner + 1)]
    outside = [reach * step / _POINTS for step in range(1, _POINTS + 1)]
    points = [
        *(-point for point in reversed(outside)),
        *between,
        *(shift + point for point in outside),
    ]
    return (_pair(point, law.pdf(point), law.pdf(point - shift), shift, scale) for point in points)


def _discrete(scale: Fraction, delta: Fraction) -> Iterable[dict[str, Any]]:
    """Probabilities of the integers in reach."""
    _refuse_broken(delta)
    law, shift, reach = DiscreteLaplace(scale), int(delta), max(3, math.ceil(4 * scale))
    if 2 * reach + shift > _MOST_INTEGERS:
        raise InvalidParameter(
            "sensitivity/epsilon must be at most 49 for the discrete law; use law='continuous'"
        )
    integers = range(-reach, shift + reach + 1)
    return (
        _pair(number, law.pmf(number), law.pmf(number - shift), shift, scale) for number in integers
    )


def _refuse_broken(delta: Fraction) -> None:
    if delta.denominator != 1:
        raise InvalidParameter(
            f"sensitivity must be a whole number for the discrete law, got {delta}"
        )


def _pair(
    output: float, first: float, second: float, shift: float, scale: Fraction
) -> dict[str, Any]:
    """An output: its probability from either data set, and their ratio e^((|y−Δ|−|y|)/λ), which
    cannot overflow.
    """
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
    return _dotted(base, paint, 40)


def _dotted(base: theme.Figure, paint: dict[str, Any], size: int) -> theme.Figure:
    """Dots of a discrete law, with a thin line to lead the eye."""
    line = base.mark_line(opacity=0.35, strokeWidth=1).encode(color=paint["color"])
    return line + theme.dots(base, size).encode(**paint)


def _ratio(values: list[dict[str, Any]], epsilon: Fraction, discrete: bool) -> theme.Figure:
    top = math.exp(float(epsilon))
    limits = [
        {"limit": top, "name": f"e^ε = {top:.4g}"},
        {"limit": 1 / top, "name": f"e^−ε = {1 / top:.4g}"},
    ]
    scale = alt.Scale(type="log", domain=[top**-1.5, top**1.5], nice=False)
    axis = alt.Axis(values=[1 / top, 1, top], format=".3~g", grid=False)
    curve = theme.chart(values).encode(
        x=alt.X("output:Q", title="released number", scale=alt.Scale(nice=False)),
        y=alt.Y("ratio:Q", title="ratio (logarithmic)", scale=scale, axis=axis),
    )
    line = curve.mark_line(color=theme.GREEN[0], strokeWidth=1 if discrete else 2)
    lines = theme.chart(limits).encode(y=alt.Y("limit:Q"))
    above = lines.transform_filter("datum.limit >= 1").mark_text(
        align="right", x="width", dx=-4, dy=-8
    )
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
