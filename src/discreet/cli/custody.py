"""Commands with which a custodian creates a ledger, joins it from another machine, backs it up and restores it."""

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
_MOST_VOID = 20  # most void questions that are listed


@app.command("create")
def create(
    study: StudyFile,
    place: LedgerPlace = None,
    anchor: Anchor = None,
    another_budget: Annotated[bool, typer.Option("--another-budget", help="Allow a second budget.")] = False,
) -> None:
    """Register a study with its total ε in a ledger. A missing ledger is created, on PostgreSQL or in a file."""
    from discreet.ask.policy import Policy
    from discreet.cli.terminal import say
    from discreet.formats import shown
    from discreet.release.study import create as create_study

    policy, location = Policy.load(study), ledgers.place_named(study, place, anchor)
    if not another_budget:
        location.refuse_second_budget()
    create_study(policy, location)
    backup = "" if location.anchor is None else f" Its anchor is {Path(location.anchor).name}: back it up elsewhere."
    say(f"{location.study} has a total of ε {shown(policy.epsilon)}.{backup}")


@app.command("join")
def join(
    study: StudyFile,
    other: Annotated[str, typer.Argument(metavar="ANCHOR", help="Copy of the anchor of a machine that uses it.")],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Let this machine use the PostgreSQL ledger of another. The whole ledger is checked; nothing is spent."""
    from discreet.cli.terminal import say
    from discreet.ledger.ledger import Ledger

    location = ledgers.place_named(study, place, anchor)
    if not location.is_server or location.anchor is None:
        raise InvalidParameter("--ledger must be a postgresql:// address: a ledger in a file belongs to one machine")
    with Ledger.join(location.where, anchor=location.anchor, other=other) as ledger:
        say(f"Joined the ledger of {', '.join(ledger.studies())}. Now delete the copy {Path(other).name}.")


@app.command("backup")
def backup(
    ledger: AnyLedger,
    target: Annotated[str, typer.Argument(metavar="DEST", help="A new file, or a folder for a file named by time.")],
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Back up a ledger to a file, also while others spend. The backup is checked against the anchor."""
    from discreet.cli.terminal import say

    file = Path(target)
    if file.is_dir():
        file /= f"{Path(ledger).stem if '://' not in ledger else 'ledger'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"
    with ledgers.open_ledger(ledger, place, anchor) as book:
        entries = book.backup(file)
    say(f"Wrote {entries:,} entries to {file}. Keep the anchor elsewhere: it records what is spent after this backup.")


@app.command("restore")
def restore(
    ledger: AnyLedger,
    source: Annotated[
        str | None, typer.Option("--from", metavar="BACKUP", help="A backup; default: the ledger as it is now.")
    ] = None,
    charge: Annotated[
        str | None,
        typer.Option(metavar="EPSILON", help="If the anchor is lost: ε to charge each study, or all."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    place: LedgerPlace = None,
    anchor: Anchor = None,
) -> None:
    """Restore a ledger from a backup or an older copy. Lost spends are charged; unanswered spends become void.

    It shows what it will charge and make void, and asks for confirmation.
    """
    from discreet.cli.terminal import say
    from discreet.ledger.ledger import Ledger

    location = ledgers.place_named(ledger, place, anchor)
    where = location.where
    if source is None and _opens(where, location.anchor):
        say("Nothing to restore: the ledger has every entry that its anchor records.")
        return
    planned = Ledger.restoration(where, anchor=location.anchor, backup=source, charge=charge)
    say(*_sentences(planned))
    if planned.is_anchor_lost and charge is None:
        raise InvalidParameter(
            "the newest anchor is lost, so the last spends are unknown: put the anchor back, or give --charge, the ε "
            "that each study may have spent since, or --charge all, which closes the studies"
        )
    if not yes and not sys.stdin.isatty():
        raise InvalidParameter("restore needs confirmation: run it on a terminal or add --yes; nothing was changed")
    if not yes and not typer.confirm("Restore the ledger?"):
        say("Nothing was changed.")
        return
    options = {"anchor": location.anchor, "backup": source, "charge": charge}
    with Ledger.restore(where, accept=planned.mark, **options) as book:
        left = ", ".join(f"{study} has ε {_shown(book.remaining(study))} left" for study in book.studies())
    say(f"Restored: {left}.")


def _opens(where: str, anchor: str | None) -> bool:
    from discreet.ledger.ledger import Ledger

    try:
        Ledger.open(where, anchor=anchor).close()
    except LedgerDamaged:
        return False
    return True


def _sentences(planned: Restoration) -> Iterator[str]:
    """What a restore will do."""
    from discreet.ledger.chain import in_epsilon
    from discreet.ledger.questions import question_text

    if planned.made is not None:
        yield f"The backup was made at {planned.made}."
    for loss in planned.losses:
        if not loss.is_known:
            yield f"{loss.study}: not in the ledger; the study returns without its promise, and accepts no policy."
        charge, spent, total = (
            _shown(in_epsilon(units)) for units in (loss.charge, loss.spent + loss.charge, loss.total)
        )
        yield (
            f"{loss.study}: up to {loss.forgotten:,} entries are lost; ε {charge} is charged, so that {spent} of "
            f"{total} is spent; {len(loss.void):,} unanswered spends become void."
        )
        for request, analyst, query in loss.void[:_MOST_VOID]:
            yield f"  void: {request}{f' of {analyst}' if analyst else ''}: {question_text(query)}"
        if len(loss.void) > _MOST_VOID:
            yield f"  and {len(loss.void) - _MOST_VOID:,} more"


def _shown(epsilon: Fraction) -> str:
    from discreet.formats import shown

    return shown(epsilon)
