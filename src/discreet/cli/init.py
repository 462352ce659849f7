"""The command that writes a first study.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import printable


def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, folder, glob, or database#table.")],
    unit: Annotated[str | None, typer.Option(help="Whom we protect: a column, or row.")] = None,
    max_rows: Annotated[str | None, typer.Option(metavar="N", help="Rows of one unit that may count.")] = None,
    max_groups: Annotated[str | None, typer.Option(metavar="N", help="Groups in which one unit may count.")] = None,
    neighbors: Annotated[
        str | None, typer.Option(help="change-one: the number of units is public; add-remove: it is not.")
    ] = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="C=LOWER:UPPER", help="As in age=0:120.")] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(metavar="C=KEYS", help='As in county=A,"B, C",D, county=counties.csv, month=1..12.'),
    ] = None,
    bins: Annotated[list[str] | None, typer.Option(metavar="C=EDGES", help="As in age=0,18,65,120.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The total for this data, for ever.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The policy.")] = "study.toml",
    another_budget: Annotated[bool, typer.Option("--another-budget", help="Beside that of another study.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take defaults, or refuse.")] = False,
) -> None:
    """Write a first study.toml from names and types of columns; those of CSV and JSON are guessed from some rows."""
    from discreet.cli import policy_draft
    from discreet.cli.terminal import say
    from discreet.engines.sniffing import looked_at
    from discreet.files.writer import write

    place = Path(output)
    policy_draft.refuse_existing(place)
    asks = sys.stdin.isatty() and not yes
    read = policy_draft.asked_until_good(lambda text, default: typer.prompt(printable(text), default=default), say)
    policy_draft.refuse_second_budget(place, data, agreed=another_budget, ask=read if asks else None)
    schema, formats, unread = looked_at(data)
    say(policy_draft.described(data, schema), *(f"{name} is not read: {reason}." for name, reason in unread.items()))
    draft = policy_draft.Draft(
        formats=formats,
        source=policy_draft.relative(data, place.parent),
        unit=None if unit is None else policy_draft.unit_of(unit, schema),
        max_rows=max_rows,
        max_groups=max_groups,
        neighbors=neighbors,
        epsilon=epsilon,
    )
    for option, texts in (("bounds", bounds), ("keys", keys), ("bins", bins)):
        draft.declare(option, texts or (), schema, place.parent)
    if asks:
        policy_draft.interview(draft, schema, read, place.parent)
    text = policy_draft.written(draft, schema, place.parent)
    write(place, text)
    say(*policy_draft.key_counts(text, place.parent), f"wrote {place.name} — read it, it is the promise you make")
