"""Ledgers for their custodian: found beside a study, and written out whole."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.terminal import plain_json
from discreet.errors import InvalidParameter, printable
from discreet.files.writer import kept_files, new_file
from discreet.ledger.chain import COLUMNS, readable
from discreet.ledger.ledger import Ledger
from discreet.parameters import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMS = ("jsonl", "json", "csv")


def opened(where: str, anchor: str | None = None) -> Ledger:
    """The ledger in this place, or beside this study.toml, opened and checked; none is made."""
    if not where.endswith(".toml"):
        if "://" not in where and not Path(where).exists() and not Path(f"{where}.anchor").exists():
            raise InvalidParameter(f"there is no ledger {Path(where).name} here: name it, or its study.toml")
        return Ledger.open(where, anchor=anchor)
    place = Path(where).with_suffix(".ledger")
    if not Path(where).is_file():
        raise InvalidParameter(f"there is no such study: {Path(where).name}")
    if not place.exists() and not Path(f"{place}.anchor").exists():
        raise InvalidParameter(
            f"{Path(where).name} has no ledger yet; the first plan makes it: discreet plan {where} …"
        )
    return Ledger.open(place, anchor=anchor)


def one_study(ledger: Ledger, wanted: str | None) -> str:
    """The study that was named, or the only one."""
    studies = ledger.studies()
    if wanted is None and len(studies) == 1:
        return studies[0]
    if wanted not in studies:
        raise InvalidParameter(f"--study must be one of {', '.join(studies)}, got {quote(wanted)}")
    return str(wanted)


def refuse_unknown(form: str | None, output: str | None) -> None:
    """Refuse a format that there is not."""
    if _form(form, output) not in _FORMS:
        raise InvalidParameter(f"--format must be {', '.join(_FORMS)}, got {quote(_form(form, output))}")


def export(ledger: Ledger, output: str | None, form: str | None, *, force: bool = False) -> None:
    """Write everything to a file, or to standard output."""
    if output is None:
        lines = _lines(ledger, _form(form, output))
        sys.stdout.writelines(map(printable, lines) if sys.stdout.isatty() else lines)
        return
    with new_file(output, force=force, private=True, kept=kept_files(ledger.files)) as draft:
        for line in _lines(ledger, _form(form, output)):
            draft.write(line.encode())


def _form(form: str | None, output: str | None) -> str:
    return form or (Path(output).suffix[1:] if output is not None and Path(output).suffix else "jsonl")


def _lines(ledger: Ledger, form: str) -> Iterator[str]:
    if form == "json":
        yield ledger.export() + "\n"
        return
    line = io.StringIO()
    table = csv.DictWriter(line, COLUMNS, lineterminator="\n")
    if form == "csv":
        yield ",".join(COLUMNS) + "\n"
    for entry in ledger.entries():
        row = {**asdict(entry), "answer": None if entry.answer is None else readable(entry.answer)}
        if form == "jsonl":
            yield plain_json(row) + "\n"
            continue
        table.writerow({name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()})
        yield line.getvalue()
        line.seek(0)
        line.truncate()
