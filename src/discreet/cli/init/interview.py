"""What `discreet init` asks on a terminal: whom to protect, the budget, and what each column is.

An answer is checked at once, and asked for again if it is wrong. Of CSV a few rows tell what a column seems to be and
how its cells are written; that is proposed, and nothing of it is shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.siblings import budgets, siblings
from discreet.cli.check.encoding import USUAL, undecoded_lines
from discreet.cli.check.sample import Sample
from discreet.cli.init.draft import Draft, count_of, epsilon_of, read_options, unit_of, value_of
from discreet.engines.base import ColumnType, Schema
from discreet.errors import DiscreetError, InvalidParameter
from discreet.parameters import exact_chance, quote

Asker = Callable[[str, str | None, Callable[[str], Any]], Any]
"""Asks a question with a default until a function accepts the answer, and returns what that makes of it."""

_LINES = 100_000
"""Of a file, in which other bytes than UTF-8 are looked for."""
KINDS = ("text", "number", "date")
_LEAVE = "-"
_NUMBER, _DAY = r"\s*-?\d+(?:\.\d+)?\s*", r"\s*\d{4}-\d\d-\d\d\s*"
_BOUNDS = re.compile(f"{_NUMBER}:{_NUMBER}|{_DAY}:{_DAY}", re.ASCII)
_QUESTIONS = {
    "number": "the smallest and the largest value that count, such as 0:120",
    "text": 'its public values, such as A,B,"C, D", a file such as counties.csv, or discover',
    "date": "the first and the last day, such as 2026-01-01:2026-12-31",
    "truth": "yes, if it may be asked about",
}


def interview(draft: Draft, schema: Schema, sample: Sample, ask: Asker, folder: Path) -> None:
    """Ask for what the options have left open."""
    if draft.unit is None:
        whom = "Whom do you protect? The column that says who it is, or row if each row is one person"
        draft.unit = ask(whom, "row", lambda text: unit_of(text, schema))
    if draft.unit != "row" and draft.max_rows is None:
        draft.max_rows = ask(f"How many rows of one {draft.unit} may count?", None, partial(count_of, "max-rows"))
    if draft.neighbors is None:
        whose = "rows" if draft.unit == "row" else f"values of {draft.unit}"
        public = ask(f"Is the number of {whose} public?", "yes", _yes)
        draft.neighbors = "change-one" if public else "add-remove"
    if draft.epsilon is None:
        draft.epsilon = ask("The total ε for this data, for ever?", "1", epsilon_of)
    for name, column in schema.items():
        if name != draft.unit and name not in draft.columns:
            options = _column(name, column, sample, ask, folder)
            if options is not None:
                draft.columns[name] = options
    if draft.discovers and draft.delta is None:
        draft.delta = ask("δ, the chance that the discovery of keys may fail, such as 1e-6?", None, _delta)


def take_encoding(draft: Draft, source: str, ask: Asker | None) -> list[str]:
    """Take the usual encoding for a file that is no UTF-8, or propose it where nobody can be asked."""
    if draft.encoding is not None or not undecoded_lines(source, _LINES):
        return []
    said = "The file is no UTF-8, and such lines may be left out."
    if ask is None:
        return [f"{said} --encoding {USUAL} may read them."]
    if ask(f"{said} Is its encoding {USUAL}?", "yes", _yes):
        draft.encoding = USUAL
    return []


def take_proposals(draft: Draft, proposals: Mapping[str, Mapping[str, str]], ask: Asker) -> None:
    """Ask for each column whether it is read as proposed."""
    for name, options in proposals.items():
        if ask(f"{name}: {lines(options)} would read more of its cells. Take it?", "yes", _yes):
            draft.columns[name].update(options)


def lines(options: Mapping[str, str]) -> str:
    """Options as they stand in study.toml."""
    return ", ".join(f"{option} = {value}" for option, value in options.items())


def warnings(draft: Draft, sample: Sample) -> list[str]:
    """A sentence for each column with keys that names people."""
    named = [name for name, options in draft.columns.items() if "keys" in options and sample.names_people(name)]
    return [f"warning: nearly every row has a {name} of its own, so it is no column to group by" for name in named]


def _column(name: str, column: ColumnType, sample: Sample, ask: Asker, folder: Path) -> dict[str, str] | None:
    """What is said of a column, as options in TOML; None leaves it out."""
    kind: Any = column.kind
    if kind == "text":
        guess, alone = sample.kind(name), ""
        if guess == "text" and sample.names_people(name):
            guess, alone = _LEAVE, "nearly every row has one of its own, so it is no column to group by. "
        question = f"{name}: {alone}{'Is' if alone else 'is'} it text, number or date? ({_LEAVE} to leave it out)"
        kind = ask(question, guess, partial(_kind, folder))
        if kind is None or isinstance(kind, dict):
            return kind
    options = ask(f"{name}: {_QUESTIONS[kind]} ({_LEAVE} to leave it out)", _LEAVE, partial(_options, kind, folder))
    if options is not None and kind != column.kind and "bounds" not in options:
        return {"type": f'"{kind}"', **options}
    return options  # type: ignore[no-any-return]


def _kind(folder: Path, text: str) -> str | dict[str, str] | None:
    """What a column of text is; its bounds or keys, if they are said at once; None leaves it out."""
    if text == _LEAVE:
        return None
    if text.lower() in KINDS:
        return text.lower()
    if not _BOUNDS.fullmatch(text) and not {",", "."} & set(text) and text != "discover":
        raise InvalidParameter(f"it must be text, number, date or {_LEAVE}, got {quote(text)}")
    return _options("text", folder, text)


def _options(kind: str, folder: Path, text: str) -> dict[str, str] | None:
    """What was said of a column, as options, after the policy's own checks; None leaves it out."""
    if text == _LEAVE:
        return None
    if kind == "truth":
        return {} if _yes(text) else None
    is_range = _BOUNDS.fullmatch(text) or (kind != "text" and ":" in text) or kind == "date"
    option = "bounds" if is_range else "keys"
    options = {option: value_of(option, text, folder)}
    declared = Declared(**read_options(options), folder=folder)
    if kind == "number" and declared.keys is not None:
        declared.keys.as_kind("number")  # refuses what is no number while it can be said again
    return options


def _yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise InvalidParameter(f"it must be yes or no, got {quote(text)}")
    return text.lower() in ("y", "yes")


def _delta(text: str) -> str:
    exact_chance("delta", text)
    return text


def refuse_second_budget(policy: Path, source: str, *, agreed: bool, ask: Asker | None) -> None:
    """Refuse a study of data that another one in the folder has, unless the custodian agrees."""
    others = siblings(policy, source)
    if not others or agreed:
        return
    beside = budgets(policy.stem, others)
    if ask is None or not ask(f"{beside} Is another budget wanted?", "no", _yes):
        raise InvalidParameter(f"{beside} If that is meant, say --another-budget; else ask the study that there is")


def asker(read: Callable[[str, str | None], str], complain: Callable[[str], None]) -> Asker:
    """An asker that says what is wrong with an answer, and asks again."""

    def ask(question: str, default: str | None, take: Callable[[str], Any]) -> Any:
        while True:
            try:
                return take(read(question, default).strip())
            except (DiscreetError, tomllib.TOMLDecodeError) as error:
                complain(str(error))

    return ask
