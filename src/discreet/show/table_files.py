"""The table of an answer as a file for programs or spreadsheets: CSV, JSON or Parquet.

CSV is rounded as shown (`formats.rounded`), since people open it; Parquet and JSON are not.

A spreadsheet takes a cell of CSV for a formula if it begins with =, +, -, @, one of them in full
width, a tab or a line break, even in quotes. A key or column name that begins so gets an apostrophe
in front; numbers such as -5 do not.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.release.answer import Answer, Decimals, arrow, columns_json
from discreet.release.postprocessing import Numbers

if TYPE_CHECKING:
    import pyarrow

FORMS = ("csv", "json", "parquet")

_BOM = b"\xef\xbb\xbf"
_FIRST = "[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]"
_FORMULA = re.compile(rf"(?![+-][0-9]+(\.[0-9]+)?\Z){_FIRST}")


def write_table(
    answer: Answer, form: str, sink: Any, *, decimals: Decimals = None, bom: bool = False
) -> None:
    """Write the table of an answer as csv, json or parquet to a binary file."""
    match form:
        case "csv":
            from pyarrow import csv

            sink.write(_BOM if bom else b"")
            csv.write_csv(_rounded(answer, decimals), sink)
        case "json":
            sink.write(_columns_text(answer).encode())
        case "parquet":
            from pyarrow import parquet

            parquet.write_table(answer.to_arrow(), sink)


def refuse_bom(bom: object, form: str) -> None:
    """Refuse a byte order mark in a file that is not CSV."""
    if bom not in (True, False):
        raise InvalidParameter(f"bom must be True or False, got {bom!r}")
    if bom and form != "csv":
        raise InvalidParameter(f"bom is only for .csv, got a .{form} file: leave bom out")


def no_formula(text: str) -> str:
    """The text, with an apostrophe in front if a spreadsheet would take it for a formula.

    >>> (
    ...     no_formula("=1+2"),
    ...     no_formula("=5"),
    ...     no_formula("-5"),
    ...     no_formula("- none"),
    ...     no_formula("a=b"),
    ... )
    ("'=1+2", "'=5", '-5', "'- none", 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def _rounded(answer: Answer, decimals: Decimals) -> pyarrow.Table:
    import pyarrow

    columns, names = [], []
    for name, column, _ in answer.rounded(decimals):
        if isinstance(column, Numbers):
            names += [no_formula(name + end) for end in ("", "_low", "_high")]
            columns += [arrow(part, column.missing) for part in column.three]
            continue
        keys = arrow(column)
        names.append(no_formula(name))
        columns.append(_safe(keys) if pyarrow.types.is_string(keys.type) else keys)
    return pyarrow.table(columns, names)


def _safe(keys: pyarrow.Array) -> pyarrow.Array:
    """Keys that no spreadsheet takes for formulas; fast in the common case, where none could be."""
    import pyarrow
    from pyarrow import compute

    if not compute.any(compute.match_substring_regex(keys, rf"^{_FIRST}")).as_py():
        return keys
    return pyarrow.array(
        [None if key is None else no_formula(key) for key in keys.to_pylist()], pyarrow.string()
    )


def _columns_text(answer: Answer) -> str:
    """The table as JSON, a line for each column."""
    lines = [
        f" {json.dumps(name, ensure_ascii=False)}:"
        f" {json.dumps(column, ensure_ascii=False, allow_nan=False)}"
        for name, column in columns_json(answer).items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}"
