"""Files that a command writes: tables, records and figures; what cannot be written is refused before ε is spent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.ask.siblings import budgets
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter
from discreet.files.writer import Kept, free, kept_files
from discreet.formats import left_shown, shown
from discreet.parameters import quote

if TYPE_CHECKING:
    from discreet.release.answer import Answer
    from discreet.release.reports.report import Report
    from discreet.release.study import Study

_TABLES = (".csv", ".json", ".parquet")
_PICTURES = (".png", ".svg", ".html")


def refuse_unusable(files: Iterable[str]) -> None:
    for file in files:
        path = Path(file)
        if path.suffix not in (*_TABLES, *_PICTURES):
            raise InvalidParameter(f"-o must end in {', '.join((*_TABLES, *_PICTURES))}, got {quote(path.name)}")
        if path.suffix in _PICTURES:
            from discreet.show.figures import theme

            theme.converter()
            theme.altair()


def refuse_taken(files: Sequence[str], *, force: bool, kept: Kept) -> None:
    """Refuse a file that could not be written, or must not be, and the same of the record beside it."""
    records = list({Path(file).with_suffix(".release.json") for file in files})
    paths = [*map(Path, files), *records]
    for path in paths:
        free(path, force=force, kept=kept)
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise InvalidParameter("each -o must be a file of its own")


def save(answer: Answer, files: Sequence[str], *, force: bool = False) -> list[Path]:
    """The files that were written: the answer in each format, and its record beside it."""
    paths: list[Path] = []
    try:
        for file in files:
            if Path(file).suffix in _TABLES:
                paths.append(answer.save(file, force=force))
            elif Path(file).suffix == ".html":
                from discreet.show import report

                paths.append(report.write(answer, file, force=force))
            else:
                from discreet.show import figures

                chart = figures.make("release", answer=answer)
                paths.append(figures.save(chart, file, force=force, kept=answer.kept))
            paths.append(answer.save_record(file, force=force))
    except (DiscreetError, OSError) as error:
        why = str(error.strerror if isinstance(error, OSError) else error)
        raise EngineFailed(
            f"{Path(file).name} could not be written: {why.rstrip('.')}. "
            "The answer is kept in the ledger: ask again, it is free"
        ) from None
    return list(dict.fromkeys(paths))


def receipt(
    answer: Answer | Report, study: Study, *, ledger: str | None, known: bool, saved: Iterable[Path] = ()
) -> str:
    """What was spent, what is left, and where it is written down; `ledger` is its place, if it was named."""
    ledger_name = "the ledger" if ledger and "://" in ledger else Path(ledger or f"{study.name}.ledger").name
    entry = study.ledger.entry(answer.entry, study=study.name) if answer.epsilon else None
    cost = Fraction(0) if entry is None or entry.kind == "repeat" or known else answer.epsilon
    where = f" (entry {entry.number:,} of {ledger_name})" if entry is not None else ""
    free = ", asked before" if answer.epsilon and not cost else ""
    names = ", ".join(dict.fromkeys(file.name for file in saved))
    beside = f" {budgets(study.name, study.siblings)}" if study.siblings else ""
    spent = f"ε {shown(cost)} spent{free}, {left_shown(answer.remaining)} left{where}.{beside}"
    return f"{spent} Saved {names}" if names else spent


def within_of(texts: list[str] | None) -> str | dict[str, str] | None:
    """The errors that are accepted: one for all numbers, or by column."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    if any("=" not in text for text in texts):
        raise InvalidParameter("--within must be one number, or be written as column=50 each time")
    return {name: error for name, _, error in (text.rpartition("=") for text in texts)}


def weights_of(texts: Iterable[str]) -> dict[str, str]:
    weights = {}
    for text in texts:
        name, equals, weights[name] = text.rpartition("=")
        if not equals:
            raise InvalidParameter(f"--weight must be written as column=2, got {quote(text)}")
    return weights


def figure_names() -> list[str]:
    """The figures that can be drawn, with what they show."""
    from discreet.show import figures

    names = {name: (maker.__doc__ or "").splitlines()[0] for name, maker in figures.NAMES.items() if name != "release"}
    return [f"{name:<10} {what}" for name, what in names.items()]


def draw(name: str, output: str | None, ledger: str | None, options: dict[str, Any], *, force: bool = False) -> Path:
    from discreet.cli import ledger as ledgers
    from discreet.show import figures

    if name == "release":
        raise InvalidParameter("the figure of a release is made with it: discreet release … -o answer.svg")
    if name not in figures.NAMES:
        drawn = ", ".join(figure for figure in figures.NAMES if figure != "release")
        raise InvalidParameter(f"figure must be one of {drawn}, got {quote(name)}")
    if name == "budget" and ledger is None:
        raise InvalidParameter("figure budget needs --ledger study.toml: the study, or its ledger")
    target = output if output is not None else f"{name}.svg"
    options = {key: value for key, value in options.items() if value is not None}
    largest = options.get("largest", "")
    if largest.isascii() and largest.isdigit() and len(largest) < 19:  # numbers of people are counted
        options["largest"] = int(largest)
    if ledger is None:
        return figures.save(figures.make(name, **options), target, force=force)
    with ledgers.open_ledger(ledger) as book:
        chart = figures.make(name, ledger=book, **options)
        return figures.save(chart, target, force=force, kept=kept_files([ledger, *book.files]))
