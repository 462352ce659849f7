"""Ledgers for their custodian: found beside a study, shown, checked, written out whole, and shared among analysts."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import TYPER, Anchor, AnyLedger, AsJson, Force, Output
from discreet.errors import InvalidParameter, printable
from discreet.parameters import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.ledger.ledger import Ledger

app = typer.Typer(help="Look at what was spent, check it, and give analysts their share.", **TYPER)

_FORMS = ("jsonl", "json", "csv")


@app.command("show")
def show(ledger: AnyLedger, anchor: Anchor = None, as_json: AsJson = False) -> None:
    """Show what every study has spent, and on what."""
    from discreet.cli import terminal

    with opened(ledger, anchor) as book:
        if as_json:
            terminal.say_json(terminal.ledger_as_json(book, book.studies()))
        else:
            terminal.show_ledger(book, book.studies())


@app.command("verify")
def verify(ledger: AnyLedger, anchor: Anchor = None, as_json: AsJson = False) -> None:
    """Walk along the whole chain, and say how many entries it has; a damaged ledger is refused with code 4."""
    from discreet.cli import terminal

    with opened(ledger, anchor) as book:
        entries, studies = book.verify(), book.studies()
        if as_json:
            terminal.say_json({"entries": entries, "studies": studies, "whole": True})
        else:
            terminal.say(f"{entries:,} entries of {', '.join(studies)}: whole, and as the anchor remembers them")


@app.command("export")
def export_command(
    ledger: AnyLedger,
    anchor: Anchor = None,
    output: Output = None,
    form: Annotated[str | None, typer.Option("--format", help="jsonl, json or csv.")] = None,
    force: Force = False,
) -> None:
    """Write every entry, with its answer, for the custodian: as JSON lines, JSON or CSV."""
    form = _form(form, output)
    with opened(ledger, anchor) as book:
        export(book, output, form, force=force)


@app.command("allot")
def allot(
    ledger: AnyLedger,
    analyst: Annotated[str, typer.Argument(help="Who may spend it.")],
    epsilon: Annotated[str, typer.Argument(help="Up to so much in all, of what the study has.")],
    study: Annotated[str | None, typer.Option(help="The study, if the ledger has several.")] = None,
    anchor: Anchor = None,
) -> None:
    """Let an analyst spend up to so much; a later call sets a new limit."""
    from discreet.cli import terminal

    with opened(ledger, anchor) as book:
        name = _one_study(book, study)
        book.allot(analyst, epsilon, study=name)
        terminal.say(f"{analyst} may spend up to ε {epsilon} of {name}")


def opened(where: str, anchor: str | None = None) -> Ledger:
    """The ledger in this place, or beside this study.toml, opened and checked; none is made."""
    from discreet.ledger.ledger import Ledger

    if not where.endswith(".toml"):
        if "://" not in where and not Path(where).exists() and not Path(f"{where}.anchor").exists():
            raise InvalidParameter(f"there is no ledger {Path(where).name} here: name it, or its study.toml")
        return Ledger.open(where, anchor=anchor)
    place = Path(where).with_suffix(".ledger")
    if not Path(where).is_file():
        raise InvalidParameter(f"there is no such study: {Path(where).name}")
    if not place.exists() and not Path(f"{place}.anchor").exists():
        raise InvalidParameter(
            f"{Path(where).name} has no ledger yet; the first plan makes it: discreet plan {where} …"
        )
    return Ledger.open(place, anchor=anchor)


def _one_study(ledger: Ledger, wanted: str | None) -> str:
    studies = ledger.studies()
    if wanted is None and len(studies) == 1:
        return studies[0]
    if wanted not in studies:
        raise InvalidParameter(f"--study must be one of {', '.join(studies)}, got {quote(wanted)}")
    return str(wanted)


def export(ledger: Ledger, output: str | None, form: str, *, force: bool = False) -> None:
    """Write everything to a file, or to standard output."""
    from discreet.files.writer import kept_files, new_file

    lines = _lines(ledger, form)
    if output is None:
        sys.stdout.writelines(map(printable, lines) if sys.stdout.isatty() else lines)
        return
    with new_file(output, force=force, private=True, kept=kept_files(ledger.files)) as draft:
        for line in lines:
            draft.write(line.encode())


def _form(form: str | None, output: str | None) -> str:
    """The format that was named, or that of the file."""
    form = form or (Path(output).suffix[1:] if output is not None and Path(output).suffix else "jsonl")
    if form not in _FORMS:
        raise InvalidParameter(f"--format must be {', '.join(_FORMS)}, got {quote(form)}")
    return form


def _lines(ledger: Ledger, form: str) -> Iterator[str]:
    from discreet.cli.terminal import plain_json
    from discreet.ledger.chain import COLUMNS, readable

    if form == "json":
        yield ledger.export() + "\n"
        return
    line = io.StringIO()
    table = csv.DictWriter(line, COLUMNS, lineterminator="\n")
    if form == "csv":
        yield ",".join(COLUMNS) + "\n"
    for entry in ledger.entries():
        row = {**asdict(entry), "answer": None if entry.answer is None else readable(entry.answer)}
        if form == "jsonl":
            yield plain_json(row) + "\n"
            continue
        table.writerow({name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()})
        yield line.getvalue()
        line.seek(0)
        line.truncate()
