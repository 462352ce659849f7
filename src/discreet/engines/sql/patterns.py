"""Which texts are numbers and dates: the same rule for CAST on every engine, and for cells in
Python.

The patterns use only [], {}, (), |, ? and *, which mean the same in the regular expressions of
every engine. A text that does not match is missing, never an error.
"""

from __future__ import annotations

from typing import NamedTuple

from discreet.ask.reading import tokens

NUMBER_PATTERN = " *[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})? *"
"""Absolute values from 10⁻¹³⁹ to 10¹³⁹: no engine overflows or underflows."""

DATE_PATTERN = (
    " *[0-9]{4}-[0-9]{2}-[0-9]{2}(["
    " T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?)? *"
)

TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
"""The spellings of truth values, in lowercase and without blanks."""

PADDING = ("([-T:])0([0-9]{2})", r"\1\2")
"""Removes a zero before two digits."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_DIRECTIVES = {"%Y": "[0-9]{4}", "%b": "|".join(MONTHS), "%f": "[0-9]{1,6}"}


class Shape(NamedTuple):
    """A date format: its pattern, and the ISO date from the pattern's groups, with extra zeros to
    be removed.
    """

    pattern: str
    template: str
    months: bool
    """Whether months are names, which are matched in lowercase."""


def date_shape(date_format: str) -> Shape:
    r"""The shape of a format.

    >>> date_shape("%d/%m/%Y").pattern, date_shape("%d/%m/%Y").template
    (' *([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}) *', '\\3-0\\2-0\\1')
    """
    parts = tokens(date_format)
    months = "%b" in parts
    groups = [part for part in parts if len(part) > 1]
    pattern = ""
    for before, part, after in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
        if len(part) == 1:
            pattern += "[.]" if part == "." else part.lower() if months else part
            continue
        alone = not any(len(neighbour) > 1 and neighbour != "%b" for neighbour in (before, after))
        pattern += f"({_DIRECTIVES.get(part, '[0-9]{1,2}' if alone else '[0-9]{2}')})"
    number = {part: f"\\{index}" for index, part in enumerate(groups, 1)}
    month = number.get("%b") or number["%m"]
    template = f"{number['%Y']}-0{month}-0{number['%d']}"
    if "%H" in number:
        template += f"T0{number['%H']}:0{number.get('%M', '0')}:0{number.get('%S', '0')}"
    if "%f" in number:
        template += f".{number['%f']}"
    return Shape(f" *{pattern} *", template, months)


def marked_number(decimal: str, thousands: str) -> str:
    """The pattern of numbers with these marks; digits are all in groups of three, or not in groups.

    >>> marked_number(",", ".")[:62]
    ' *[+-]?(([0-9]{1,40}|[0-9]{1,3}([.][0-9]{3}){1,12})([,][0-9]{0'
    """
    grouped = f"|[0-9]{{1,3}}([{thousands}][0-9]{{3}}){{1,12}}" if thousands else ""
    digits = f"([0-9]{{1,40}}{grouped})([{decimal}][0-9]{{0,40}})?|[{decimal}][0-9]{{1,40}}"
    return f" *[+-]?({digits})([eE][+-]?[0-9]{{1,2}})? *"
