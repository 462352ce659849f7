"""The demonstration: a study of 200,000 invented people, from the data to published tables, an
attack and the ledger.

It uses the functions that a custodian uses, and explains each number in a line. Since the people
are invented, it may print exact numbers beside the published ones; a real study never does.
"""

from __future__ import annotations

import shutil
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli import demo_data
from discreet.cli.terminal import rich_table
from discreet.errors import InvalidParameter, shorter
from discreet.formats import left_shown, shown, with_interval
from discreet.ledger.chain import in_epsilon
from discreet.ledger.questions import entry_text

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from discreet.release.answer import Answer, Item
    from discreet.release.study import Study

COUNTIES = "SELECT county, count(*) AS visits, avg(age) AS age FROM visits GROUP BY county"
DIAGNOSES = (
    "SELECT diagnosis, count(*) AS visits, avg(age) AS age FROM visits GROUP BY diagnosis ORDER BY"
    " visits DESC"
)
MEDIAN = "SELECT median(income) AS income FROM visits"
_ATTACKED = Fraction(1)
_MARK = ".discreet-demo"
_SHOWN, _WIDE, _LONG = 3, 100, 70


def run(folder: str | Path = "demo", console: Console | None = None) -> None:
    """Create the study in a folder, release from it, and show every step."""
    from rich.console import Console

    from discreet.release.study import open as open_study

    began = time.perf_counter()
    console = console or Console(highlight=False)
    console.width = min(console.width, _WIDE) if console.is_terminal else _WIDE
    target = Path(folder)
    _clear(target)
    _say(
        console,
        1,
        "The data",
        f"{demo_data.PEOPLE:,} invented people, one row per visit, in {target}/visits.parquet",
    )
    truth = demo_data.visits()
    policy = demo_data.write(truth, target)
    console.print(
        *(f"   {line}" for line in demo_data.STUDY.splitlines() if line),
        sep="\n",
        style="dim",
        markup=False,
    )
    with open_study(policy) as study:
        counties = _counties(console, study, truth)
        diagnoses = _diagnoses(console, study, truth, target)
        _median(console, study, truth)
        _attacker(console)
        _ledger(console, study)
    counties.save(target / "visits-by-county.csv")
    diagnoses.save(target / "visits-by-diagnosis.csv")
    seconds = f"{time.perf_counter() - began:.0f} s"
    console.print(
        f"\n[bold]Done in {seconds}.[/bold] Open {target}/report.html, then try your own data:"
    )
    console.print("   [bold]discreet init DATA[/bold]")


def _clear(target: Path) -> None:
    """Make an empty folder; only a folder of an earlier demonstration is removed."""
    if target.exists():
        if not target.is_dir() or (any(target.iterdir()) and not (target / _MARK).exists()):
            raise InvalidParameter(
                f"{target} must be an empty folder or an earlier demo; name another folder"
            )
        shutil.rmtree(target)
    target.mkdir(parents=True)
    (target / _MARK).write_text(
        "discreet demo made this folder, and replaces it when it runs again.\n"
    )


def _counties(console: Console, study: Study, truth: pa.Table) -> Answer:
    from rich.padding import Padding
    from rich.text import Text

    _say(console, 2, "Plan first", "free: no row is read, nothing is spent")
    plan = study.sql(COUNTIES, epsilon=1, size=150)
    console.print(f"   {COUNTIES}", style="cyan", markup=False)
    console.print(Padding(Text(repr(plan)), (0, 0, 0, 3)))
    _why(
        console,
        "Δ: most that one person can change the numbers · scale: Δ/ε, the mean size of the noise ·",
        "error (95 %): holds for 19 of 20 counties · ε: limit on what anyone can learn about one"
        " person",
    )
    _say(console, 3, "Then release", "the ledger records ε on disk before the first row is read")
    answer = plan.release()
    exact = _exact(truth, "county")
    rows = sorted(answer.rows, key=lambda row: -row["visits"][0])
    _compare(console, "county", [*rows[:_SHOWN], *answer.rows[1000::1000]], exact)
    coverage = [
        sum(row[name][1] <= exact[row["county"][0]][index] <= row[name][2] for row in rows)
        / len(rows)
        for index, name in enumerate(("visits", "age"))
    ]
    shares = " and ".join(f"{share:.1%}" for share in coverage)
    _why(
        console,
        f"The three largest and three others of {len(rows):,} counties. {shares} of all intervals",
        "contain the exact number; 95 % was promised. Few people in a county make a wide interval.",
    )
    return answer


