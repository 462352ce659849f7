"""`discreet discover`: the keys of columns that have no public list, after a sentence that explains
δ.

Keys are released without numbers. Their row counts are a separate release (`--counts`) with its own
ε.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from discreet.ask.normal import quoted
from discreet.ask.statistics import Count
from discreet.cli import terminal
from discreet.cli.progress import NOTHING, open_study, released, spending_nothing
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.files.writer import free, write
from discreet.formats import MOST_ROWS, left_shown, shown
from discreet.parameters import exact_chance, exact_epsilon, quote
from discreet.release.answer import Answer
from discreet.release.discovery import REQUEST, Discovered, DiscoveryPlan, discovery_plan, meaning
from discreet.release.study import Study
from discreet.show.publication import many

_LIKELY = 0.5


def run(
    policy: str,
    columns: Sequence[str],
    *,
    epsilon: str,
    delta: str | None,
    counts: str | None,
    output: str | None,
    force: bool,
    only_plan: bool,
    asks: bool,
    as_json: bool,
    ledger: str | None,
    anchor: str | None,
) -> None:
    """Show the cost, then spend ε and show the keys; with `asks`, ask before ε is spent."""
    with spending_nothing():
        price = Fraction(0) if counts is None else exact_epsilon(counts)
        if output is not None and Path(output).suffix != ".csv":
            raise InvalidParameter(f"-o must end in .csv, got {quote(Path(output).name)}")
        study = open_study(policy, ledger, anchor)
        if output is not None:
            free(Path(output), force=force, kept=study.kept)
        _take_delta(study, delta)
        plan = discovery_plan(study, columns, epsilon)
        cost, left = plan.epsilon + price, study.remaining
        # too little would be left for the counts of the keys
        if plan.begun is None and cost > left:
            sentence = (
                f"epsilon must not exceed what is left, {left_shown(left)}; this needs"
                f" {left_shown(cost)}"
            )
            raise BudgetExceeded(sentence)
        if as_json and only_plan:
            terminal.say_json(_plan_json(study, plan, price))
        if not as_json:
            terminal.say(*_promise(study, plan, price))
        if only_plan:
            return
        if asks and not plan.answered and not typer.confirm("Spend it?"):
            terminal.say(NOTHING)
            return
    before = study.spent
    keys = released(
        study,
        lambda **_: study.discover(*columns, epsilon=epsilon),
        request_id=REQUEST,
        analyst=None,
    )
    answers = _counted(study, keys, price) if price else {}
    saved = (
        None
        if output is None
        else write(Path(output), _csv(keys, answers), force=force, kept=study.kept)
    )
    spent = study.spent - before
    if as_json:
        terminal.say_json(_as_json(study, keys, answers, spent, saved))
        return
    for column in keys.keys:
        table = answers.get(column)
        cells = [[str(key)] for key in keys[column]] if table is None else table.cells
        terminal.show_table([column] if table is None else table.columns, cells, most=MOST_ROWS)
    terminal.say(_receipt(study, keys, spent, saved))
    _show_next(policy, study, keys)


def _take_delta(study: Study, delta: str | None) -> None:
    """Use the δ of the command if study.toml declares none."""
    if delta is not None:
        exact, declared = exact_chance("delta", delta), study.policy.delta
        if declared not in (None, exact):
            raise InvalidParameter(
                f"--delta must be {shown(declared)}, as {study.name}.toml declares; leave it out"
            )
        study.policy = study.policy.with_delta(exact)


def _promise(study: Study, plan: DiscoveryPlan, price: Fraction) -> list[str]:
    """The cost, the meaning of δ, and how many units a key needs to be shown."""
    names = " and ".join(column.name for column in plan.columns)
    unit = study.policy.unit
    delta = shown(plan.delta)
    counted = [f"The row counts of the keys cost another ε {shown(price)}."] if price else []
    if plan.answered:
        return [
            f"The keys of {names} were discovered before: this is free while the data is the same.",
            *counted,
        ]
    always, often = plan.rule.last + 1, plan.rule.units_for(_LIKELY)
    return [
        (
            f"The keys of {names} cost ε {shown(plan.epsilon)} of the {left_shown(study.remaining)}"
            f" left, and all of δ = {delta}: a study can make only one discovery."
        ),
        *counted,
        meaning(study.policy, plan.delta),
        (
            f"A key that {always:,} {unit}s have is always shown; a key that {often:,} have, with"
            " probability 1/2 or more."
        ),
    ]


def _counted(study: Study, keys: Discovered, price: Fraction) -> dict[str, Answer]:
    """The row counts of the keys, column by column, for equal parts of ε."""
    columns = [column for column in keys.keys if keys[column]]
    answers = {}
    for column in columns:
        plan = study.by(column).ask(rows=Count()).plan(epsilon=price / len(columns))
        answers[column] = released(study, plan.release, request_id=None, analyst=None)
    return answers


def _csv(keys: Discovered, answers: dict[str, Answer]) -> str:
    """The keys below the name of their column, as a policy reads them; several columns as pairs of
    column and key.
    """
    table, several = io.StringIO(), len(keys.keys) > 1
    lines = csv.writer(table, lineterminator="\n")
    numbers = ["rows", "rows_low", "rows_high"] if answers else []
    lines.writerow(["column", "key", *numbers] if several else [*keys.keys, *numbers])
    for column in keys.keys:
        counts = (
            answers[column].rows
            if column in answers
            else [{column: (key,)} for key in keys[column]]
        )
        for row in counts:
            lines.writerow([*[column] * several, row[column][0], *row.get("rows", ())])
    return table.getvalue()


def _receipt(study: Study, keys: Discovered, spent: Fraction, saved: Path | None) -> str:
    counts = ", ".join(
        f"{many(len(names), 'key')} of {column}" for column, names in keys.keys.items()
    )
    entry = study.budget.entry(REQUEST)
    number = "" if entry is None else f" (entry {entry.number:,} of the ledger)"
    free = "" if spent else " (asked before)"
    written = "" if saved is None else f" Saved {saved.name}"
    return (
        f"{counts}. ε {shown(spent)} spent{free}, {left_shown(study.remaining)}"
        f" left{number}.{written}"
    )


def _show_next(policy: str, study: Study, keys: Discovered) -> None:
    column = next((name for name, names in keys.keys.items() if names), None)
    if column is None:
        terminal.say(f"No key has enough {study.policy.unit}s to be shown.")
        return
    name, table = (
        text if text.isidentifier() else quoted(text) for text in (column, study.policy.table)
    )
    terminal.say("The ledger stores the keys, and questions can use them:", style="dim")
    question = f"SELECT {name}, count(*) FROM {table} GROUP BY {name}"  # noqa: S608 - for a reader
    terminal.say_command(["plan", policy, question], {"epsilon": "0.1"})


def _plan_json(study: Study, plan: DiscoveryPlan, price: Fraction) -> dict[str, Any]:
    return {
        "columns": [column.name for column in plan.columns],
        "epsilon": str(plan.epsilon),
        "delta": str(plan.delta),
        "counts": str(price),
        "asked_before": plan.answered,
        "left": str(study.remaining),
        "always_from": plan.rule.last + 1,
        "half_from": plan.rule.units_for(_LIKELY),
    }


def _as_json(
    study: Study, keys: Discovered, answers: dict[str, Answer], spent: Fraction, saved: Path | None
) -> dict[str, Any]:
    return {
        "keys": {column: list(names) for column, names in keys.keys.items()},
        "counts": {
            column: terminal.answer_as_json(answer)["columns"] for column, answer in answers.items()
        },
        "epsilon": str(keys.epsilon),
        "delta": str(keys.delta),
        "spent": str(spent),
        "left": str(study.remaining),
        "saved": [] if saved is None else [str(saved)],
    }
