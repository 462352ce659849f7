"""Commands on ledgers: show, check, export, allot shares, create, join, back up and restore."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import (
    TYPER,
    Anchor,
    AnyLedger,
    AsJson,
    Force,
    LedgerPlace,
    Output,
    StudyFile,
)
from discreet.errors import InvalidParameter, LedgerDamaged, printable
from discreet.parameters import quote

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.place import Place
    from discreet.ledger.restore import Restoration

app = typer.Typer(help="Show, check, back up and restore ledgers, and allot ε.", **TYPER)

_FORMS = ("jsonl", "json", "csv")
_MOST_VOID = 20  # most void questions that are listed


@app.command("show")
def show(
    ledger: AnyLedger,
    analyst: Annotated[
        str | None, typer.Option(help="Only the share and the questions of this analyst.")
    ] = None,
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
def verify(
    ledger: AnyLedger, place: LedgerPlace = None, anchor: Anchor = None, as_json: AsJson = False
) -> None:
    """Check every entry of a ledger. Exit code 4 if it is damaged."""
    from discreet.cli import terminal

    with open_ledger(ledger, place, anchor) as book:
        entries, studies = book.verify(), book.studies()
        if as_json:
            terminal.say_json({"entries": entries, "studies": studies, "whole": True})
        else:
            terminal.say(
                f"{entries:,} entries of {', '.join(studies)}: complete, and as the anchor records"
                " them"
            )


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
    form = form or (
        Path(output).suffix[1:] if output is not None and Path(output).suffix else "jsonl"
    )
    if form not in _FORMS:
        raise InvalidParameter(f"--format must be {', '.join(_FORMS)}, got {quote(form)}")
    with open_ledger(ledger, place, anchor) as book:
        export(book, output, form, force=force)


@app.command("allot")
def allot(
    ledger: AnyLedger,
    analyst: Annotated[str, typer.Argument(help="Name of the analyst.")],
    epsilon: Annotated[str, typer.Argument(help="Most ε that the analyst may spend in total.")],
    study: Annotated[
        str | None, typer.Option(help="Name of the study, if the ledger has several.")
    ] = None,
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Set how much ε an analyst may spend in total. A later call replaces the limit."""
    from discreet.cli import terminal

    if ledger.endswith(".toml"):
        _create_missing(ledger, place_named(ledger, place, anchor))
    with open_ledger(ledger, place, anchor) as book:
        studies = book.studies()
        name = study or (
            studies[0] if len(studies) == 1 else place_named(ledger, place, anchor).study
        )
        if name not in studies:
            raise InvalidParameter(
                f"--study must be one of {', '.join(studies)}, got {quote(study)}"
            )
        book.allot(analyst, epsilon, study=name)
        terminal.say(f"{analyst} may spend up to ε {epsilon} of {name}.")


@app.command("create")
def create(
    study: StudyFile,
    place: LedgerPlace = None,
    anchor: Anchor = None,
    another_budget: Annotated[
        bool, typer.Option("--another-budget", help="Allow a second budget.")
    ] = False,
) -> None:
    """Register a study with its total ε and its promise in a ledger. A missing ledger is created.

    As long as nothing was spent or allotted, the command can be repeated to correct the total and
    the promise.
    """
    from discreet.ask.policy import Policy
    from discreet.cli.terminal import say
    from discreet.formats import left_shown
    from discreet.release.study import create as create_study

    policy, location = Policy.load(study), place_named(study, place, anchor)
    if not another_budget:
        location.refuse_second_budget()
    corrected = create_study(policy, location)
    has, new_anchor = ("now has", None) if corrected else ("has", location.anchor)
    backup = (
        ""
        if new_anchor is None
        else f" Its anchor is {Path(new_anchor).name}: back it up elsewhere."
    )
    say(f"{location.study} {has} a total of ε {left_shown(policy.epsilon)}.{backup}")


