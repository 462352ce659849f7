"""Work on all cores: functions of numpy and of engines let other threads run while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_all_cores(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """The results of all parts, in their order; a single part is computed in this thread."""
    remaining = list(parts)
    threads = min(cores(), len(remaining))
    if threads < 2:
        return [work(part) for part in remaining]
    with ThreadPoolExecutor(threads) as pool:
        # each in a copy of the context, where `taping` and `noting` are
        futures = [pool.submit(copy_context().run, work, part) for part in remaining]
        return [future.result() for future in futures]
