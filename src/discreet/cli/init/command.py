"""The command; what it needs is imported when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import InvalidParameter, printable


def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, folder, glob, or database#table.")],
    unit: Annotated[str | None, typer.Option(help="Whom we protect: a column, or row.")] = None,
    max_rows: Annotated[
        str | None, typer.Option(metavar="N", help="Most rows of one person to use; the rest are ignored.")
    ] = None,
    max_groups: Annotated[
        str | None, typer.Option(metavar="N", help="Most groups in which one person is counted; the rest are ignored.")
    ] = None,
    neighbors: Annotated[
        str | None, typer.Option(help="change-one: the number of units is public; add-remove: it is not.")
    ] = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="C=LOWER:UPPER", help="As in age=0:120.")] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(metavar="C=KEYS", help='As in county=A,"B, C",D, county=counties.csv, month=1..12.'),
    ] = None,
    bins: Annotated[list[str] | None, typer.Option(metavar="C=EDGES", help="As in age=0,18,65,120.")] = None,
    missing: Annotated[list[str] | None, typer.Option(metavar="C=VALUE", help="A missing value counts as it.")] = None,
    other: Annotated[list[str] | None, typer.Option(metavar="C=LABEL", help="A group for what is no key.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The total for this data, for ever.")] = None,
    delta: Annotated[str | None, typer.Option(help="The chance that a discovery of keys may fail.")] = None,
    table: Annotated[str | None, typer.Option(help="What questions call the data.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV: utf-8, windows-1252 or latin-1.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The policy.")] = "study.toml",
    another_budget: Annotated[bool, typer.Option("--another-budget", help="Beside that of another study.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take defaults and proposals, or refuse.")] = False,
) -> None:
    """Write a first study.toml from names and types of columns; those of CSV and JSON are guessed from some rows.

    Keys with a comma stand in quotes: --keys 'ward=Surgery,"Ear, Nose & Throat"'.
    """
    from discreet.cli.check.sample import Sample
    from discreet.cli.init import draft as draft_of
    from discreet.cli.init import interview
    from discreet.cli.terminal import say
    from discreet.engines.sniffing import looked_at
    from discreet.files.writer import write

    policy = Path(output)
    if os.path.lexists(policy):
        raise InvalidParameter(f"{policy.name} must not be overwritten: it is a promise; move it away first")
    asks = sys.stdin.isatty() and not yes
    ask = interview.asker(lambda text, default: typer.prompt(printable(text), default=default), say)
    interview.refuse_second_budget(policy, data, agreed=another_budget, ask=ask if asks else None)
    schema, formats, unread = looked_at(data)
    say(draft_of.description(data, schema), *(f"{name} is not read: {reason}." for name, reason in unread.items()))
    rows = Sample.of(data)
    draft = draft_of.Draft(
        formats=formats,
        guesses={name: rows.kind(name) for name, column in schema.items() if column.kind == "text"},
        source=draft_of.relative(data, policy.parent),
        unit=None if unit is None else draft_of.unit_of(unit, schema),
        max_rows=max_rows,
        max_groups=max_groups,
        neighbors=neighbors,
        epsilon=epsilon,
        delta=delta,
        table=table,
        encoding=encoding,
    )
    said = {"bounds": bounds, "keys": keys, "bins": bins, "missing": missing, "other": other}
    for name, texts in said.items():
        draft.declare(name, texts or (), schema, policy.parent)
    undecoded = interview.take_encoding(draft, data, (ask if asks else lambda *_: True) if asks or yes else None)
    if asks:
        interview.interview(draft, schema, rows, ask, policy.parent)
    text = draft_of.policy_text(draft, schema, policy.parent)
    proposals = rows.proposals(draft_of.columns_of(text), policy.parent)
    if asks or yes:
        interview.take_proposals(draft, proposals, ask if asks else lambda *_: True)
        text, proposals = draft_of.policy_text(draft, schema, policy.parent), {}
    write(policy, text)
    say(
        *draft_of.key_counts(text, policy.parent),
        *undecoded,
        *interview.warnings(draft, rows),
        *(f"{name}: {interview.lines(options)} would read more of its cells." for name, options in proposals.items()),
        f"Wrote {policy.name}. Please read it: this is what you promise. Then run: discreet check {output}",
    )
