"""The exceptions that discreet raises.

    DiscreetError
    ├── InvalidParameter   a parameter cannot be used (also a ValueError)
    ├── QueryRefused       the question is not supported, or the policy does not allow it
    ├── BudgetExceeded     the ledger has too little ε left
    ├── LedgerDamaged      the ledger was changed, rolled back or replaced
    └── EngineFailed       a part of the system (database, entropy source) failed

Messages quote parameters, never data. All errors except `EngineFailed` are raised before any spend.

`printable` makes untrusted text (a key, the name of a column) safe for a terminal.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with control and invisible characters escaped, except line breaks.

    >>> print(printable("north\x1b[2J"), printable("\u202ehtuos"))
    north\x1b[2J \u202ehtuos
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def one_line(text: str) -> str:
    r"""The same with line breaks escaped, too.

    >>> print(one_line("north\nsouth"))
    north\nsouth
    """
    return printable(text).replace("\n", "\\n")


def shorter(text: str, longest: int) -> str:
    """The text, cut with an ellipsis to at most `longest` characters.

    >>> shorter("SELECT count(*)", 9), shorter("SELECT", 9)
    ('SELECT c…', 'SELECT')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class DiscreetError(Exception):
    """The base class of all errors that discreet raises."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InvalidParameter(DiscreetError, ValueError):
    """A parameter cannot be used; the message says what must hold and what was given."""


class QueryRefused(DiscreetError):
    """The question cannot be answered; the message names the closest supported form."""


class BudgetExceeded(DiscreetError):
    """The spend would exceed the total; nothing was spent."""


class LedgerDamaged(DiscreetError):
    """The ledger was changed, rolled back or replaced; it is never opened as a new budget."""


class EngineFailed(DiscreetError):
    """A database, or another part of the system, failed; what was already spent stays spent."""
