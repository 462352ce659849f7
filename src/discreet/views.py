"""HTML and figures of a value, for notebooks and for `figure()`.

`discreet.show` draws them. It imports plans, answers and ledgers, so these must not import it:
imports would be circular, and every release would load the drawing code. It is therefore imported
by name, on first use. Figures need the extra `plot`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def html(value: object) -> str:
    """A plan, answer, report, release, study or ledger as HTML for a notebook."""
    page: str = import_module("discreet.show.html").of(value)
    return page


def figure(value: object, **options: Any) -> Any:
    """An answer or a release as an Altair chart; `column=` selects a column, `width=` in pixels."""
    return import_module("discreet.show.figures").make("release", answer=value, **options)


def budget(ledger: object, **options: Any) -> Any:
    """A ledger's spends over time as an Altair chart."""
    return import_module("discreet.show.figures").make("budget", ledger=ledger, **options)


def planned(plan: object, **options: Any) -> Any:
    """The error of a plan against ε as an Altair chart."""
    return import_module("discreet.show.figures.accuracy").planned(plan, **options)


def card(value: object) -> Any:
    """The card of a study, an answer or a report: its privacy claim, for publication."""
    return import_module("discreet.show.card").of(value)


def signed(release: object, files: object, **options: Any) -> list[Any]:
    """The signatures of the files of an answer or a report."""
    signatures: list[Any] = import_module("discreet.show.signing").sign(release, files, **options)
    return signatures


def saved(report: object, folder: object, **options: Any) -> list[Any]:
    """The paths of a report's tables and of its page, written to a folder."""
    paths: list[Any] = import_module("discreet.show.tables").save(report, folder, **options)
    return paths


def published(answer: object, path: object, **options: Any) -> Path:
    """The table of an answer, written to a file in the format of its suffix."""
    file: Path = import_module("discreet.show.publish").save(answer, path, **options)
    return file
