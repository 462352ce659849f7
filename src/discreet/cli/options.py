"""Options and arguments that several commands have, declared once, as types."""

from __future__ import annotations

from typing import Annotated, Any

import typer

TYPER: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}

StudyFile = Annotated[str, typer.Argument(metavar="STUDY", help="The policy, such as study.toml.")]
Question = Annotated[
    str,
    typer.Argument(metavar="SQL", help='As in "SELECT county, count(*) FROM t GROUP BY county".'),
]
Epsilon = Annotated[str | None, typer.Option(help="ε to spend, such as 0.1 or 1/3.")]
_NEAR = (
    "Largest error you accept, for all numbers or for a column; finds the smallest ε for it."
    " Repeatable."
)
Within = Annotated[list[str] | None, typer.Option(metavar="[NAME=]N", help=_NEAR)]
Confidence = Annotated[str, typer.Option(help="Confidence level of the intervals.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Make all intervals hold at the same time.")
]
Size = Annotated[int | None, typer.Option(help="Group size, in rows, for which errors are shown.")]
Sign = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="Sign the files with a key from: discreet keys new."),
]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=N", help="Weight of a column's error when ε is divided; repeatable."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger", help="Another ledger: a file or postgresql://…; default: DISCREET_LEDGER."
    ),
]
Anchor = Annotated[
    str | None,
    typer.Option(help="Anchor of the ledger, a file on this machine; default: DISCREET_ANCHOR."),
]
Analyst = Annotated[str | None, typer.Option(help="Analyst whose share of ε is charged.")]
RequestId = Annotated[
    str | None, typer.Option(help="Name of this request; the same name again is free.")
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS", help="Most seconds at the source; default: time_limit in the policy."
    ),
]
AnyLedger = Annotated[str, typer.Argument(metavar="LEDGER", help="A study.toml or its ledger.")]
_FILES = (
    "Table: .csv .xlsx .json .parquet; document: .html .md .txt; figure: .png .svg .pdf."
    " Repeatable."
)
Outputs = Annotated[list[str] | None, typer.Option("--output", "-o", metavar="FILE", help=_FILES)]
Force = Annotated[
    bool, typer.Option("--force", help="Replace existing files, but never those of the study.")
]
Title = Annotated[str | None, typer.Option(help="Title of the output.")]
Caption = Annotated[str | None, typer.Option(help="A sentence below the title.")]
_DIGITS = "Decimals of numbers that are not whole; default: two digits of the error."
Bom = Annotated[
    bool, typer.Option("--bom", help="Mark .csv files as UTF-8, which some spreadsheets need.")
]
Decimals = Annotated[
    list[str] | None, typer.Option(metavar="[NAME=]N", help=f"{_DIGITS} Repeatable.")
]
OneDecimals = Annotated[int | None, typer.Option("--decimals", metavar="N", help=_DIGITS)]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
]
