"""Limits on the size of an answer: one that does not fit into memory or the ledger is refused
before the spend.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.engines.base import Cells
from discreet.errors import EngineFailed, InvalidParameter, QueryRefused, errno_code
from discreet.ledger.refusals import MOST_BYTES

if TYPE_CHECKING:
    from discreet.release.plan import Plan

MOST_RELEASED = 60_000_000
"""Most numbers of an answer in a ledger, including the two ends of each interval: about 2 GiB while
it is computed.
"""

MOST_NUMBERS = 15_000_000
"""Most numbers of an array whose draws a ledger stores, as JSON."""

# most integers that an engine returns for a file: 30 million of them take 2.4 GiB
_MOST_READ = 100_000_000

_MOST_POINTS = 1_000_000_000
"""Most counts on the grids of quantiles and extremes, in all groups: 8 bytes each, most of them
never touched.
"""

_LARGE = 2**50  # noise with a scale of this many steps may exceed 64 bits
# the bytes of a number, and of an integer beyond 64 bits, which is stored as text
_BYTES, _DIGITS = 8, 40


def refuse_large(plan: Plan, rest: int) -> None:
    """Refuse an answer that a ledger cannot store; `rest` is the number of bytes besides the
    numbers.
    """
    numbers = 3 * plan.cells * len(plan.texts)
    bytes_each = _DIGITS if any(line.scale >= _LARGE * line.step for line in plan.lines) else _BYTES
    if numbers > MOST_RELEASED or rest + bytes_each * numbers > MOST_BYTES:
        raise QueryRefused(
            f"an answer may have at most {MOST_RELEASED:,} numbers, intervals included, but this"
            f" has {numbers:,} for {plan.cells:,} groups: release it to a file with to=, or ask for"
            " fewer groups; nothing was spent"
        )
    points = [
        m.value.grid.width + 1
        for s in plan.shares
        for m in s.design.measures()
        if isinstance(m, Cells)
    ]
    if plan.cells * sum(points) > _MOST_POINTS:
        raise QueryRefused(
            f"quantiles, min and max of {plan.cells:,} groups need {plan.cells * sum(points):,}"
            f" counts in memory, more than the limit of {_MOST_POINTS:,}: ask for fewer groups at"
            " once; nothing was spent"
        )


def refuse_large_file(plan: Plan) -> None:
    """Refuse a file that needs more integers than an engine can return."""
    integers = plan.cells * sum(len(share.design.measures()) for share in plan.shares)
    if integers > _MOST_READ:
        raise QueryRefused(
            f"a file may need at most {_MOST_READ:,} integers at once, but this needs {integers:,}"
            f" for {plan.cells:,} groups: ask for fewer groups at once; nothing was spent"
        )


def refuse_long(numbers: int) -> None:
    """Refuse an array that a ledger cannot store."""
    if numbers > MOST_NUMBERS:
        raise InvalidParameter(
            f"a ledger stores at most {MOST_NUMBERS:,} numbers per call, got {numbers:,}: give the"
            " array in parts, or as a file to discreet.files.add_noise.add_noise; nothing was"
            " spent"
        )


@contextmanager
def within_memory() -> Iterator[None]:
    """Turn a lack of memory after a spend into an error that says how to ask again for free."""
    try:
        yield
    except MemoryError:
        raise EngineFailed(
            "the answer does not fit into memory: nothing is released; ask again with more memory,"
            " which is free under the same request_id or data version",
            spent=True,
            code=errno_code(errno.ENOMEM),
        ) from None
