"""Writes docs/coverage.md: how often intervals hold the truth on data that is hard for them (`make
coverage`).

    python tools/coverage.py [RUNS] [--dry]

Every trial of tests/coverages.py is drawn RUNS times (2,000; fewer where a draw takes long). A row
of the table has the trial with the lowest coverage. It fails if some upper Clopper–Pearson bound of
one of its trials lies below the confidence, at 10⁻⁶ over the whole table. Then nothing is written,
and the failures are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT / "tests")  # and not this folder, where a module has the name of a library

from coverages import (  # noqa: E402
    ALARM,
    RELATIONS,
    SPELLINGS,
    STATISTICS,
    Data,
    Result,
    data_sets,
    run,
    trials,
)

PAGE = ROOT / "docs" / "coverage.md"
RUNS = 2_000
WORKERS = 2

HEAD = """\
# How often intervals hold

Every interval of 95 % should hold the true number in at least 95 % of releases, whatever the data. This table has, for
each statistic and each way to ask for it, the lowest coverage that was found on an adversarial list of data sets:
balanced 0 and 1, all values at one bound, two values, two clusters with a gap between them, values with many ties,
values midway between two points of a grid, and `precision = 1` with fractions. There are {sizes} rows; of values midway
{midway}, at the largest ε; and with `precision` {fractions}. `make coverage` makes it.

- **What is covered** is the statistic of the values within their bounds, before they are rounded to the grid. There are
  two exceptions. A sum alone, whose number of values is private, says in its plan and its answer that rounding is left
  out: in its cells, marked †, it is the sum of the rounded values, as in a formula with such a sum. A cumulative count
  (`cdf`) counts rounded values.
- **Of vectors** the worst part counts; the bands of nine quantiles and of `cdf` hold together.
- **A formula of two released numbers** in SQL, such as `sum(x) / count(x)`, has the extremes over both intervals. It
  holds whenever both do: with two numbers of 95 % in at least 90 %, and that is what its row is judged by. Ask with
  `confidence = 0.975` for 95 %. A quotient by 0 is missing, and has no interval.
- **No values.** Without a value, a mean, a variance or a quantile is not defined, and not judged. The variance of a
  sample of one value counts as 0.
- **Minimum and maximum** have the bounds as their interval.

"array" is `discreet.mean(x, …)` and the like; floats that are missing are dropped. "n public" replaces missing values
instead, under change-one. "units" has two rows for each unit. A report has this one table.

A row fails if, for one of its trials, the upper Clopper–Pearson bound of the coverage lies below the confidence, at
10⁻⁶ over the whole table. **No row fails.** That does not show that every interval holds: the lowest of many estimates
lies below the true coverage, and how much a trial can show depends on its releases.

| releases of a trial | an estimate that would fail lies below | for |
|---|---|---|
| {runs} | {seen} | most rows |
| {runs_part} | {seen_part} | quantiles, minimum, maximum, `cdf`, `summary` |
| {runs_least} | {seen_least} | `method=laplace`, `randomized_response` |

{count} trials, {date}.
"""


def judged(part: tuple[Sequence[Data], int]) -> list[Result]:
    """The results of all trials on some data sets."""
    sets, runs = part
    return [run(trial, runs) for trial in trials(sets)]


def failures(results: Sequence[Result]) -> list[str]:
    """The trials that fail, in words."""
    alarm = ALARM / len(results)
    return [
        f"{', '.join(result.row)}: {result.data}, ε = {result.epsilon}: {result.held:,} of"
        f" {result.runs:,}"
        for result in results
        if result.fails(alarm)
    ]


def lowest(results: Iterable[Result]) -> dict[tuple[str, str, str], Result]:
    """The result with the lowest coverage of each row."""
    least: dict[tuple[str, str, str], Result] = {}
    for result in results:
        if result.row not in least or result.coverage < least[result.row].coverage:
            least[result.row] = result
    return least


def table(results: Sequence[Result]) -> str:
    """The table: a line for each statistic and relation, a column for each spelling."""
    least, rounded = lowest(results), {result.row for result in results if result.rounded}
    lines = [
        f"| statistic | relation | {' | '.join(SPELLINGS)} |",
        f"|---|---|{'---|' * len(SPELLINGS)}",
    ]
    for statistic in STATISTICS:
        for relation in RELATIONS:
            found = [least.get((statistic.name, relation, spelling)) for spelling in SPELLINGS]
            if any(found):
                cells = " | ".join(
                    "" if one is None else shown(one, one.row in rounded) for one in found
                )
                lines.append(f"| {statistic.name} | {relation} | {cells} |")
    return "\n".join(lines)


def shown(result: Result, rounded: bool) -> str:
    """A coverage in percent, rounded down, with a mark if some truth of its row is that of rounded
    values.
    """
    return f"{int(1000 * result.coverage) / 10:.1f}{'†' if rounded else ''}"


def seen(runs: int, alarm: float) -> str:
    """Below this many percent of so many releases, a trial of 95 % fails."""
    held = int(stats.binom.ppf(alarm, runs, 0.95))
    return f"{100 * held / runs:.0f} %"


def main(arguments: Sequence[str]) -> int:
    """Run all trials, list those that fail, and write the page if there is none."""
    runs = next((int(argument) for argument in arguments if argument.isdigit()), RUNS)
    sets = data_sets()
    parts = [(sets[at :: 4 * WORKERS], runs) for at in range(4 * WORKERS)]
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        results = [result for found in pool.map(judged, parts) for result in found]
    failed = failures(results)
    print(*failed, f"{len(failed)} of {len(results):,} trials fail", sep="\n")
    if "--dry" in arguments:
        print(table(results))
    elif not failed:
        sizes = sorted({len(data.values) for data in sets if data.precision is None})
        fractions = next(len(data.values) for data in sets if data.precision is not None)
        words = HEAD.format(
            sizes=", ".join(f"{size:,}" for size in sizes[:-1]),
            midway=f"{sizes[-1]:,}",
            fractions=f"{fractions:,}",
            **{
                f"{word}{suffix}": value
                for suffix, part in (("", 1), ("_part", 2), ("_least", 4))
                for word, value in (
                    ("runs", f"{runs // part:,}"),
                    ("seen", seen(runs // part, ALARM / len(results))),
                )
            },
            count=f"{len(results):,}",
            date=datetime.now(UTC).date().isoformat(),
        )
        PAGE.write_text(f"{words}\n{table(results)}\n", "utf-8")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