def _diagnoses(console: Console, study: Study, truth: pa.Table, target: Path) -> Answer:
    from discreet.show.figures import save

    _say(
        console,
        4,
        "A table to publish",
        f"ε = 0.5, with a figure and a report: {target}/report.html",
    )
    answer = study.sql(DIAGNOSES, epsilon="0.5").release()
    _compare(console, "diagnosis", answer.rows, _exact(truth, "diagnosis"))
    _why(
        console,
        "Large groups are nearly exact: the noise is the same for 100 people as for 100,000.",
    )
    save(answer.figure(), target / "diagnoses.png")
    answer.save(target / "report.html", title="Visits by diagnosis")
    return answer


def _median(console: Console, study: Study, truth: pa.Table) -> None:
    import numpy as np

    answer = study.sql(MEDIAN, epsilon="0.25").release()
    value, low, high = answer.rows[0]["income"]
    exact = float(np.median(truth.column("income").to_numpy()))
    console.print(
        f"   median income: {value:,.0f}, between {low:,.0f} and {high:,.0f} (exact: {exact:,.0f}),"
        " for ε = 0.25"
    )


def _attacker(console: Console) -> None:
    from discreet.verify.attacks import difference, record

    _say(
        console,
        5,
        "An attacker",
        "who knows the data of everyone but one person, and guesses that person's",
    )
    first, second = record(epsilon=_ATTACKED), difference(epsilon=_ATTACKED)
    rows = [
        [attack.name, f"{attack.naive:.0%}", f"{attack.discreet:.1%}"] for attack in (first, second)
    ]
    _table(
        console, ["attack", "right guesses without noise", f"with discreet, ε = {_ATTACKED}"], rows
    )
    _why(
        console,
        f"At ε = {_ATTACKED} nobody is right more often than e^ε/(1+e^ε) = {first.allowed:.1%},"
        " whatever they know;",
        f"at ε = 0.1, 52.5%. ({first.trials:,} trials: ± 1 %.)",
    )


def _ledger(console: Console, study: Study) -> None:
    _say(
        console,
        6,
        "The ledger",
        "what was spent on which question; the same question again is free",
    )
    rows = [
        [str(entry.number), shown(in_epsilon(entry.amount)), shorter(entry_text(entry), _LONG)]
        for entry in study.ledger.entries(study.name)
        if entry.kind == "spend"
    ]
    _table(console, ["entry", "ε", "question"], rows, left=3)
    _why(
        console,
        f"ε {shown(study.spent)} of {shown(study.policy.epsilon)} is spent,"
        f" {left_shown(study.remaining)} is left. When nothing is left, no new question is"
        " answered.",
    )


def _exact(truth: pa.Table, by: str) -> dict[str, tuple[int, float]]:
    groups = truth.group_by(by).aggregate([("age", "count"), ("age", "mean")]).to_pydict()
    return dict(
        zip(groups[by], zip(groups["age_count"], groups["age_mean"], strict=True), strict=True)
    )


def _compare(
    console: Console, by: str, rows: list[dict[str, Item]], exact: dict[str, tuple[int, float]]
) -> None:
    lines = []
    for row in rows:
        visits, age = exact[row[by][0]]
        published = [with_interval(*row[name]) for name in ("visits", "age")]
        lines.append([row[by][0], published[0], f"{visits:,}", published[1], f"{age:.1f}"])
    _table(console, [by, "visits published", "exact", "mean age published", "exact"], lines)


def _say(console: Console, number: int, heading: str, note: str) -> None:
    console.print(f"\n[bold]{number}  {heading}[/bold]  [dim]{note}[/dim]")


def _why(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(f"   {line}", style="dim")


def _table(console: Console, headings: list[str], rows: list[list[str]], left: int = 1) -> None:
    right = range(left + 1, len(headings) + 1)
    console.print(
        rich_table(
            [["", *headings], *([" ", *row] for row in rows)], right=right, padding=(0, 3, 0, 0)
        )
    )
