"""A released answer as a file, by its suffix, with its record beside it.

    .csv .xlsx            tables for spreadsheets, rounded as shown
    .json .parquet        tables for programs, unrounded
    .html .md .txt        documents: title, source, date, question, table, and method

A file that cannot be written is refused before anything is written and, for a command, before ε is
spent (`refuse`).
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.files.writer import new_file
from discreet.formats import shown
from discreet.outside import read_fraction
from discreet.parameters import quote
from discreet.release.answer import Answer, Decimals, decimals_by
from discreet.show import plain, spreadsheet
from discreet.show.publication import Opening, keys_of, method, opening
from discreet.show.table_files import FORMS, refuse_bom, write_table

READ = ("html", "md", "txt")
SUFFIXES = tuple(f".{form}" for form in (*FORMS, "xlsx", *READ))


def save(
    answer: Answer,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    caption: str | None = None,
    decimals: Decimals = None,
    bom: bool = False,
    force: bool = False,
) -> Path:
    """Write an answer to a new file, and its record beside it; the path of the file."""
    target = Path(path)
    form = refuse(target, bom=bom)
    decimals_by(answer.columns, decimals)
    if form == "xlsx":
        spreadsheet.refuse_long(target.name, len(answer))
    with new_file(target, force=force, kept=answer.kept) as draft:
        answer.save_record(target, force=force)
        if form in FORMS:
            write_table(answer, form, draft, decimals=decimals, bom=bom)
        else:
            draft.write(_content(answer, form, opening(answer, title, caption), decimals))
    return target


def refuse(path: Path, *, bom: bool = False) -> str:
    """The form of a file by its suffix; a form that cannot be written here is refused."""
    if path.suffix not in SUFFIXES:
        raise InvalidParameter(f"path must end in {', '.join(SUFFIXES)}, got {quote(path.name)}")
    if path.name.endswith(".release.json"):
        raise InvalidParameter(f"{path.name} has the name of a record: give the table another name")
    form = path.suffix[1:]
    refuse_bom(bom, form)
    if form == "xlsx":
        spreadsheet.writer()
    if form == "html":
        from discreet.show.figures import theme

        theme.require()
    return form


def _content(answer: Answer, form: str, above: Opening, decimals: Decimals) -> bytes:
    how = method(answer, decimals)
    match form:
        case "xlsx":
            return spreadsheet.workbook(
                above, {"Table": (above, answer, decimals)}, facts_of(answer.record), how
            )
        case "html":
            from discreet.show.report import page_of

            return page_of(answer, above, how, decimals).encode()
    table = (Opening(title=""), answer.columns, answer.shown(decimals), keys_of(answer))
    return (plain.markdown if form == "md" else plain.text)(above, [table], how).encode()


def facts_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Facts of a record for the sheet on the method."""
    unit = "row" if record.get("unit", "row") == "row" else str(record["unit"])
    return {
        "Source": str(record["study"]),
        "Version of the data": str(record.get("data_version") or ""),
        "Released on": str(record.get("date", "")),
        "ε": shown(read_fraction(record["epsilon"])),
        "δ": shown(read_fraction(record.get("delta", "0"))),
        "Neighbours": f"{record['neighbors']}, unit: {unit}",
        "Confidence": (
            f"{float(read_fraction(record['confidence'])) * 100:g} %"
            if "confidence" in record
            else ""
        ),
        "Software": str(record.get("software", "")),
    }
