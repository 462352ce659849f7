"""How large an answer may be: what would fit neither into memory nor into the ledger is refused before the spend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.engines.base import Cells
from discreet.errors import EngineFailed, InvalidParameter, QueryRefused
from discreet.ledger.refusals import MOST_BYTES

if TYPE_CHECKING:
    from discreet.release.plan import Plan

MOST_RELEASED = 60_000_000
"""Numbers of an answer that a ledger keeps, the two ends of each interval included: some 2 GiB while it is made."""

MOST_NUMBERS = 15_000_000
"""Of an array that a ledger keeps the draws of, as JSON."""

_MOST_READ = 100_000_000
"""Integers that an engine hands over for a file: 30 million of them take 2.4 GiB."""

_MOST_POINTS = 1_000_000_000
"""Counts on the grids of quantiles and extremes, in all groups: 8 bytes each, most of them never touched."""

_LARGE = 2**50
"""Noise of that scale in steps may leave 64 bits."""

_BYTES, _DIGITS = 8, 40
"""Of a number, and of an integer beyond 64 bits, which is kept as text."""


def refuse_large(plan: Plan, rest: int) -> None:
    """Refuse an answer that a ledger cannot keep; `rest` bytes of it are known."""
    numbers = 3 * plan.cells * len(plan.texts)
    each = _DIGITS if any(line.scale >= _LARGE * line.step for line in plan.lines) else _BYTES
    if numbers > MOST_RELEASED or rest + each * numbers > MOST_BYTES:
        raise QueryRefused(
            f"an answer has at most {MOST_RELEASED:,} numbers, intervals included, and this one has {numbers:,} for "
            f"{plan.cells:,} groups: release it to a file with to=, or ask for fewer groups; nothing was spent"
        )
    points = [m.value.grid.width + 1 for s in plan.shares for m in s.design.measures() if isinstance(m, Cells)]
    if plan.cells * sum(points) > _MOST_POINTS:
        raise QueryRefused(
            f"quantiles, min and max of {plan.cells:,} groups need {plan.cells * sum(points):,} counts in memory, and "
            f"there may be {_MOST_POINTS:,}: ask for fewer groups at once; nothing was spent"
        )


def refuse_large_file(plan: Plan) -> None:
    """Refuse a file whose integers an engine cannot hand over."""
    integers = plan.cells * sum(len(share.design.measures()) for share in plan.shares)
    if integers > _MOST_READ:
        raise QueryRefused(
            f"a file takes at most {_MOST_READ:,} integers at once, and this one needs {integers:,} for "
            f"{plan.cells:,} groups: ask for fewer groups at once, by parts; nothing was spent"
        )


def refuse_long(numbers: int) -> None:
    """Refuse an array that a ledger cannot keep."""
    if numbers > MOST_NUMBERS:
        raise InvalidParameter(
            f"a ledger keeps at most {MOST_NUMBERS:,} numbers of a call, got {numbers:,}: give the array in parts, or "
            "as a file to discreet.files.add_noise.add_noise; nothing was spent"
        )


@contextmanager
def within_memory() -> Iterator[None]:
    """Work after a spend, of which nothing is lost but the work."""
    try:
        yield
    except MemoryError:
        raise EngineFailed(
            "the answer does not fit into memory: nothing is released, what was spent stays spent; "
            "ask again with more memory, which is free under the same request id or data version"
        ) from None
