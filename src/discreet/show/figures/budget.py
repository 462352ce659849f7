"""How much of a study's ε was spent, when, and by whom, from the entries of the ledger.

The line rises with each spend and never falls; the dashed line is the total, which it cannot cross.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from discreet.errors import InvalidParameter
from discreet.ledger.chain import Entry, in_epsilon
from discreet.ledger.ledger import Ledger
from discreet.parameters import quote
from discreet.show.figures import theme
from discreet.show.figures.theme import alt
from discreet.show.publication import many

# of more spends, only every second, third, … is drawn; the line looks the same
_MOST_POINTS = 1_000
_MANY_POINTS = 60  # with more spends, the dots are small
_NOBODY = "no name given"
_OTHERS = "others"


def budget(
    ledger: Ledger, *, study: str | None = None, width: object = theme.WIDTH
) -> theme.Figure:
    """ε spent over time under the study's total, and who spent it."""
    wide, name = theme.pixels(width), study if study is not None else _only(ledger)
    total = float(ledger.total(name))  # refuses an unknown study
    entries = ledger.entries(name)
    spends = [entry for entry in entries if entry.kind in ("spend", "restore")]
    analysts, step = _analysts(spends), -(-len(spends) // _MOST_POINTS) or 1
    points = [
        {
            "time": entry.time,
            "spent": float(in_epsilon(entry.spent)),
            "epsilon": float(in_epsilon(entry.amount)),
            "analyst": _name(entry, analysts),
        }
        for entry in spends[::-step][::-1]  # the last spend is always drawn
    ]
    start = {"time": entries[0].time, "spent": 0.0}
    line = theme.chart([start, *points]).mark_line(
        interpolate="step-after", color=theme.QUIET[0], strokeWidth=1.5
    )
    axis = alt.Axis(format=theme.CLOCK, labelOverlap=True, tickCount=6)
    x = alt.X(
        "time:T", title="time (UTC)", scale=alt.Scale(type="utc", domain=_span(entries)), axis=axis
    )
    y = alt.Y("spent:Q", title="ε spent", scale=alt.Scale(domain=[0, total * 1.08], nice=False))
    paint = theme.series("analyst", analysts, "shape", legend=None)
    tips = [alt.Tooltip("time:T", format="%Y-%m-%d %H:%M"), "epsilon:Q", "spent:Q", "analyst:N"]
    dots = theme.dots(theme.chart(points), 70 if len(points) <= _MANY_POINTS else 12)
    dots = dots.encode(x=x, y=y, **paint, tooltip=tips)
    top = theme.chart([{"spent": total, "name": f"total ε = {total:.4g}"}])
    rule = theme.dashed(top).encode(y="spent:Q")
    text = top.mark_text(align="left", x=4, dy=-8).encode(y="spent:Q", text="name:N")
    chart = alt.layer(rule, text, line.encode(x=x, y=y), *([dots] if points else [])).properties(
        width=wide, height=260
    )
    if len(analysts) > 1:
        chart = alt.vconcat(chart, _shares(spends, analysts, paint).properties(width=wide))
    left = float(ledger.remaining(name))
    spent = (
        f"ε {total - left:.4g} of {total:.4g} spent in {many(len(spends), 'spend')}, {left:.4g}"
        " left"
    )
    return theme.framed(chart, f"The budget of {name}", spent, width=wide)


def _only(ledger: Ledger) -> str:
    studies = ledger.studies()
    if len(studies) != 1:
        named = ", ".join(map(quote, studies[:10])) or "none"
        raise InvalidParameter(
            f"study must be named, since the ledger does not have exactly one; it has {named}"
        )
    return studies[0]


def _analysts(spends: list[Entry]) -> list[str]:
    """The names that get a colour: those who spent most, and one for all others."""
    amounts: Counter[str] = Counter()
    for entry in spends:
        amounts[entry.analyst or _NOBODY] += entry.amount
    order = [name for name, _ in amounts.most_common()]
    most = len(theme.SERIES)
    return order if len(order) <= most else [*order[: most - 1], _OTHERS]


def _shares(spends: list[Entry], analysts: list[str], paint: dict[str, Any]) -> theme.Figure:
    """How much each analyst spent; it also serves as the legend."""
    amounts = dict.fromkeys(analysts, 0)
    for entry in spends:
        amounts[_name(entry, analysts)] += entry.amount
    rows = [
        {"analyst": name, "share": float(in_epsilon(amount))} for name, amount in amounts.items()
    ]
    base = theme.chart(rows).properties(height=alt.Step(22))
    x = alt.X("share:Q", title="ε spent by each analyst")
    y = alt.Y(
        "analyst:N",
        sort=analysts,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=110),
    )
    bars = base.mark_bar(opacity=0.45, height={"band": 0.62}).encode(x=x, y=y, color=paint["color"])
    return bars + theme.dots(base, 60).encode(x=x, y=y, tooltip=["share:Q"], **paint)


def _name(entry: Entry, names: list[str]) -> str:
    name = entry.analyst or _NOBODY
    return name if name in names else _OTHERS


def _span(entries: list[Entry]) -> list[str]:
    """The time from the first entry to the last, at least a minute, since the ledger's times are
    whole seconds.
    """
    first, last = (datetime.fromisoformat(entries[index].time) for index in (0, -1))
    return [first.isoformat(), max(last, first + timedelta(minutes=1)).isoformat()]
