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
Sign = Annotated[str | None, typer.Option(metavar="KEY", help="Sign the files with a key of discreet keys new.")]
Weight = Annotated[
    list[str] | None, typer.Option(metavar="NAME=N", help="How much the error of a column weighs; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LedgerPlace = Annotated[
    str | None, typer.Option("--ledger", help="A ledger elsewhere: a file, or postgresql://…; else DISCREET_LEDGER.")
]
Anchor = Annotated[str | None, typer.Option(help="The ledger's anchor: a file on this machine; else DISCREET_ANCHOR.")]
Analyst = Annotated[str | None, typer.Option(help="Whose share it is charged to.")]
RequestId = Annotated[str | None, typer.Option(help="A name for this request: repeated, it is free.")]
AnyLedger = Annotated[str, typer.Argument(metavar="LEDGER", help="A study.toml, or its ledger.")]
_FILES = "A table: .csv .xlsx .json .parquet; to read: .html .md .txt; a figure: .png .svg; repeatable."
Outputs = Annotated[list[str] | None, typer.Option("--output", "-o", metavar="FILE", help=_FILES)]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there; never the study's own.")]
Title = Annotated[str | None, typer.Option(help="What stands above it.")]
Caption = Annotated[str | None, typer.Option(help="A sentence below the title.")]
_DIGITS = "Decimals of numbers that are not whole; without it two digits of the error."
Bom = Annotated[bool, typer.Option("--bom", help="Mark .csv as UTF-8, as some spreadsheets need it.")]
Decimals = Annotated[list[str] | None, typer.Option(metavar="[NAME=]N", help=f"{_DIGITS} Repeatable.")]
OneDecimals = Annotated[int | None, typer.Option("--decimals", metavar="N", help=_DIGITS)]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to.")]
