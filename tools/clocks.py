"""Run the tests that race a clock many times, half of them beside busy processes: `make clocks
TIMES=50`.

A failure of a correct build is a false alarm, or a control that was missed: none is expected in a
lifetime. Every second run has two processes beside it that compute without an end, so that there is
never an idle core for it on a machine of two. The last line is the summary; the output of a run
that fails is shown in full.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY = 2


def files() -> list[str]:
    """The files of tests with such a test."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(file.relative_to(ROOT)) for file in tests if "mark.clock" in file.read_text("utf-8")
    ]


@contextlib.contextmanager
def beside(many: int) -> Iterator[None]:
    """So many processes that never rest."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(many)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def ran(many: int) -> tuple[bool, int, float]:
    """Whether all tests passed beside so many busy processes, how many there are, and the seconds
    they took.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-m", "clock", *files()]
    began = time.monotonic()
    with beside(many):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    seconds = time.monotonic() - began
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
    passed = re.search(r"(\d+) passed", done.stdout)
    return done.returncode == 0, int(passed[1]) if passed else 0, seconds


def main(times: int) -> int:
    """The number of runs that failed."""
    failures, seconds, tests = [0, 0], [0.0, 0.0], 0
    for at in range(times):
        is_busy = at % 2
        good, found, took = ran(BUSY * is_busy)
        failures[is_busy] += not good
        seconds[is_busy] += took
        tests = max(tests, found)
        beside_what = "beside two busy processes" if is_busy else "alone"
        print(
            f"{at + 1}/{times} {beside_what}: {'passed' if good else 'FAILED'}, {took:.0f} s",
            flush=True,
        )
    alone, busy = times - times // 2, times // 2
    means = [
        f"{total / max(1, many):.0f} s a run"
        for total, many in zip(seconds, (alone, busy), strict=True)
    ]
    print(
        f"{tests} tests, {times} runs: {failures[0]} of {alone} failed alone ({means[0]}), "
        f"{failures[1]} of {busy} beside two busy processes ({means[1]})"
    )
    return sum(failures)


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)))
