"""The command `discreet init`; heavy modules are imported when it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import InvalidParameter, printable
from discreet.outside import read_toml


def init(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file, folder, glob or database#table.")
    ],
    unit: Annotated[
        str | None, typer.Option(help="Whom to protect: a column that names a person, or row.")
    ] = None,
    max_rows: Annotated[
        str | None,
        typer.Option(metavar="N", help="Most rows of one person to use; the rest are ignored."),
    ] = None,
    max_groups: Annotated[
        str | None,
        typer.Option(metavar="N", help="Most groups to count one person in; the rest are ignored."),
    ] = None,
    neighbors: Annotated[
        str | None,
        typer.Option(help="change-one: the number of units is public; add-remove: it is private."),
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="C=LOWER:UPPER", help="Such as age=0:120.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C=KEYS", help='Such as county=A,"B, C",D, county=counties.csv or month=1..12.'
        ),
    ] = None,
    bins: Annotated[
        list[str] | None, typer.Option(metavar="C=EDGES", help="Such as age=0,18,65,120.")
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(metavar="C=VALUE", help="Replaces missing values.")
    ] = None,
    other: Annotated[
        list[str] | None, typer.Option(metavar="C=LABEL", help="Group for all other values.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Total ε for this data, forever.")] = None,
    delta: Annotated[
        str | None, typer.Option(help="Probability that a discovery of keys may fail.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Name of the table in questions.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="For CSV: utf-8, windows-1252 or latin-1.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
    ] = "study.toml",
    another_budget: Annotated[
        bool,
        typer.Option(
            "--another-budget", help="Allow a second budget for data that another study uses."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: accept defaults and proposals.")
    ] = False,
) -> None:
    """Write a first study.toml for a data set. It reads names and types of columns; for CSV and
    JSON, also some rows.

    Put keys that contain a comma in quotes: --keys 'ward=Surgery,"Ear, Nose & Throat"'.
    """
    from discreet.cli.check.sample import Sample
    from discreet.cli.init import draft as draft_of
    from discreet.cli.init import interview
    from discreet.cli.terminal import say
    from discreet.engines.sniffing import guess_schema
    from discreet.files.writer import write

    policy = Path(output)
    if os.path.lexists(policy):
        raise InvalidParameter(
            f"{policy.name} exists and is a promise: move it away first, or name another with -o"
        )
    asks = sys.stdin.isatty() and not yes
    ask = interview.asker(lambda text, default: typer.prompt(printable(text), default=default), say)
    interview.refuse_second_budget(policy, data, agreed=another_budget, ask=ask if asks else None)
    schema, formats, unread, chosen = guess_schema(data)
    say(
        draft_of.description(data, schema),
        *(f"{name} is skipped: {reason}." for name, reason in unread.items()),
    )
    rows = Sample.of(data)
    draft = draft_of.Draft(
        formats=formats,
        guesses={name: rows.kind(name) for name, column in schema.items() if column.kind == "text"},
        source=draft_of.relative(data, policy.parent),
        chosen=chosen,
        grows=draft_of.may_grow(data),
        unit=None if unit is None else draft_of.unit_of(unit, schema),
        max_rows=max_rows,
        max_groups=max_groups,
        neighbors=neighbors,
        epsilon=epsilon,
        delta=delta,
        table=table,
        encoding=encoding,
    )
    declarations = {
        "bounds": bounds,
        "keys": keys,
        "bins": bins,
        "missing": missing,
        "other": other,
    }
    for name, texts in declarations.items():
        draft.declare(name, texts or (), schema, policy.parent)
    undecoded = interview.take_encoding(
        draft, data, (ask if asks else lambda *_: True) if asks or yes else None
    )
    if asks:
        interview.interview(draft, schema, rows, ask, policy.parent)
    text = draft_of.policy_text(draft, schema, policy.parent)
    proposals = rows.proposals(read_toml(text)["columns"], policy.parent)
    if asks or yes:
        interview.take_proposals(draft, proposals, ask if asks else lambda *_: True)
        text, proposals = draft_of.policy_text(draft, schema, policy.parent), {}
    write(policy, text)
    say(
        *draft_of.key_counts(text, policy.parent),
        *undecoded,
        *interview.warnings(draft, rows),
        *(
            f"{name}: {interview.lines(options)} would read more cells."
            for name, options in proposals.items()
        ),
        f"Wrote {policy.name}. Please read it: this is what you promise. Then run: discreet check"
        f" {output}",
    )
