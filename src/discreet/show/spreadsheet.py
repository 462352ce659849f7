"""Released tables as a workbook: a sheet for each table, and one on the method.

Each number has its interval in the two columns beside it. Numbers are stored as numbers, rounded as
shown, with as many decimals. Texts are stored as texts, whatever they begin with: none can become a
formula or a link.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

from discreet.errors import InvalidParameter, one_line, printable
from discreet.formats import as_float
from discreet.records import items_of
from discreet.release.answer import Answer, Decimals
from discreet.release.postprocessing import Numbers
from discreet.show.publication import METHOD, Method, Opening

# Excel's: rows of a sheet, characters of a cell and of a sheet's name
_ROWS, _CELL, _SHEET = 1_048_576, 32_767, 31
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\]")
_WIDEST = 60
_LINES = {"text_wrap": True, "valign": "top"}


def writer() -> ModuleType:
    """The package that writes workbooks; if it is missing, the error says what to install."""
    try:
        import xlsxwriter
    except ImportError:
        raise InvalidParameter(".xlsx needs XlsxWriter: pip install 'discreet[xlsx]'") from None
    return xlsxwriter  # type: ignore[no-any-return, unused-ignore]


def refuse_long(name: str, rows: int) -> None:
    if rows >= _ROWS:
        raise InvalidParameter(
            f"a sheet has at most {_ROWS - 1:,} rows, but {name} has {rows:,}: save it as .parquet"
        )


def workbook(
    opening: Opening,
    tables: Mapping[str, tuple[Opening, Answer, Decimals]],
    facts: Mapping[str, str],
    method: Method,
) -> bytes:
    """The bytes of a workbook: the tables by the names of their sheets, then the method."""
    sink = io.BytesIO()
    book = writer().Workbook(sink, {"in_memory": True})
    book.set_properties(
        {"title": opening.title[:255], "comments": "Released with differential privacy by discreet"}
    )
    names = _sheet_names([*tables, "Method"])
    for name, (_, answer, decimals) in zip(names, tables.values(), strict=False):
        _write_table(book, book.add_worksheet(name), answer, decimals)
    _write_method(book, book.add_worksheet(names[-1]), opening, tables, facts, method)
    book.close()
    return sink.getvalue()


def _write_table(book: Any, sheet: Any, answer: Answer, decimals: Decimals) -> None:
    bold, formats, index = book.add_format({"bold": True, "bottom": 1}), {}, 0
    for name, column, digits in answer.rounded(decimals):
        if isinstance(column, Numbers):
            for end, items in zip(("", "_low", "_high"), column.items(), strict=True):
                sheet.write_string(0, index, _text(name + end), bold)
                for row, (item, places) in enumerate(zip(items, digits.tolist(), strict=True), 1):
                    if places not in formats:
                        form = "#,##0" + (f".{'0' * places}" if places else "")
                        formats[places] = book.add_format({"num_format": form})
                    _write_number(sheet, row, index, item, formats[places])
                sheet.set_column(index, index, max(12, len(name + end) + 2))
                index += 1
            continue
        keys = items_of(column)
        sheet.write_string(0, index, _text(name), bold)
        for row, key in enumerate(keys, 1):
            if isinstance(key, bool):
                sheet.write_boolean(row, index, key)
            elif isinstance(key, int | float):
                _write_number(sheet, row, index, key)
            elif key is not None:
                sheet.write_string(row, index, _text(str(key)))
        widest = max((len(str(key)) for key in keys[:1000]), default=0)
        sheet.set_column(index, index, min(_WIDEST, max(len(name), widest) + 2))
        index += 1
    sheet.freeze_panes(1, 0)


def _write_number(sheet: Any, row: int, index: int, item: Any, form: Any = None) -> None:
    """Write a number; the cell stays empty if the number is missing or infinite."""
    number = (
        None if item is None else as_float(Fraction(item)) if isinstance(item, int) else float(item)
    )
    if number is not None and math.isfinite(number):
        sheet.write_number(row, index, number, form)


def _write_method(
    book: Any,
    sheet: Any,
    opening: Opening,
    tables: Mapping[str, tuple[Opening, Answer, Decimals]],
    facts: Mapping[str, str],
    method: Method,
) -> None:
    lines: list[tuple[str, str]] = [("Title", opening.title), ("", opening.caption), *facts.items()]
    for name, (above, _, _) in tables.items():
        about = f" of {name}" if len(tables) > 1 else ""
        texts = (above.caption, above.words) if len(tables) > 1 else (above.words,)
        lines += [
            (f"Content{about}", " ".join(filter(None, texts))),
            (f"SQL{about}", printable(above.sql.strip())),
        ]
    lines.append((METHOD, ""))
    lines += [
        (heading, " ".join(map(one_line, sentences))) for heading, sentences in method.items()
    ]
    bold, wrapped = book.add_format({"bold": True, **_LINES}), book.add_format(_LINES)
    for row, (label, value) in enumerate(line for line in lines if line[1] or line[0] == METHOD):
        sheet.write_string(row, 0, _text(label), bold)
        sheet.write_string(row, 1, _text(value), wrapped)
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 100)


def _text(text: str) -> str:
    """A text that fits into a cell, without characters that XML forbids."""
    return _cut(printable(text), _CELL)


def _cut(text: str, most: int) -> str:
    """The beginning of a text that Excel accepts: it counts characters beyond 16 bits twice."""
    return text.encode("utf-16-le")[: 2 * most].decode("utf-16-le", "ignore")


def _sheet_names(names: Iterable[str]) -> Sequence[str]:
    """Names of sheets that Excel accepts, distinct regardless of case."""
    sheets: list[str] = []
    for name in names:
        plain = _cut(_NOT_IN_NAMES.sub("_", printable(name)), _SHEET).strip("'") or "Table"
        # the first is Excel's
        used, number, sheet = {"history", *(other.casefold() for other in sheets)}, 1, plain
        while sheet.casefold() in used:
            number += 1
            sheet = f"{_cut(plain, _SHEET - len(str(number)) - 1)} {number}"
        sheets.append(sheet)
    return sheets
