"""Options and arguments that several commands have, declared once, as types."""

from __future__ import annotations

from typing import Annotated, Any

import typer

TYPER: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}

StudyFile = Annotated[str, typer.Argument(metavar="STUDY", help="The policy: study.toml.")]
Question = Annotated[str, typer.Argument(metavar="SQL", help='As in "SELECT county, count(*) FROM t GROUP BY county".')]
Epsilon = Annotated[str | None, typer.Option(help="What it may cost, such as 0.1 or 1/3.")]
_NEAR = "Largest error that you accept, of all numbers or of a column; finds the smallest ε for it. Repeatable."
Within = Annotated[list[str] | None, typer.Option(metavar="[NAME=]N", help=_NEAR)]
Confidence = Annotated[str, typer.Option(help="How often an interval holds.")]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="All intervals hold together.")]
Size = Annotated[int | None, typer.Option(help="Rows of a group that errors are shown for.")]
Weight = Annotated[
    list[str] | None, typer.Option(metavar="NAME=N", help="How much the error of a column weighs; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LedgerPlace = Annotated[str | None, typer.Option("--ledger", help="A ledger elsewhere: a file, or postgresql://….")]
Anchor = Annotated[str | None, typer.Option(help="The anchor of a ledger on PostgreSQL: a file on this machine.")]
Analyst = Annotated[str | None, typer.Option(help="Whose share it is charged to.")]
RequestId = Annotated[str | None, typer.Option(help="A name for this request: repeated, it is free.")]
AnyLedger = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger, or the study.toml that it lies beside.")]
_FILES = "A table: .csv .json .parquet; a figure: .png .svg; a report: .html; repeatable."
Outputs = Annotated[list[str] | None, typer.Option("--output", "-o", metavar="FILE", help=_FILES)]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there; never the study's own.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to.")]
