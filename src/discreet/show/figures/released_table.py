"""The data of a figure: rows of released numbers with the ends of their intervals, and their keys.

An infinite end and a missing number are null in a spec. Integers beyond 2⁵³, which a browser cannot
represent, become floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from discreet.ask.query import Group, Named
from discreet.errors import one_line
from discreet.formats import as_float, shown
from discreet.outside import read_fraction
from discreet.release.answer import Answer
from discreet.release.release import Histogram, Release, Releases, Vector

Kind: TypeAlias = Literal["text", "bins", "number", "date"]

_EXACT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A group column: a label for each row; numbers and dates have a position on an axis."""

    name: str
    kind: Kind
    labels: Sequence[Any]

    @property
    def different(self) -> list[Any]:
        """The distinct labels, in the order of the answer."""
        return list(dict.fromkeys(self.labels))

    def only(self, rows: Iterable[int]) -> Keys:
        return replace(self, labels=[self.labels[row] for row in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of released numbers: for each row, a value and the ends of its interval."""

    name: str
    from_zero: bool  # whether it is drawn as bars from zero: counts and sums
    items: Sequence[tuple[Any, Any, Any]]

    def fields(self, row: int) -> dict[str, Any]:
        return dict(zip(("value", "low", "high"), map(plain, self.items[row]), strict=True))

    def only(self, rows: Iterable[int]) -> Numbers:
        return replace(self, items=[self.items[row] for row in rows])

    def ranked(self) -> list[int]:
        """The rows that have a number, the largest first."""
        values = {row: self.fields(row)["value"] for row in range(len(self.items))}
        return sorted(
            (row for row in values if values[row] is not None), key=lambda row: -values[row]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    keys: tuple[Keys, ...]
    columns: tuple[Numbers, ...]
    note: str  # the confidence level and the cost
    sorted: bool  # whether the question orders its rows

    def __len__(self) -> int:
        return len(self.columns[0].items) if self.columns else 0


def of_answer(answer: Answer) -> Table:
    groups = {group.name: group for group in answer.query.groups}
    aggregates = {
        statistic["name"]: statistic["asked"] for statistic in answer.record.get("statistics", [])
    }
    keys, columns = [], []
    for name, output in answer.query.outputs:
        source = output.name if isinstance(output, Named) else ""
        if source in groups:
            kind = _kind(groups[source])
            labels = [_label(row[name][0], kind) for row in answer.rows]
            keys.append(Keys(name=titled(name), kind=kind, labels=labels))
        else:
            from_zero = aggregates.get(source, "").startswith(("count(", "sum("))
            columns.append(
                Numbers(
                    name=titled(name), from_zero=from_zero, items=[row[name] for row in answer.rows]
                )
            )
    record = answer.record
    percent = f"{float(read_fraction(record['confidence'])) * 100:g} %"
    together = ", all together" if record.get("simultaneous") else ""
    note = f"intervals at {percent}{together} · ε {shown(answer.epsilon)} · {record['neighbors']}"
    return Table(
        keys=tuple(keys), columns=tuple(columns), note=note, sorted=bool(answer.query.order)
    )


def of_release(release: Release) -> Table:
    """The table of a release from arrays: one number, or a row for each number."""
    note = f"intervals at 95 % · ε {shown(release.epsilon)} · {release.neighbors}"
    items = triples(release)
    labels = Keys(name="number", kind="text", labels=[str(row) for row in range(len(items))])
    name, from_zero = release.statistic, release.statistic in ("count", "sum")
    if isinstance(release, Histogram) and release.keys:
        labels, name, from_zero = _of_keys(release.keys), "count", True
    keys = (labels,) if isinstance(release, Vector) else ()
    column = Numbers(name=name, from_zero=from_zero, items=items)
    return Table(
        keys=keys,
        columns=(column,),
        note=f"{note} · {release.note}" if release.note else note,
        sorted=False,
    )


def _of_keys(keys: tuple[Any, ...]) -> Keys:
    """The keys of a histogram: on a number or date axis if all keys are numbers or dates."""
    if all(isinstance(key, date) for key in keys):
        moments = [
            datetime(key.year, key.month, key.day) if type(key) is date else key  # noqa: DTZ001
            for key in keys
        ]
        return Keys(
            name="key", kind="date", labels=[f"{moment.isoformat()}Z" for moment in moments]
        )
    if all(isinstance(key, int | float) and not isinstance(key, bool) for key in keys):
        return Keys(name="key", kind="number", labels=[plain(key) for key in keys])
    return Keys(name="key", kind="text", labels=[one_line(str(key)) for key in keys])


def of_releases(releases: Releases) -> Table:
    """The table of several statistics of one release, a column for each."""
    columns = [
        Numbers(name=name, from_zero=False, items=[(part.value, *part.interval())])
        for name, part in releases.items()
    ]
    [neighbors, *_] = [part.neighbors for part in releases.values()]
    note = f"intervals at 95 % each · ε {shown(releases.epsilon)} in all · {neighbors}"
    return Table(keys=(), columns=tuple(columns), note=note, sorted=False)


def triples(release: Release) -> list[tuple[Any, Any, Any]]:
    """Each number of a release with the ends of its interval."""
    if not isinstance(release, Vector):
        return [(release.value, *release.interval())]
    return list(
        zip(*(column.tolist() for column in (release.value, *release.interval())), strict=True)
    )


def titled(name: str) -> str:
    """The name of a column in a figure.

    Vega reads a title as an expression, in which a backslash escapes.
    """
    return one_line(name).replace("\\", "∖")


def plain(number: Any) -> Any:
    number = number.item() if hasattr(number, "item") else number
    if isinstance(number, int):
        return int(number) if abs(number) <= _EXACT else as_float(Fraction(number))
    return number if number is not None and math.isfinite(number) else None


def _kind(group: Group) -> Kind:
    if group.edges is not None:
        return "bins"
    kind = group.keys.kind
    return kind if group.other is None and kind in ("number", "date") else "text"


def _label(key: Any, kind: Kind) -> Any:
    """A key on its axis; a date as an instant in UTC, so that the time zone of the machine does not
    shift it.
    """
    if kind == "number":
        return plain(key)
    if kind != "date":
        return one_line(str(key))
    day, _, time = str(key).partition(" ")
    return f"{day}T{time or '00:00:00'}Z"
