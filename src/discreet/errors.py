"""What can go wrong, as one small tree.

    DiscreetError
    ├── InvalidParameter   a parameter cannot be used (also a ValueError)
    ├── QueryRefused       the question is outside the language or the policy
    ├── BudgetExceeded     the ledger has too little ε left
    ├── LedgerDamaged      the ledger is not what it was
    └── EngineFailed       a machine part (engine, entropy) did not do its work

Messages quote parameters, never data. Everything but `EngineFailed` is raised before any spend.

`printable` is what stands between a text from anywhere (a key, a name of a column) and a terminal.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with what a terminal could take for a command, or hide, as Python escapes it; lines stay lines.

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
    r"""The same in one line.

    >>> print(one_line("north\nsouth"))
    north\nsouth
    """
    return printable(text).replace("\n", "\\n")


def shorter(text: str, longest: int) -> str:
    """The text, or as much of it as goes before an ellipsis.

    >>> shorter("SELECT count(*)", 9), shorter("SELECT", 9)
    ('SELECT c…', 'SELECT')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class DiscreetError(Exception):
    """Anything that discreet raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InvalidParameter(DiscreetError, ValueError):
    """A parameter cannot be used; the message says what must hold and what was given."""


class QueryRefused(DiscreetError):
    """The question cannot be asked; the message names the nearest thing that works."""


class BudgetExceeded(DiscreetError):
    """The spend would pass the total; nothing was spent."""


class LedgerDamaged(DiscreetError):
    """The ledger is broken, rolled back or foreign; it is never opened as a fresh budget."""


class EngineFailed(DiscreetError):
    """A part of the machine failed; whatever was spent before stays spent."""
