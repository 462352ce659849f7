"""Best of several, interleaved: noise of the machine only ever makes a run slower."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def best(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fastest(works: Mapping[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """The best time of each work, all of them in turn in every round, so that they share the
    machine's mood.
    """
    times = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            times[name] = min(times[name], best(work))
    return times


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"### {title}", "", "| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def high_water() -> int:
    """The peak of memory of this process, in bytes; getrusage would tell that of its parent, if it
    was larger.
    """
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024
