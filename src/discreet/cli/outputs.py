"""Files that a command writes: tables, records and figures.

An impossible file is refused before ε is spent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.ask.siblings import budgets
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter, errno_code
from discreet.files.writer import Kept, free, kept_files
from discreet.formats import left_shown, shown
from discreet.parameters import quote

if TYPE_CHECKING:
    from discreet.release.answer import Answer
    from discreet.release.profiles.profile import Profile
    from discreet.release.reports.report import Report
    from discreet.release.study import Study

_PICTURES = (".png", ".svg", ".pdf")


def refuse_unusable(files: Iterable[str], *, bom: bool) -> None:
    from discreet.show import publish

    for file in map(Path, files):
        if file.suffix in _PICTURES:
            from discreet.show.figures import theme

            theme.require()
        elif file.suffix not in publish.SUFFIXES:
            suffixes = ", ".join((*publish.SUFFIXES, *_PICTURES))
            raise InvalidParameter(f"-o must end in {suffixes}, got {quote(file.name)}")
        else:
            publish.refuse(file)
    if bom and not any(Path(file).suffix == ".csv" for file in files):
        raise InvalidParameter(
            "--bom marks a .csv file: name a .csv file with -o, or leave --bom out"
        )


def refuse_long(files: Iterable[str], rows: int) -> None:
    from discreet.show import spreadsheet

    for file in map(Path, files):
        if file.suffix == ".xlsx":
            spreadsheet.refuse_long(file.name, rows)


def refuse_taken(files: Sequence[str], *, force: bool, kept: Kept) -> None:
    """Refuse files that could not or must not be written, and likewise the records beside them."""
    records = list({Path(file).with_suffix(".release.json") for file in files})
    paths = [*map(Path, files), *records]
    for path in paths:
        free(path, force=force, kept=kept)
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise InvalidParameter(
            "each -o must name a different file, and none may be the record of another"
        )


def save(
    answer: Answer, files: Sequence[str], *, bom: bool, force: bool = False, **look: Any
) -> list[Path]:
    """The files that were written: the answer in each format, and its record beside it."""
    paths: list[Path] = []
    try:
        for file in files:
            if (suffix := Path(file).suffix) not in _PICTURES:
                paths.append(answer.save(file, bom=bom and suffix == ".csv", force=force, **look))
            else:
                from discreet.show import figures

                chart = figures.make("release", answer=answer)
                paths.append(figures.save(chart, file, force=force, kept=answer.kept))
            paths.append(answer.save_record(file, force=force))
    except (DiscreetError, OSError) as error:
        why = str(error.strerror if isinstance(error, OSError) else error)
        raise EngineFailed(
            f"{Path(file).name} could not be written: {why.rstrip('.')}. "
            "The ledger keeps the answer: run the command again, it is free",
            spent=True,
            code=errno_code(error.errno or 0) if isinstance(error, OSError) else error.code,
        ) from None
    return list(dict.fromkeys(paths))


def receipt(
    answer: Answer | Report | Profile, study: Study, *, known: bool, saved: Iterable[Path] = ()
) -> str:
    ledger_name = "the ledger" if len(study.budget.files) == 1 else study.budget.files[0].name
    entry = study.budget.entry(answer.entry) if answer.epsilon else None
    cost = Fraction(0) if entry is None or entry.kind == "repeat" or known else answer.epsilon
    where = f" (entry {entry.number:,} of {ledger_name})" if entry is not None else ""
    free = " (asked before)" if answer.epsilon and not cost else ""
    names = ", ".join(dict.fromkeys(file.name for file in saved))
    beside = f" {budgets(study.file_name, study.siblings)}" if study.siblings else ""
    spent = f"ε {shown(cost)} spent{free}, {left_shown(answer.remaining)} left{where}.{beside}"
    return f"{spent} Saved {names}" if names else spent


def within_of(texts: list[str] | None) -> str | dict[str, str] | None:
    """The accepted errors: one for all numbers, or one by column."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    if any("=" not in text for text in texts):
        raise InvalidParameter(
            "--within must be one number, or column=number each time, such as visits=50"
        )
    return {name: error for name, _, error in (text.rpartition("=") for text in texts)}


def decimals_of(texts: list[str] | None, columns: Sequence[str]) -> int | dict[str, int] | None:
    """The decimals of all numbers, or by column, after checks."""
    from discreet.release.answer import decimals_by

    decimals: Any = {
        name: _whole(digits) for name, _, digits in (text.rpartition("=") for text in texts or ())
    } or None
    if decimals is not None and "" in decimals:
        if len(decimals) > 1:
            raise InvalidParameter(
                "--decimals must be one number, or column=number each time, such as visits=1"
            )
        decimals = decimals[""]
    decimals_by(columns, decimals)
    return decimals  # type: ignore[no-any-return]


def _whole(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else text


def weights_of(texts: Iterable[str]) -> dict[str, str]:
    weights = {}
    for text in texts:
        name, equals, weights[name] = text.rpartition("=")
        if not equals:
            raise InvalidParameter(
                f"--weight must be column=number, such as visits=2, got {quote(text)}"
            )
    return weights


def figure_names() -> list[str]:
    from discreet.show import figures

    titles = {
        name: (maker.__doc__ or "").splitlines()[0]
        for name, maker in figures.NAMES.items()
        if name != "release"
    }
    return [f"{name:<11} {title}" for name, title in titles.items()]


def draw(
    name: str,
    output: str | None,
    options: dict[str, Any],
    anchor: str | None = None,
    *,
    force: bool,
) -> Path:
    """Draw the figure of this name into a file; its path."""
    from discreet.cli.ledger import open_ledger
    from discreet.show import figures

    if name == "release":
        raise InvalidParameter("a release draws its own figure: discreet release … -o answer.svg")
    if name not in figures.NAMES:
        names = ", ".join(figure for figure in figures.NAMES if figure != "release")
        raise InvalidParameter(f"figure must be one of {names}, got {quote(name)}")
    ledger = options.pop("ledger")
    if name == "budget" and ledger is None:
        raise InvalidParameter("figure budget needs --ledger with a study.toml or its ledger")
    target = f"{name}.svg" if output is None else output
    options = {key: value for key, value in options.items() if value is not None}
    if name == "loss" and "scales" in options:
        [options["scale"], *others] = options.pop("scales")
        if others:
            raise InvalidParameter("figure loss takes one --scale, got several")
    largest = options.get("largest", "")
    # a number of people is an integer
    if largest.isascii() and largest.isdigit() and len(largest) < 19:
        options["largest"] = int(largest)
    if ledger is None:
        return figures.save(figures.make(name, **options), target, force=force)
    with open_ledger(ledger, anchor=anchor) as book:
        chart = figures.make(name, ledger=book, **options)
        return figures.save(chart, target, force=force, kept=kept_files([ledger, *book.files]))


def draw_all(folder: str | None, options: dict[str, Any], *, force: bool = False) -> list[str]:
    """Draw the figures of the course, with the options of the course; the paths of the files."""
    from discreet.show.figures.slides import save_all

    width = options.pop("width")
    if any(value is not None for value in options.values()):
        raise InvalidParameter(
            "--all has fixed options for each figure: it takes only -o, --width and --force"
        )
    return [str(file) for file in save_all(folder or "slides", width=width, force=force)]
