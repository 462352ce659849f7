"""The figure of a release: of an answer's table, or of a release out of memory.

The shape of the keys decides (`panels`): named keys are listed, bins stand side by side, numbers and dates make a
line. Of two group columns one is the axis and the other a colour, if it has at most five keys, or a small picture each,
up to twelve; beyond that, and for more columns, the keys are joined into one.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidParameter
from discreet.parameters import exact_count, quote
from discreet.release.answer import Answer
from discreet.release.release import Cumulative, Histogram, Release, Releases
from discreet.show.figures import panels, theme
from discreet.show.figures.distributions import cumulative, histogram
from discreet.show.figures.released_table import Keys, Numbers, Table, of_answer, of_release, of_releases
from discreet.show.figures.released_table import title as titled

_MOST_COLUMNS = 4
_NARROWEST = 200
"""Of a panel beside another."""

_ORDERED = ("number", "date", "bins")


def release(
    answer: Answer | Release | Releases, *, column: str | None = None, width: object = theme.WIDTH
) -> theme.Figure:
    """The released numbers with their intervals; `column` chooses one of several."""
    wide = exact_count("width", width)
    match answer:
        case Answer():
            return _drawn(of_answer(answer), column, wide)
        case Histogram():
            return histogram(answer, wide)
        case Cumulative():
            return cumulative(answer, wide)
        case Release():
            return _drawn(of_release(answer), column, wide)
        case Releases():
            return _drawn(of_releases(answer), column, wide)
    raise InvalidParameter(f"answer must be an answer or a release, got {quote(answer)}")


def _drawn(table: Table, column: str | None, width: int) -> theme.Figure:
    alt = theme.altair()
    names = [one.name for one in table.columns]
    column = None if column is None else titled(column)
    if column is not None and column not in names:
        raise InvalidParameter(f"column must be one of {', '.join(names)}, got {quote(column)}")
    columns = [one for one in table.columns if column in (None, one.name)]
    most = len(columns) if not table.keys else _MOST_COLUMNS
    shown, notes = columns[:most], [table.note]
    if len(columns) > most:
        notes.append(f"the first {most} of {len(columns)} columns; column= chooses another")
    by = " and ".join(keys.name for keys in table.keys)
    title = f"{', '.join(one.name for one in shown)}{f' by {by}' if by else ''}"
    if not shown or not len(table):
        empty = alt.Chart(theme.rows([{"text": "no rows"}])).mark_text().encode(text="text:N")
        return theme.framed(empty.properties(width=width, height=60), title, *notes, width=width)
    chart, more = _arranged(table, shown, width)
    return theme.framed(chart, title if len(title) <= 80 else title[:79] + "…", *notes, more, width=width)


def _arranged(table: Table, columns: list[Numbers], width: int) -> tuple[theme.Figure, str]:
    """The panels of all columns, and what must be said of them."""
    alt = theme.altair()
    if not table.keys:
        return _stacked([panels.lonely(column, width) for column in columns]), ""
    axis, series, facets = _roles(table.keys)
    if facets is not None:
        return _stacked([_faceted(column, axis, facets, width) for column in columns]), ""
    if axis.kind in _ORDERED:
        shape = panels.binned if axis.kind == "bins" else panels.ordered
        return _stacked([shape(column, axis, series, width) for column in columns]), ""
    rows = len(axis.different)
    if rows > panels.MOST_LABELS and series is None:
        chosen = _chosen(table, columns[0])
        many = f"with labels: the {'first' if table.sorted else 'largest'} {len(chosen)} of {rows:,}"
        return _stacked([panels.crowded(column, axis, width, chosen=chosen) for column in columns]), many
    side = max(1, min(len(columns), width // _NARROWEST))
    each = (width - 24 * (side - 1)) // side
    drawn = [panels.listed(column, axis, series, each, labels=at % side == 0) for at, column in enumerate(columns)]
    return (alt.concat(*drawn, columns=side) if len(drawn) > 1 else drawn[0]), ""


def _stacked(drawn: list[theme.Figure]) -> theme.Figure:
    return theme.altair().vconcat(*drawn) if len(drawn) > 1 else drawn[0]


def _chosen(table: Table, column: Numbers) -> list[int]:
    """The rows that get a label: the first ones as the question orders them, or else the largest."""
    every = range(len(table))
    if table.sorted:
        return list(every)[: panels.MOST_LABELS]
    known = [at for at in every if column.fields(at)["value"] is not None]
    return sorted(known, key=lambda at: -column.fields(at)["value"])[: panels.MOST_LABELS]


def _roles(keys: tuple[Keys, ...]) -> tuple[Keys, Keys | None, Keys | None]:
    """Which column is the axis, which a colour, which a small picture each."""
    if len(keys) == 1:
        return keys[0], None, None
    if len(keys) == 2:
        axis, other = sorted(keys, key=lambda one: (one.kind not in _ORDERED, -len(one.different)))
        rows = len(axis.different)
        if axis.kind in _ORDERED or rows <= panels.MOST_LABELS:
            if len(other.different) <= len(theme.SERIES):
                return axis, other, None
            if len(other.different) <= panels.MOST_FACETS:
                return axis, None, other
    return _joined(keys), None, None


def _joined(keys: tuple[Keys, ...]) -> Keys:
    """All keys as one, each row with a label of its own."""
    labels: list[Any] = []
    seen: dict[str, int] = {}
    for parts in zip(*(one.labels for one in keys), strict=True):
        label = " · ".join(str(part).removesuffix("T00:00:00Z") for part in parts)
        seen[label] = seen.get(label, 0) + 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return Keys(name=", ".join(one.name for one in keys), kind="text", labels=labels)


def _faceted(column: Numbers, axis: Keys, facets: Keys, width: int) -> theme.Figure:
    """One small picture for each key of the second column."""
    alt = theme.altair()

    def heading(text: str) -> Any:
        return alt.TitleParams(text=text, fontSize=12, offset=6)

    across = max(1, width // _NARROWEST)
    each = (width - 24 * (across - 1)) // across
    shape = {"bins": panels.binned, "number": panels.ordered, "date": panels.ordered}.get(axis.kind, panels.listed)
    drawn = []
    for name in facets.different:
        rows = [at for at, label in enumerate(facets.labels) if label == name]
        part = Numbers(name=column.name, from_zero=column.from_zero, items=[column.items[at] for at in rows])
        keys = Keys(name=axis.name, kind=axis.kind, labels=[axis.labels[at] for at in rows])
        panel = shape(part, keys, None, each)
        drawn.append(
            (panel if shape is panels.listed else panel.properties(height=140)).properties(title=heading(str(name)))
        )
    return alt.concat(*drawn, columns=across).resolve_scale(y="shared" if shape is not panels.listed else "independent")
