"""What `discreet init` asks on a terminal: whom to protect, the budget, and what each column is.

An answer is checked at once, and asked for again if it is wrong. For CSV, a few rows suggest the
type of a column and how its cells are written; only the proposal is shown, no cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.expression import ColumnType, Schema
from discreet.ask.siblings import budgets, siblings
from discreet.cli.check.proposals import USUAL, undecoded_lines
from discreet.cli.check.sample import Sample
from discreet.cli.init.draft import Draft, count_of, epsilon_of, read_options, unit_of, value_of
from discreet.errors import DiscreetError, InvalidParameter
from discreet.parameters import exact_chance, quote

Asker = Callable[[str, str | None, Callable[[str], Any]], Any]
"""Asks a question with a default until a function accepts the answer, and returns the function's
result.
"""

_LINES = 100_000  # lines of a file that are searched for bytes that are not UTF-8
KINDS = ("text", "number", "date")
_LEAVE = "-"
_NUMBER, _DAY = r"\s*-?\d+(?:\.\d+)?\s*", r"\s*\d{4}-\d\d-\d\d\s*"
_BOUNDS = re.compile(f"{_NUMBER}:{_NUMBER}|{_DAY}:{_DAY}", re.ASCII)
_QUESTIONS = {
    "number": "smallest and largest value, such as 0:120",
    "text": 'public list of values, such as A,B,"C, D", a file such as counties.csv, or discover',
    "date": "first and last day, such as 2026-01-01:2026-12-31",
    "truth": "yes if questions may use it",
}


def interview(draft: Draft, schema: Schema, sample: Sample, ask: Asker, folder: Path) -> None:
    """Ask for everything that the options have left open."""
    if draft.unit is None:
        whom = (
            "Whom do you protect? Name the column that identifies a person, or row if each row is"
            " one person"
        )
        draft.unit = ask(whom, "row", lambda text: unit_of(text, schema))
    if draft.unit != "row" and draft.max_rows is None:
        draft.max_rows = ask(
            f"Most rows of one {draft.unit} to use?", None, partial(count_of, "max-rows")
        )
    if draft.neighbors is None:
        whose = "rows" if draft.unit == "row" else f"values of {draft.unit}"
        public = ask(f"Is the number of {whose} public?", "yes", _yes)
        draft.neighbors = "change-one" if public else "add-remove"
    if draft.epsilon is None:
        draft.epsilon = ask("Total ε for this data, forever?", "1", epsilon_of)
    for name, column in schema.items():
        if name != draft.unit and name not in draft.columns:
            options = _column(name, column, sample, ask, folder)
            if options is not None:
                draft.columns[name] = options
    if draft.discovers and draft.delta is None:
        draft.delta = ask(
            "δ, the probability that the discovery of keys may fail, such as 1e-6?", None, _delta
        )


def take_encoding(draft: Draft, source: str, ask: Asker | None) -> list[str]:
    """Use the usual encoding for a file that is not UTF-8, or propose it if nobody can be asked."""
    if draft.encoding is not None or not undecoded_lines(source, _LINES):
        return []
    problem = "Some cells are not UTF-8 and are missing."
    if ask is None:
        return [f"{problem} --encoding {USUAL} may read them."]
    if ask(f"{problem} Is its encoding {USUAL}?", "yes", _yes):
        draft.encoding = USUAL
    return []


def take_proposals(draft: Draft, proposals: Mapping[str, Mapping[str, str]], ask: Asker) -> None:
    """Ask for each column whether to read it as proposed."""
    for name, options in proposals.items():
        if ask(f"{name}: {lines(options)} would read more cells. Accept?", "yes", _yes):
            draft.columns[name].update(options)


def lines(options: Mapping[str, str]) -> str:
    """Options as study.toml writes them."""
    return ", ".join(f"{option} = {value}" for option, value in options.items())


def warnings(draft: Draft, sample: Sample) -> list[str]:
    """A warning for each column with keys that identifies people."""
    named = [
        name
        for name, options in draft.columns.items()
        if "keys" in options and sample.names_people(name)
    ]
    return [
        f"warning: nearly every row has a different {name}, so it is not a column to group by"
        for name in named
    ]


def _column(
    name: str, column: ColumnType, sample: Sample, ask: Asker, folder: Path
) -> dict[str, str] | None:
    """The custodian's answers about a column, as options in TOML; None leaves the column out."""
    kind: Any = column.kind
    if kind == "text":
        guess, alone = sample.kind(name), ""
        if guess == "text" and sample.names_people(name):
            guess = _LEAVE
            alone = "nearly every row has a different value, so it is not a column to group by. "
        question = (
            f"{name}: {alone}{'Is' if alone else 'is'} it text, number or date? ({_LEAVE} to leave"
            " it out)"
        )
        kind = ask(question, guess, partial(_kind, folder))
        if kind is None or isinstance(kind, dict):
            return kind
    options = ask(
        f"{name}: {_QUESTIONS[kind]} ({_LEAVE} to leave it out)",
        _LEAVE,
        partial(_options, kind, folder),
    )
    if options is not None and kind != column.kind and "bounds" not in options:
        return {"type": f'"{kind}"', **options}
    return options  # type: ignore[no-any-return]


def _kind(folder: Path, text: str) -> str | dict[str, str] | None:
    """The type of a column of text, or its bounds or keys if they are given at once; None leaves it
    out.
    """
    if text == _LEAVE:
        return None
    if text.lower() in KINDS:
        return text.lower()
    if not _BOUNDS.fullmatch(text) and not {",", "."} & set(text) and text != "discover":
        raise InvalidParameter(
            f"the answer must be text, number, date or {_LEAVE}, got {quote(text)}"
        )
    return _options("text", folder, text)


def _options(kind: str, folder: Path, text: str) -> dict[str, str] | None:
    """An answer as options, after the policy's own checks; None leaves the column out."""
    if text == _LEAVE:
        return None
    if kind == "truth":
        return {} if _yes(text) else None
    is_range = _BOUNDS.fullmatch(text) or (kind != "text" and ":" in text) or kind == "date"
    option = "bounds" if is_range else "keys"
    options = {option: value_of(option, text, folder)}
    declared = Declared(**read_options(options), folder=folder)
    if kind == "number" and declared.keys is not None:
        # refuses keys that are not numbers while the question can be asked again
        declared.keys.as_kind("number")
    return options


def _yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise InvalidParameter(f"the answer must be yes or no, got {quote(text)}")
    return text.lower() in ("y", "yes")


def _delta(text: str) -> str:
    exact_chance("delta", text)
    return text


def refuse_second_budget(policy: Path, source: str, *, agreed: bool, ask: Asker | None) -> None:
    """Refuse a second study of the same data in the folder, unless the custodian agrees."""
    others = siblings(policy, source)
    if not others or agreed:
        return
    beside = budgets(policy.stem, others)
    if ask is None or not ask(f"{beside} Do you want another budget?", "no", _yes):
        raise InvalidParameter(
            f"{beside} If you want this, add --another-budget; otherwise use the existing study"
        )


def asker(read: Callable[[str, str | None], str], complain: Callable[[str], None]) -> Asker:
    """An asker that explains what is wrong with an answer, and asks again."""

    def ask(question: str, default: str | None, take: Callable[[str], Any]) -> Any:
        while True:
            try:
                return take(read(question, default).strip())
            except DiscreetError as error:
                complain(str(error))

    return ask
