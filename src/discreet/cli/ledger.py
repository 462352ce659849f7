"""Commands on ledgers for the custodian: show, verify, export, and allot shares to analysts."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import TYPER, Anchor, AnyLedger, AsJson, Force, LedgerPlace, Output
from discreet.errors import InvalidParameter, printable
from discreet.parameters import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.ledger.ledger import Ledger
    from discreet.ledger.place import Place

app = typer.Typer(help="Show, check, back up and restore ledgers, and allot ε.", **TYPER)

_FORMS = ("jsonl", "json", "csv")


@app.command("show")
def show(
    ledger: AnyLedger,
    analyst: Annotated[str | None, typer.Option(help="Only the share and the questions of this analyst.")] = None,
    place: LedgerPlace = None,
    anchor: Anchor = None,
    as_json: AsJson = False,
) -> None:
    """Show what each study has spent, and on which questions."""
    from discreet.cli import terminal

    with open_ledger(ledger, place, anchor) as book:
        studies = book.studies() if analyst is None else _studies_of(book, analyst)
        if as_json:
            terminal.say_json(terminal.ledger_as_json(book, studies, analyst))
        else:
            terminal.show_ledger(book, studies, analyst)


@app.command("verify")
def verify(ledger: AnyLedger, place: LedgerPlace = None, anchor: Anchor = None, as_json: AsJson = False) -> None:
    """Check every entry of a ledger. Exit code 4 if it is damaged."""
    from discreet.cli import terminal

    with open_ledger(ledger, place, anchor) as book:
        entries, studies = book.verify(), book.studies()
        if as_json:
            terminal.say_json({"entries": entries, "studies": studies, "whole": True})
        else:
            terminal.say(f"{entries:,} entries of {', '.join(studies)}: complete, and as the anchor records them")


@app.command("export")
def export_command(
    ledger: AnyLedger,
    place: LedgerPlace = None,
    anchor: Anchor = None,
    output: Output = None,
    form: Annotated[str | None, typer.Option("--format", help="jsonl, json or csv.")] = None,
    force: Force = False,
) -> None:
    """Write every entry with its answer, for the custodian."""
    form = form or (Path(output).suffix[1:] if output is not None and Path(output).suffix else "jsonl")
    if form not in _FORMS:
        raise InvalidParameter(f"--format must be {', '.join(_FORMS)}, got {quote(form)}")
    with open_ledger(ledger, place, anchor) as book:
        export(book, output, form, force=force)


@app.command("allot")
def allot(
    ledger: AnyLedger,
    analyst: Annotated[str, typer.Argument(help="Name of the analyst.")],
    epsilon: Annotated[str, typer.Argument(help="Most ε that the analyst may spend in total.")],
    study: Annotated[str | None, typer.Option(help="Name of the study, if the ledger has several.")] = None,
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Set how much ε an analyst may spend in total. A later call replaces the limit."""
    from discreet.cli import terminal

    with open_ledger(ledger, place, anchor) as book:
        studies = book.studies()
        own = place_named(ledger, place, anchor).study
        name = study or (studies[0] if len(studies) == 1 else own)
        if name not in studies:
            raise InvalidParameter(f"--study must be one of {', '.join(studies)}, got {quote(study)}")
        book.allot(analyst, epsilon, study=name)
        terminal.say(f"{analyst} may spend up to ε {epsilon} of {name}.")


def open_ledger(where: str, place: str | None = None, anchor: str | None = None) -> Ledger:
    """The ledger of a study.toml, or at a path or address, opened and checked; it must exist."""
    from discreet.ledger.ledger import Ledger

    location = place_named(where, place, anchor)
    if location.is_new:
        name = Path(location.where).name
        if where.endswith(".toml"):
            raise InvalidParameter(
                f"{Path(where).name} has no ledger yet; the first plan creates it: discreet plan {where} …"
            )
        raise InvalidParameter(f"there is no ledger {name}; name an existing ledger or its study.toml")
    location.refuse_missing_anchor()
    return Ledger.open(location.where, anchor=location.anchor)


def place_named(where: str, place: str | None, anchor: str | None) -> Place:
    """The location of the ledger of a study.toml, or of a ledger that is named itself."""
    from discreet.ledger.place import Place, place_of, places

    if where.endswith(".toml"):
        if not Path(where).is_file():
            raise InvalidParameter(f"there is no study file {Path(where).name}")
        location = place_of(Path(where), ledger=place, anchor=anchor)
    elif place is not None:
        raise InvalidParameter("leave --ledger out: it names the ledger of a study.toml, and this is a ledger itself")
    else:
        location = Place(where=where, anchor=anchor)
    places(location.where, location.anchor)  # refuses an impossible location before it is quoted
    return location


def _studies_of(ledger: Ledger, analyst: str) -> list[str]:
    studies = [name for name in ledger.studies() if ledger.total(name, analyst=analyst)]
    if not studies:
        raise InvalidParameter(f"--analyst must have a share in this ledger, got {quote(analyst)}")
    return studies


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
