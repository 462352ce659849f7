"""How often an attacker is right who tells two neighbouring data sets apart from one answer.

    without noise   always: a mean that is computed exactly changes with every record
    with ε          at most e^ε / (1 + e^ε), whatever the attacker knows and computes; a coin is right half of the time

The line is the limit for one guess between two equally likely data sets. Measured rates may be laid over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from discreet.errors import InvalidParameter
from discreet.parameters import exact, exact_count, exact_number, quote
from discreet.show.figures import theme

_POINTS = 200


def attacker(
    *, measured: Iterable[tuple[object, object]] = (), largest: object = 6, width: object = theme.WIDTH
) -> theme.Figure:
    """The limit of an attacker's success against ε, with measured pairs (ε, rate) over it."""
    alt = theme.altair()
    wide, found = exact_count("width", width), [_measured(pair) for pair in measured]
    end = max([float(exact("largest", largest)), *(point["epsilon"] for point in found)])
    if end > 700:
        raise InvalidParameter(f"largest must be at most 700, got {quote(largest)}")
    values = [{"epsilon": end * at / _POINTS, "rate": _limit(end * at / _POINTS)} for at in range(_POINTS + 1)]
    x = alt.X("epsilon:Q", title="ε", scale=alt.Scale(domain=[0, end], nice=False))
    y = alt.Y(
        "rate:Q", title="right guesses", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0.45, 1.05], nice=False)
    )
    limit = alt.Chart(theme.rows(values)).mark_line().encode(x=x, y=y)
    marks = [
        {"rate": 1, "name": "without noise: always", "up": True},
        {"rate": 0.5, "name": "a coin: half of the time", "up": False},
    ]
    lines = alt.Chart(theme.rows(marks)).encode(y=y)
    rules = lines.mark_rule(strokeDash=[4, 4], color=theme.LINE[0])
    above = lines.transform_filter("datum.up").mark_text(align="left", x=6, dy=-8).encode(text="name:N")
    below = lines.transform_filter("!datum.up").mark_text(align="right", x="width", dx=-6, dy=10).encode(text="name:N")
    label = alt.Chart(theme.rows([{"epsilon": end * 0.3, "rate": _limit(end * 0.3)}]))
    name = label.mark_text(align="left", dx=10, dy=12, color=theme.BLUE[0]).encode(
        x=x, y=y, text=alt.value("at most e^ε / (1 + e^ε)")
    )
    parts = [rules, above, below, limit, name]
    if found:
        points = alt.Chart(theme.rows(found)).mark_point(filled=True, size=70, color=theme.VERMILION[0], opacity=1)
        parts.append(points.encode(x=x, y=y, tooltip=["epsilon:Q", "rate:Q"]))
    chart = alt.layer(*parts).properties(width=wide, height=280)
    return theme.framed(
        chart,
        "What an attacker can tell from one answer",
        "guesses between two data sets that differ in one person",
        "dots: measured" if found else "",
        width=wide,
    )


def _limit(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def _measured(pair: Any) -> dict[str, float]:
    match pair:
        case [epsilon, rate]:
            at, share = exact_number("epsilon", epsilon), exact_number("rate", rate)
            if at >= 0 and 0 <= share <= 1:
                return {"epsilon": float(at), "rate": float(share)}
    raise InvalidParameter("measured must be pairs (epsilon, rate) with 0 ≤ rate ≤ 1")