@app.command("join")
def join(
    study: StudyFile,
    other: Annotated[
        str, typer.Argument(metavar="ANCHOR", help="Copy of the anchor of a machine that uses it.")
    ],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Let this machine use the PostgreSQL ledger of another.

    The whole ledger is checked; nothing is spent.
    """
    from discreet.cli.terminal import say
    from discreet.ledger.ledger import Ledger

    location = place_named(study, place, anchor)
    if not location.is_server or location.anchor is None:
        raise InvalidParameter(
            "--ledger must be a postgresql:// address: a ledger in a file belongs to one machine"
        )
    with Ledger.join(location.where, anchor=location.anchor, other=other) as ledger:
        say(
            f"Joined the ledger of {', '.join(ledger.studies())}. Now delete the copy"
            f" {Path(other).name}."
        )


@app.command("backup")
def backup(
    ledger: AnyLedger,
    target: Annotated[
        str,
        typer.Argument(metavar="DEST", help="A new file, or a folder for a file named by time."),
    ],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Back up a ledger to a file, also while others spend.

    The backup is checked against the anchor.
    """
    from discreet.cli.terminal import say

    file = Path(target)
    if target.endswith("/") and not file.exists():
        raise InvalidParameter(
            f"the folder of the backup must exist, got {target!r}: create it first"
        )
    if file.is_dir():
        stem = Path(ledger).stem if "://" not in ledger else "ledger"
        file /= f"{stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"
    with open_ledger(ledger, place, anchor) as book:
        entries = book.backup(file)
    say(
        f"Wrote {entries:,} entries to {file}. Keep the anchor elsewhere: it records what is spent"
        " after this backup."
    )


@app.command("restore")
def restore(
    ledger: AnyLedger,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="BACKUP", help="A backup; default: the ledger as it is now."
        ),
    ] = None,
    charge: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON", help="If the anchor is lost: ε to charge each study, or all."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Restore a ledger from a backup or an older copy. Lost spends are charged; unanswered spends
    become void.

    It shows what it will charge and make void, and asks for confirmation.
    """
    from discreet.cli.terminal import say
    from discreet.formats import left_shown
    from discreet.ledger.ledger import Ledger

    location = place_named(ledger, place, anchor)
    where = location.where
    if source is None and _opens(where, location.anchor):
        say("Nothing to restore: the ledger has every entry that its anchor records.")
        return
    planned = Ledger.restoration(where, anchor=location.anchor, backup=source, charge=charge)
    say(*_sentences(planned))
    if planned.is_anchor_lost and charge is None:
        raise InvalidParameter(
            "the newest anchor is lost, so the last spends are unknown: put the anchor back, or"
            " give --charge, the ε that each study may have spent since, or --charge all, which"
            " closes the studies"
        )
    if not yes and not sys.stdin.isatty():
        raise InvalidParameter(
            "restore needs confirmation: run it on a terminal or add --yes; nothing was changed"
        )
    if not yes and not typer.confirm("Restore the ledger?"):
        say("Nothing was changed.")
        return
    options = {"anchor": location.anchor, "backup": source, "charge": charge}
    with Ledger.restore(where, accept=planned.mark, **options) as book:
        left = ", ".join(
            f"{study} has ε {left_shown(book.remaining(study))} left" for study in book.studies()
        )
    say(f"Restored: {left}.")


def open_ledger(where: str, place: str | None = None, anchor: str | None = None) -> Ledger:
    """The ledger of a study.toml, or at a path or address, opened and checked; it must exist."""
    from discreet.ledger.ledger import Ledger

    location = place_named(where, place, anchor)
    if location.is_new:
        name = Path(location.where).name
        if where.endswith(".toml"):
            raise InvalidParameter(
                f"{Path(where).name} has no ledger yet: nothing was spent; the first release"
                f" creates it, or discreet ledger create {where}"
            )
        raise InvalidParameter(
            f"there is no ledger {name}; name an existing ledger or its study.toml"
        )
    location.refuse_missing_anchor()
    return Ledger.open(location.where, anchor=location.anchor)


def _create_missing(study: str, location: Place) -> None:
    """Create the file ledger of a study if there was never one."""
    from discreet.ask.policy import Policy
    from discreet.release.study import create as create_study

    if location.is_new:
        location.refuse_second_budget()
        create_study(Policy.load(study), location)


def place_named(where: str, place: str | None, anchor: str | None) -> Place:
    """The location of the ledger of a study.toml, or of a ledger that is named itself."""
    from discreet.ledger.place import Place, place_of, places

    if where.endswith(".toml"):
        if not Path(where).is_file():
            raise InvalidParameter(f"there is no study file {Path(where).name}")
        location = place_of(Path(where), ledger=place, anchor=anchor)
    elif place is not None:
        raise InvalidParameter(
            "leave --ledger out: it names the ledger of a study.toml, and this is a ledger itself"
        )
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
        cells = {
            name: json.dumps(value) if isinstance(value, dict) else value
            for name, value in row.items()
        }
        csv.DictWriter(line, COLUMNS, lineterminator="\n").writerow(cells)
        yield line.getvalue()


def _opens(where: str, anchor: str | None) -> bool:
    from discreet.ledger.ledger import Ledger

    try:
        Ledger.open(where, anchor=anchor).close()
    except LedgerDamaged:
        return False
    return True


def _sentences(planned: Restoration) -> Iterator[str]:
    from discreet.ledger.questions import question_text
    from discreet.ledger.refusals import shown

    if planned.made is not None:
        yield f"The backup was made at {planned.made}."
    for loss in planned.losses:
        if not loss.is_known:
            yield (
                f"{loss.study}: not in the ledger; the study returns without its promise, and"
                " accepts no policy."
            )
        amounts = (loss.charge, loss.spent + loss.charge, loss.total)
        charge, spent, total = map(shown, amounts)
        entries = "entry is" if loss.forgotten == 1 else "entries are"
        spends = "spend becomes" if len(loss.void) == 1 else "spends become"
        yield (
            f"{loss.study}: up to {loss.forgotten:,} {entries} lost; ε {charge} is charged, so that"
            f" {spent} of {total} is spent; {len(loss.void):,} unanswered {spends} void."
        )
        for request, analyst, query in loss.void[:_MOST_VOID]:
            yield f"  void: {request}{f' of {analyst}' if analyst else ''}: {question_text(query)}"
        if len(loss.void) > _MOST_VOID:
            yield f"  and {len(loss.void) - _MOST_VOID:,} more"
