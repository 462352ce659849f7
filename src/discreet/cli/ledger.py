"""Commands on ledgers, for the custodian: show, verify, export, allot."""

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

    with open_ledger(ledger, anchor) as book:
        if as_json:
            terminal.say_json(terminal.ledger_as_json(book, book.studies()))
        else:
            terminal.show_ledger(book, book.studies())


@app.command("verify")
def verify(ledger: AnyLedger, anchor: Anchor = None, as_json: AsJson = False) -> None:
    """Walk along the whole chain, and say how many entries it has; a damaged ledger is refused with code 4."""
    from discreet.cli import terminal

    with open_ledger(ledger, anchor) as book:
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
    form = form or (Path(output).suffix[1:] if output is not None and Path(output).suffix else "jsonl")
    if form not in _FORMS:
        raise InvalidParameter(f"--format must be {', '.join(_FORMS)}, got {quote(form)}")
    with open_ledger(ledger, anchor) as book:
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

    with open_ledger(ledger, anchor) as book:
        studies = book.studies()
        name = studies[0] if study is None and len(studies) == 1 else study
        if name not in studies:
            raise InvalidParameter(f"--study must be one of {', '.join(studies)}, got {quote(study)}")
        book.allot(analyst, epsilon, study=name)
        terminal.say(f"{analyst} may spend up to ε {epsilon} of {name}")


def open_ledger(where: str, anchor: str | None = None) -> Ledger:
    """The ledger at this path or address, or beside this study.toml, opened and checked; none is made."""
    from discreet.ledger.ledger import Ledger

    name, of_study = Path(where).name, where.endswith(".toml")
    if of_study and not Path(where).is_file():
        raise InvalidParameter(f"there is no such study: {name}")
    location = str(Path(where).with_suffix(".ledger")) if of_study else where
    if "://" not in location and not Path(location).exists() and not Path(f"{location}.anchor").exists():
        if of_study:
            raise InvalidParameter(f"{name} has no ledger yet; the first plan makes it: discreet plan {where} …")
        raise InvalidParameter(f"there is no ledger {name} here: name it, or its study.toml")
    return Ledger.open(location, anchor=anchor)


def export(ledger: Ledger, output: str | None, form: str, *, force: bool = False) -> None:
    from discreet.files.writer import kept_files, new_file

    lines = _lines(ledger, form)
    if output is None:
        sys.stdout.writelines(map(printable, lines) if sys.stdout.isatty() else lines)
        return
    with new_file(output, force=force, private=True, kept=kept_files(ledger.files)) as draft:
        for line in lines:
            draft.write(line.encode())


def _lines(ledger: Ledger, form: str) -> Iterator[str]:
    from discreet.cli.terminal import plain_json
    from discreet.ledger.chain import COLUMNS
    from discreet.records import readable

    if form == "json":
        yield ledger.export() + "\n"
        return
    if form == "csv":
        yield ",".join(COLUMNS) + "\n"
    for entry in ledger.entries():
        row = {**asdict(entry), "answer": None if entry.answer is None else readable(entry.answer)}
        if form == "jsonl":
            yield plain_json(row) + "\n"
            continue
        line = io.StringIO()
        cells = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()}
        csv.DictWriter(line, COLUMNS, lineterminator="\n").writerow(cells)
        yield line.getvalue()
