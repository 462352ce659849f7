"""How a custodian keeps a ledger: it is made, joined by another machine, backed up, and restored."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import ledger as ledgers
from discreet.cli.options import Anchor, AnyLedger, LedgerPlace, StudyFile
from discreet.errors import InvalidParameter, LedgerDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from discreet.ledger.restore import Restoration

app = ledgers.app

_MOST_VOID = 20
"""Questions that become void, of which each is shown."""


@app.command("create")
def create(
    study: StudyFile,
    place: LedgerPlace = None,
    anchor: Anchor = None,
    another_budget: Annotated[bool, typer.Option("--another-budget", help="Beside that of another ledger.")] = False,
) -> None:
    """Give a study its total ε in a ledger on PostgreSQL, or in a file; the ledger is made if there is none."""
    from discreet.ask.policy import Policy
    from discreet.cli.terminal import say
    from discreet.formats import shown
    from discreet.release.study import create as create_study

    policy, location = Policy.load(study), ledgers.place_named(study, place, anchor)
    if not another_budget:
        location.refuse_second_budget()
    create_study(policy, location)
    kept = "" if location.anchor is None else f"; its anchor is {Path(location.anchor).name}: back it up elsewhere"
    say(f"{location.study} has ε {shown(policy.epsilon)} in all{kept}")


@app.command("join")
def join(
    study: StudyFile,
    other: Annotated[str, typer.Argument(metavar="ANCHOR", help="A copy of the anchor of a machine that uses it.")],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Let this machine use a ledger on PostgreSQL that another machine uses; all of it is checked, nothing is spent."""
    from discreet.cli.terminal import say
    from discreet.ledger.ledger import Ledger

    location = ledgers.place_named(study, place, anchor)
    if not location.is_server or location.anchor is None:
        raise InvalidParameter("--ledger must be a postgresql:// address: a ledger in a file has one machine")
    with Ledger.join(location.where, anchor=location.anchor, other=other) as ledger:
        say(f"joined the ledger of {', '.join(ledger.studies())}: delete the copy {Path(other).name}")


@app.command("backup")
def backup(
    ledger: AnyLedger,
    target: Annotated[str, typer.Argument(metavar="DEST", help="A new file, or a folder, where it is named by time.")],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Write the whole ledger to a file while others spend; it is checked, and holds what the anchor knows."""
    from discreet.cli.terminal import say

    file = Path(target)
    if file.is_dir():
        file /= f"{Path(ledger).stem if '://' not in ledger else 'ledger'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"
    with ledgers.open_ledger(ledger, place, anchor) as book:
        entries = book.backup(file)
    say(f"{entries:,} entries in {file}: whole; keep the anchor elsewhere, which knows what comes after")


@app.command("restore")
def restore(
    ledger: AnyLedger,
    source: Annotated[
        str | None, typer.Option("--from", metavar="BACKUP", help="A backup; else the ledger as it is now.")
    ] = None,
    charge: Annotated[
        str | None,
        typer.Option(metavar="EPSILON", help="If the anchor is lost: what to charge each study, or all."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Go on with an older copy, or with a backup: what it forgot is charged, and what is unanswered is void.

    It says what it will charge and make void, and asks.
    """
    from discreet.cli.terminal import say
    from discreet.ledger.ledger import Ledger

    location = ledgers.place_named(ledger, place, anchor)
    where = location.where
    if source is None and _opens(where, location.anchor):
        say("nothing is to be restored: the ledger has all that its anchor knows")
        return
    planned = Ledger.restoration(where, anchor=location.anchor, backup=source, charge=charge)
    say(*_told(planned))
    if planned.is_anchor_lost and charge is None:
        raise InvalidParameter(
            "the newest anchor is lost, and nobody knows what was spent last: put it back, or give --charge, the ε "
            "that each study may have spent since, or --charge all, which closes them"
        )
    if not yes and not sys.stdin.isatty():
        raise InvalidParameter("restore asks before it charges: use a terminal, or say --yes; nothing was changed")
    if not yes and not typer.confirm("Restore it so?"):
        say("nothing was changed")
        return
    options = {"anchor": location.anchor, "backup": source, "charge": charge}
    with Ledger.restore(where, accept=planned.mark, **options) as book:
        left = ", ".join(f"ε {_shown(book.remaining(study))} of {study}" for study in book.studies())
    say(f"restored: {left} is left")


def _opens(where: str, anchor: str | None) -> bool:
    from discreet.ledger.ledger import Ledger

    try:
        Ledger.open(where, anchor=anchor).close()
    except LedgerDamaged:
        return False
    return True


def _told(planned: Restoration) -> Iterator[str]:
    """What a restore will do, in sentences."""
    from discreet.ledger.chain import in_epsilon
    from discreet.ledger.questions import question_text

    if planned.made is not None:
        yield f"The backup was made at {planned.made}."
    for loss in planned.losses:
        if not loss.is_known:
            yield f"{loss.study}: unknown to the ledger; it comes back without its promise, and takes no policy."
        charge, spent, total = (
            _shown(in_epsilon(units)) for units in (loss.charge, loss.spent + loss.charge, loss.total)
        )
        yield (
            f"{loss.study}: up to {loss.forgotten:,} entries are gone; ε {charge} is charged, so that {spent} of "
            f"{total} is spent; {len(loss.void):,} spends without an answer become void."
        )
        for request, analyst, query in loss.void[:_MOST_VOID]:
            yield f"  void: {request}{f' of {analyst}' if analyst else ''}: {question_text(query)}"
        if len(loss.void) > _MOST_VOID:
            yield f"  and {len(loss.void) - _MOST_VOID:,} more"


def _shown(epsilon: Fraction) -> str:
    from discreet.formats import shown

    return shown(epsilon)
