"""How a call about an array is made: what its parameters can be, and the work on its account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from discreet.parameters import Number
from discreet.release.account import Account, charged
from discreet.release.question import Question
from discreet.release.statistics.moments import SQUARE_BITS

Values: TypeAlias = ArrayLike | Sequence[object]
"""One value for each unit; missing ones are None or NaN."""
Range: TypeAlias = tuple[Number, Number]
"""(lower, upper)."""
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
    """The work on the account, after everything that could refuse it: nothing is refused once ε is spent."""
    ask.require(least)
    if squares:
        ask.square_grid(SQUARE_BITS)
    return charged(account, ask.statistic, {**ask.parameters, **parameters}, ask.epsilon, work)
