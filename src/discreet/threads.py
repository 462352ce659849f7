"""Work on all cores: functions of numpy and of engines let other threads run while they compute."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_all_cores(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """The results of all parts, in their order; a single part is computed in this thread."""
    remaining = list(parts)
    return (
        [work(part) for part in remaining]
        if len(remaining) == 1
        else list(in_turn(work, remaining))
    )


def in_turn(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """The results of all parts, in their order, computed on all cores a few parts in advance."""
    remaining, threads = iter(parts), cores()
    if threads < 2:
        yield from map(work, remaining)
        return
    with ThreadPoolExecutor(threads) as pool:
        # each in a copy of the context, where `taping` and `noting` are
        submitted = (pool.submit(copy_context().run, work, part) for part in remaining)
        futures = deque(islice(submitted, 2 * threads))
        while futures:
            yield futures.popleft().result()
            futures.extend(islice(submitted, 1))
