"""Waiting for what happens sooner or later: a condition, and a limit that only ends what never
happens.
"""

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which nothing happens any more, on a machine however busy."""


def wait(happened: Callable[[], object], pause: float = 0.02) -> None:
    """Until it has happened; looks again after each pause."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"it did not happen in {PATIENCE:g} seconds"
        time.sleep(pause)
