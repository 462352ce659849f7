"""Plans, answers and ledgers as tables on a terminal, and as JSON.

A table is wrapped to the width of the terminal, but not in a file or a pipe. A long answer shows
its first and last rows. Control characters are escaped: keys may come from anywhere, and a terminal
would obey them.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.padding import PaddingDimensions
from rich.table import Table
from rich.text import Text

from discreet.ask.siblings import budgets
from discreet.errors import one_line
from discreet.formats import MOST_ROWS, left_shown, shortened, shown
from discreet.ledger.chain import Entry, in_epsilon
from discreet.ledger.questions import entry_text
from discreet.outside import read_fraction
from discreet.release.answer import Answer, Decimals, columns_json
from discreet.show.json import measured_text, plan_json

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.release.plan import Plan
    from discreet.release.reports.plan import ReportPlan

_ALL = 2**31  # more entries than a ledger has
_PIPE = 100_000  # width of a line that is not on a terminal, so that nothing is cut


class _Plain(Console):
    """A console that raises an error when its output is closed; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output; lines may have any length where it is not a terminal."""
    return _Plain(highlight=False, width=None if sys.stdout.isatty() else _PIPE)


def say(*sentences: str, style: str = "") -> None:
    for sentence in sentences:
        console().print(Text(one_line(sentence), style=style))


def say_json(value: Any) -> None:
    sys.stdout.write(plain_json(value, allow_nan=False, indent=1) + "\n")


def plain_json(value: Any, **options: Any) -> str:
    """JSON of the same value with control characters escaped, safe to show on a terminal."""
    text = json.dumps(value, ensure_ascii=False, **options)
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1]
        for letter in text
    )


def show_plan(plan: Plan) -> None:
    _show_priced(plan, (1, 2), [" ".join(plan.notes)] if plan.notes else [], plan.warnings)


def show_report_plan(plan: ReportPlan) -> None:
    _show_priced(plan, (1,), [measured_text(plan), plan.agreement, *plan.notes])


def _show_priced(
    plan: Plan | ReportPlan,
    right: Collection[int],
    notes: Sequence[str],
    warnings: Sequence[str] = (),
) -> None:
    headings, *rows = plan.table
    say(plan.summary)
    show_table(headings, rows, right=right)
    say(*notes, style="dim")
    say(
        *warnings,
        *[budgets(plan.study.file_name, plan.study.siblings)] if plan.study.siblings else [],
        style="yellow",
    )


def show_next(
    plan: Plan | ReportPlan, cost: Fraction, words: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Print the command that releases a plan, or that the release would be refused."""
    left = plan.study.remaining
    if cost > left and not plan.asked_before:
        say(
            f"Nothing was spent. A release would be refused: only ε {left_shown(left)} is left.",
            style="yellow",
        )
        return
    say("Nothing was spent. Release it with:", style="dim")
    say_command(words, options)


def say_command(words: Sequence[str], options: Mapping[str, Any]) -> None:
    """Print a command to copy; options that are None or False are left out."""
    command = " ".join(map(_word, ["discreet", *words, *_flags(options)]))
    whole = all(letter.isprintable() or letter == "\n" for letter in command)
    # the terminal must wrap the line itself: a line break of ours would be copied with it
    console().print(Text(command if whole else one_line(f"discreet {words[0]} …")), soft_wrap=True)


def _word(text: str) -> str:
    """A word quoted for a shell, in double quotes if it has apostrophes and nothing special there.

    >>> print(_word("ward = 'A'"), _word("age"), _word("a b"))
    "ward = 'A'" age 'a b'
    """
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None and item is not False:
                yield from (f"--{name}",) if item is True else (f"--{name}", str(item))


def plan_as_json(plan: Plan) -> dict[str, Any]:
    policy, left, body = plan.study.policy, plan.study.remaining, plan_json(plan)
    numbers: tuple[Literal["sensitivity", "scale", "step", "within"], ...] = (
        "sensitivity",
        "scale",
        "step",
        "within",
    )
    return {
        "rows": body["cells"],
        "epsilon": body["cost"],
        "asked_before": body["asked_before"],
        "total": str(policy.epsilon),
        "left": str(left),
        "left_after": str(left - plan.cost),
        **{name: getattr(policy, name) for name in ("neighbors", "unit", "max_rows", "max_groups")},
        "confidence": body["confidence"],
        "simultaneous": body["simultaneous"],
        "columns": [
            {
                "name": line["title"],
                **{name: line[name] for name in numbers},
                "accuracy": line["reach"],
            }
            for line in body["lines"]
        ],
        "notes": body["notes"],
        "warnings": body["warnings"],
    }


