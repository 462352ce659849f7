"""The types of the parameters of a call about an array, and the charge of its account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from discreet.release.account import Account, charged
from discreet.release.question import Question
from discreet.release.statistics.moments import SQUARE_BITS


class Column(Protocol):
    """A pandas, polars or Arrow column."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def to_numpy(self) -> Any:
        """The values as a numpy array."""


Values: TypeAlias = ArrayLike | Sequence[object] | Column
"""One value for each unit; missing values are None or NaN."""
Key: TypeAlias = str | bool | int | float | Fraction | Decimal | date
"""A category."""
Keys: TypeAlias = Sequence[Key] | ArrayLike | Column | PathLike[str]
"""Categories: a list or a column, a range "1..12", or a public file."""
Method: TypeAlias = Literal["best", "laplace"]

Result = TypeVar("Result")


def run(
    ask: Question,
    account: Account,
    work: Callable[[], Result],
    *,
    least: int = 0,
    squares: bool = False,
    **parameters: Any,
) -> Result:
    """Charge the account and do the work; everything that can be refused is refused before ε is
    spent.
    """
    ask.require(least)
    if squares:
        ask.square_grid(SQUARE_BITS)
    return charged(account, ask.statistic, {**ask.parameters, **parameters}, ask.epsilon, work)
