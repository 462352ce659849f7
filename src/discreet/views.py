"""The way from a value to its pictures, for `figure()` and for notebooks.

What a reader sees is made in `discreet.show`, which knows plans, answers and ledgers; they must not know it, or the
layers would point in a circle and every release would load what draws it. So the show is called by its name, and only
when someone looks. Tables need nothing more; figures need the extra `plot`, and say so.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def html(value: object) -> str:
    """A plan, answer, report, release, study or ledger as a notebook shows it."""
    found: str = import_module("discreet.show.html").of(value)
    return found


def figure(value: object, **options: Any) -> Any:
    """An answer or a release as a chart of altair; `column=` chooses one of several, `width=` is in pixels."""
    return import_module("discreet.show.figures").make("release", answer=value, **options)


def budget(ledger: object, **options: Any) -> Any:
    """A ledger's spends over time as a chart of altair."""
    return import_module("discreet.show.figures").make("budget", ledger=ledger, **options)


def planned(plan: object, **options: Any) -> Any:
    """The error of a plan against ε as a chart of altair."""
    return import_module("discreet.show.figures.accuracy").planned(plan, **options)


def card(value: object) -> Any:
    """The card of a study, an answer or a report: what is claimed, to be published."""
    return import_module("discreet.show.card").of(value)


def signed(release: object, files: object, **options: Any) -> list[Any]:
    """The signatures of the files of an answer or a report."""
    made: list[Any] = import_module("discreet.show.signing").sign(release, files, **options)
    return made


def saved(report: object, folder: object, **options: Any) -> list[Any]:
    """The tables of a report as files, with a page."""
    found: list[Any] = import_module("discreet.show.tables").save(report, folder, **options)
    return found


def published(answer: object, path: object, **options: Any) -> Path:
    """The table of an answer as a file of its suffix."""
    file: Path = import_module("discreet.show.publish").save(answer, path, **options)
    return file