def show_answer(answer: Answer, receipt: str, decimals: Decimals = None) -> None:
    """Print released numbers with their intervals, and the receipt."""
    show_table(answer.columns, answer.shown(decimals), most=MOST_ROWS)
    record = answer.record
    together = ", all together" if record["simultaneous"] else ""
    say(
        f"± at {float(read_fraction(record['confidence'])) * 100:g} %{together} ·"
        f" {record['neighbors']}",
        style="dim",
    )
    say(receipt)


def answer_as_json(answer: Answer) -> dict[str, Any]:
    left = str(answer.remaining)
    return {
        "columns": columns_json(answer),
        "left": left,
        "entry": answer.entry,
        "record": answer.full_record,
    }


def show_ledger(ledger: Ledger, studies: Iterable[str], analyst: str | None = None) -> None:
    """Print what was spent and on what; with `analyst`, only their share and their questions."""
    for study in studies:
        total, spent, left = (
            of(study, analyst=analyst) for of in (ledger.total, ledger.spent, ledger.remaining)
        )
        owner = study if analyst is None else f"{analyst} in {study}"
        say(
            f"{owner}: ε {left_shown(spent)} of {left_shown(total)} spent, {left_shown(left)} left",
            style="bold",
        )
        rows = []
        for entry in _entries(ledger, study, analyst):
            cost = shown(in_epsilon(entry.amount)) if entry.amount or entry.kind == "repeat" else ""
            number, analyst_name = f"{entry.number:,}", entry.analyst or ""
            rows.append(
                [number, entry.time[:19], entry.kind, analyst_name, cost, entry_text(entry)]
            )
        show_table(["entry", "time", "kind", "analyst", "ε", "question"], rows, right=(0, 4), cut=5)


def ledger_as_json(
    ledger: Ledger, studies: Iterable[str], analyst: str | None = None
) -> dict[str, Any]:
    """The same with exact numbers; only the export has stored answers and versions of the data."""
    # the hashes cover the version of the data: someone who knows all rows but one could test
    # guesses of the last
    hidden = ("answer", "data_version", "question", "nonce", "before", "hash")
    amounts = {"total": ledger.total, "spent": ledger.spent, "left": ledger.remaining}
    return {
        study: {
            **{name: str(amount(study, analyst=analyst)) for name, amount in amounts.items()},
            "entries": [
                {name: value for name, value in asdict(entry).items() if name not in hidden}
                for entry in _entries(ledger, study, analyst)
            ],
        }
        for study in studies
    }


def _entries(ledger: Ledger, study: str, analyst: str | None) -> list[Entry]:
    """All entries, or those of an analyst, where a repeat carries the question that it repeats."""
    return (
        ledger.entries(study)
        if analyst is None
        else ledger.recent(study, last=_ALL, analyst=analyst)
    )


def rich_table(
    cells: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    cut: int | None = None,
    padding: PaddingDimensions = (0, 1),
) -> Table:
    """A table of rich whose first row has the headings; the columns `right` are right-aligned.

    Cells that are too wide are folded; in the column `cut` they are cut off.
    """
    table = Table(box=None, header_style="bold", pad_edge=False, padding=padding)
    headings, *rows = [[Text(cell) for cell in row] for row in cells]
    for index, heading in enumerate(headings):
        overflow: Literal["fold", "ellipsis"] = "ellipsis" if index == cut else "fold"
        justify: Literal["right", "left"] = "right" if index in right else "left"
        table.add_column(heading, justify=justify, overflow=overflow, no_wrap=index == cut)
    for row in rows:
        table.add_row(*row)
    return table


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    cut: int | None = None,
    most: int | None = None,
) -> None:
    cells, below = shortened(headings, rows, most)
    console().print(rich_table(cells, right=right, cut=cut))
    say(*below, style="dim")
