"""The exceptions that discreet raises.

    DiscreetError
    ├── InvalidParameter   a parameter cannot be used (also a ValueError)
    ├── QueryRefused       the question is not supported, or the policy does not allow it
    ├── BudgetExceeded     the ledger has too little ε left
    ├── LedgerDamaged      the ledger was changed, rolled back or replaced
    └── EngineFailed       a part of the system (database, entropy source) failed

Messages quote parameters, never data. All errors except `EngineFailed` are raised before any spend;
the text of an `EngineFailed` ends with whether ε is spent.

`printable` makes untrusted text (a key, the name of a column) safe for a terminal.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def printable(text: str) -> str:
    r"""The text with control and invisible characters escaped, except line breaks.

    >>> print(printable("north\x1b[2J"), printable("\u202ehtuos"))
    north\x1b[2J \u202ehtuos
    """
    if text.isprintable():
        return text
    return "".join(
        (
            letter
            if letter.isprintable() or letter == "\n"
            else letter.encode("unicode_escape").decode()
        )
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
    """The base class of all errors that discreet raises.

    `code` is the SQLSTATE, errno or condition of the cause, or empty. Tracebacks show it, too.
    """

    code = ""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(one_line(message))
        if code:
            self.code = code
            self.add_note(code)


class InvalidParameter(DiscreetError, ValueError):
    """A parameter cannot be used; the message says what must hold and what was given."""


class QueryRefused(DiscreetError):
    """The question cannot be answered; the message names the closest supported form."""


class BudgetExceeded(DiscreetError):
    """The spend would exceed the total; nothing was spent."""


class LedgerDamaged(DiscreetError):
    """The ledger was changed, rolled back or replaced; it is never opened as a new budget."""


class SourceUnusable(InvalidParameter):
    """The source does not exist, or is not what the policy declares; its custodian can fix it."""


class SourceChanged(SourceUnusable):
    """The source has other columns, types or rights than when it was opened."""


class EngineFailed(DiscreetError):
    """A database, or another part of the system, failed; what was already spent stays spent.

    `spent` says whether the question had been charged: True, False, or None if the ledger could not
    tell. Its text says so, too, after the `sentence` about the failure.
    """

    def __init__(self, message: str = "", *, spent: bool | None = False, code: str = "") -> None:
        super().__init__(message, code=code)
        self.spent = spent

    @property
    def sentence(self) -> str:
        """What failed and what to do, without what is spent."""
        return str(self.args[0])

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.sentence, _SPENT[self.spent])))


_SPENT = {
    True: "what was spent stays spent",
    False: "nothing was spent",
    None: "whether it was spent is not known, and the same request_id is charged once",
}


def errno_code(number: int) -> str:
    """The code of an error of the operating system.

    >>> errno_code(28)
    'errno 28 (ENOSPC)'
    """
    return f"errno {number} ({errno.errorcode.get(number, '?')})"


def without_context(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, whose refusals lose their causes: the messages of those may quote a row."""

    @wraps(work)
    def whole(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            return work(*args, **options)
        except DiscreetError as error:
            refusal = error
        refusal.__context__ = None
        raise refusal

    return whole


@contextmanager
def of_source() -> Iterator[None]:
    """Within the block, an unusable parameter is the fault of the source or of its policy."""
    try:
        yield
    except SourceUnusable:
        raise
    except InvalidParameter as error:
        raise SourceUnusable(str(error), code=error.code) from None


class OutOfTime(EngineFailed):
    """A source did not answer within the time limit of a question."""


class Stopped(EngineFailed):
    """A person has stopped a statement, or the server that ran it."""


class SourceFailing(EngineFailed):
    """A question after which the source or the disk has failed is refused before it is paid for."""


@contextmanager
def after_spending() -> Iterator[None]:
    """Within the block ε is spent: what fails there is an `EngineFailed` that says so."""
    try:
        yield
        return
    except EngineFailed as error:
        sentence, code = error.sentence, error.code
    except SourceUnusable as error:
        sentence, code = str(error), error.code
    raise EngineFailed(sentence, spent=True, code=code)
