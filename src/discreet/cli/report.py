"""Reports from a file: plan the cost and errors of all tables, then release them into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options as option
from discreet.errors import DiscreetError, EngineFailed, errno_code

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan
    from discreet.release.reports.report import Report

app = typer.Typer(help="Plan and publish tables that are measured together.", **option.TYPER)

ReportPath = Annotated[
    str, typer.Argument(metavar="REPORT", help="The tables and their study, such as report.toml.")
]
_WHERE = "A folder, created if needed; or one file: .xlsx .html .md .txt."
Folder = Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help=_WHERE)]


@app.command("plan")
def plan(
    report: ReportPath,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Show the cost of all tables and the error of each.

    Free; compares with tables that are asked one by one.
    """
    from discreet.cli import terminal
    from discreet.cli.progress import spending_nothing
    from discreet.ledger.place import without_secrets
    from discreet.show.json import report_plan_json

    with spending_nothing():
        planned = _planned(report, ledger, anchor)
        if as_json:
            terminal.say_json(report_plan_json(planned))
            return
        terminal.show_report_plan(planned)
        places = {"ledger": without_secrets(ledger), "anchor": anchor}
        folder = f"{Path(report).stem}/"
        terminal.show_next(
            planned, planned.epsilon, ["report", "release", report, "-o", folder], places
        )


@app.command("release")
def release(
    report: ReportPath,
    output: Folder,
    title: option.Title = None,
    caption: option.Caption = None,
    decimals: option.OneDecimals = None,
    bom: option.Bom = False,
    force: option.Force = False,
    request_id: option.RequestId = None,
    analyst: option.Analyst = None,
    sign: option.Sign = None,
    time_limit: option.TimeLimit = None,
    ledger: option.LedgerPlace = None,
    anchor: option.Anchor = None,
    as_json: option.AsJson = False,
) -> None:
    """Spend ε once and write all tables and a page. Tables are CSV and Parquet. Repeating it is
    free.

    --title, --caption and --decimals replace what the file says.
    """
    from discreet.cli import outputs, terminal
    from discreet.cli.progress import released, spending_nothing, watched
    from discreet.cli.proof import refuse_unsigned, signed
    from discreet.release.plan import REPORTS
    from discreet.show.tables import record_file, refuse_taken

    with spending_nothing():
        planned = _planned(report, ledger, anchor, time_limit)
        study = planned.study
        refuse_taken(planned, output, bom=bom, decimals=decimals, force=force)
        refuse_unsigned(planned, [record_file(planned, Path(output))], sign, force)
        known = request_id is not None and study.budget.entry(REPORTS + request_id) is not None
    tables = released(study, planned.release, request_id=request_id, analyst=analyst, kind=REPORTS)
    look = {"title": title, "caption": caption, "decimals": decimals, "bom": bom}
    files = watched(lambda: _saved(tables, output, force, look), "saving")
    files += signed(tables, files, sign, force)
    if as_json:
        columns = {
            name: terminal.answer_as_json(answer)["columns"]
            for name, answer in tables.tables.items()
        }
        spent = {"left": str(tables.remaining), "entry": tables.entry, "record": tables.record}
        terminal.say_json({"tables": columns, **spent, "saved": list(map(str, files))})
        return
    terminal.say(f"{outputs.receipt(tables, study, known=known)} {_written(tables, files)}")


def _planned(
    report: str, ledger: str | None, anchor: str | None, time_limit: str | None = None
) -> ReportPlan:
    from discreet.ask.reportfile import ReportFile
    from discreet.cli.progress import open_study, watched

    file = ReportFile.load(report)
    study = open_study(str(file.study), ledger, anchor, time_limit)
    return watched(lambda: study.report(file.tables, **file.terms), "planning")


def _saved(report: Report, folder: str, force: bool, look: dict[str, Any]) -> list[Path]:
    try:
        return [Path(file) for file in report.save(folder, force=force, **look)]
    except (DiscreetError, OSError) as error:
        why = str(error.strerror if isinstance(error, OSError) else error)
        raise EngineFailed(
            f"the report could not be written: {why.rstrip('.')}. The ledger keeps it: run it"
            " again, it is free",
            spent=True,
            code=errno_code(error.errno or 0) if isinstance(error, OSError) else error.code,
        ) from None


def _written(report: Report, files: list[Path]) -> str:
    page, *others = files
    if page.name != "index.html":
        return f"Wrote {', '.join(map(str, files))}"
    count = len(report.tables)
    names = [file.name for file in others[2 * count :]]
    return (
        f"Wrote {page}, {count} {'table' if count == 1 else 'tables'} as CSV and Parquet,"
        f" {', '.join(names)}"
    )
