"""A first study.toml, from the schema and the custodian's answers, with all other columns as
comments to fill in.

Names and types of columns are read, and some rows of CSV. On a terminal, `interview` asks for what
the options leave open. The total ε, the rows of a unit and the public facts of columns have no
default, since each is a promise.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.expression import Schema
from discreet.ask.policy import Policy, toml
from discreet.ask.scope import check_schema
from discreet.engines.sniffing import as_cells
from discreet.errors import InvalidParameter
from discreet.outside import Unreadable, read_toml
from discreet.parameters import (
    did_you_mean,
    exact_chance,
    exact_count,
    exact_epsilon,
    exact_neighbors,
    quote,
)
from discreet.records import today
from discreet.show.publication import many

_PUBLIC_FILE = re.compile(r"[^,]*\.(csv|tsv|txt|parquet)(#[^,]*)?", re.IGNORECASE)
# A key in a line of keys: in quotes, where "" is a quote, or up to the next comma.
_FIELD = re.compile(r'\s*+(?:"((?:[^"]|"")*)"|((?!")[^,]*?))\s*(,|$)')
_RANGE = re.compile(r"-?\d+\.\.-?\d+", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,15}\.\d{1,15}", re.ASCII)
_SHOWN_KEYS = 5
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_EXAMPLES = {
    "number": {"bounds": "[lower, upper]"},
    "text": {"keys": '["…", "…"]'},
    "date": {"bounds": "[2000-01-01, 2030-12-31]"},
    "truth": {},
}


@dataclass(slots=True, kw_only=True)
class Draft:
    """The answers of the custodian so far; columns as options in TOML."""

    source: str
    chosen: str = ""
    """What chooses the rows of the source, as in `Engine.chosen`."""
    grows: bool = False
    unit: str | None = None
    max_rows: str | None = None
    max_groups: str | None = None
    neighbors: str | None = None
    epsilon: str | None = None
    delta: str | None = None
    table: str | None = None
    encoding: str | None = None
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)  # guessed formats of dates, by column
    # guessed types of text columns, for the comments to fill in
    guesses: dict[str, str] = field(default_factory=dict)

    @property
    def discovers(self) -> bool:
        """Whether a column leaves its keys to a discovery, which needs a δ."""
        return any(options.get("keys") == '"discover"' for options in self.columns.values())

    def declare(self, option: str, texts: Iterable[str], schema: Schema, folder: Path) -> None:
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or not value:
                raise InvalidParameter(f"--{option} must be column=…, got {quote(text)}")
            self.columns.setdefault(_column(name, schema), {})[option] = value_of(
                option, value, folder
            )


def description(source: str, schema: Schema) -> str:
    """The columns of the data, in a sentence.

    >>> from discreet.ask.expression import ColumnType
    >>> description("people.parquet", {"age": ColumnType("number", False, "DOUBLE")})
    'people.parquet: 1 column (age number). No values were read.'
    """
    kinds = {name: "integer" if column.whole else column.kind for name, column in schema.items()}
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    reading = (
        "No values were read."
        if _typed(schema)
        else "Types were guessed from some rows; no values were kept."
    )
    return f"{source}: {many(len(schema), 'column')} ({columns}). {reading}"


def policy_text(draft: Draft, schema: Schema, folder: Path) -> str:
    """The text of the policy, which `Policy.load` reads, after all of its checks."""
    missing = [] if draft.epsilon is not None else ["--epsilon, the total for this data, forever"]
    if draft.unit not in (None, "row") and draft.max_rows is None:
        missing.append(f"--max-rows, the most rows of one {draft.unit} to use")
    if not draft.columns:
        names = ", ".join(name for name in schema if name != draft.unit)
        missing.append(f"--bounds, --keys or --bins for at least one of the columns {names}")
    if draft.discovers and draft.delta is None:
        missing.append("--delta, the probability that a discovery may fail, such as 1e-6")
    if missing:
        raise InvalidParameter(f"a study needs {'; and '.join(missing)}")
    text = _text(draft, schema)
    try:
        options = read_toml(text)
    except Unreadable:
        raise InvalidParameter(
            "bounds must be numbers such as 0:120, or days such as 2000-01-01:2030-12-31"
        ) from None
    check_schema(Policy(**options, folder=folder), as_cells(schema))
    return text


def key_counts(text: str, folder: Path) -> list[str]:
    """The number and the first few keys of each column, which show a list that is split wrongly."""
    lines = []
    for name, declared in Policy(**read_toml(text), folder=folder).columns.items():
        if declared.keys is not None:
            count, first = len(declared.keys), ", ".join(map(toml, declared.keys[:_SHOWN_KEYS]))
            lines.append(f"{name}: {many(count, 'key')}: {first}{', …' * (count > _SHOWN_KEYS)}")
    return lines


def unit_of(text: str, schema: Schema) -> str:
    """The unit with its column spelled as in the data; "row" means each row."""
    return text if text == "row" else _column(text, schema)


def may_grow(source: str) -> bool:
    """Whether the source usually gets new rows: a table of a server, a folder, a glob.

    >>> (
    ...     may_grow("postgresql://h/d#people"),
    ...     may_grow("spark:people"),
    ...     may_grow("data/*.csv"),
    ...     may_grow("people.csv"),
    ... )
    (True, True, True, False)
    """
    return (
        "://" in source
        or source.startswith("spark:")
        or Path(source).is_dir()
        or not {*"*?["}.isdisjoint(source)
    )


def relative(path: str, folder: Path) -> str:
    """A path relative to the folder of the policy; an address or a SELECT is unchanged."""
    if "://" in path or (" " in path and not Path(path).exists()):
        return path
    return path if Path(path).is_absolute() else Path(os.path.relpath(path, folder)).as_posix()


def _text(draft: Draft, schema: Schema) -> str:
    unit = draft.unit or "row"
    neighbors = exact_neighbors(draft.neighbors or "change-one")
    whose = _quoted(unit)[1:-1]  # a name may contain a line break, a comment must not
    rows = "rows" if unit == "row" else f"values of {whose}"
    lines = [
        ("source", _quoted(draft.source), ""),
        (
            "unit",
            _quoted(unit),
            "whom we protect: " + ("each row" if unit == "row" else f"all rows of one {whose}"),
        ),
    ]
    if draft.table is not None:
        lines.insert(1, ("table", _quoted(draft.table), "name of the table in questions"))
    if draft.encoding is not None:
        lines.insert(1, ("encoding", _quoted(draft.encoding), "encoding of the file"))
    if draft.max_rows is not None:
        lines.append(
            ("max_rows", count_of("max-rows", draft.max_rows), f"most rows of one {whose} to use")
        )
    if draft.max_groups is not None:
        lines.append(
            (
                "max_groups",
                count_of("max-groups", draft.max_groups),
                f"most groups to count one {whose} in",
            )
        )
    replaced = neighbors == "change-one"
    if replaced and draft.chosen:
        promise = f"{rows} are replaced; their number is private: {draft.chosen}"
    else:
        promise = f"the number of {rows} is {'public' if replaced else 'private'}"
    lines.append(("neighbors", _quoted(neighbors), promise))
    if replaced and draft.chosen:
        lines.append(
            ("# size", '"public"', f"a promise: the number of {rows} is public all the same")
        )
    lines.append(
        ("epsilon", _quoted(epsilon_of(str(draft.epsilon))), "total for this data, forever")
    )
    if draft.delta is not None:
        exact_chance("delta", draft.delta)
        lines.append(
            ("delta", _quoted(draft.delta), "probability that a discovery of keys may fail")
        )
    if draft.grows:
        lines.append(
            ("# version", f'"{today()[:7]}"', "the data's state: a repeat under the same is free")
        )
    width = max(len(value) for _, value, _ in lines)
    text = [
        f"{name:<10} = {value:<{width}}  # {why}" if why else f"{name:<10} = {value}"
        for name, value, why in lines
    ]
    text += ["", "# Public facts; nothing here is taken from the data.", "[columns]"]
    if not _typed(schema):
        text.append("# Types and formats of text were guessed from some rows: please check them.")
    text += [
        _line(name, {**_reading(draft, schema, name), **options})
        for name, options in draft.columns.items()
    ]
    others = {
        name: column
        for name, column in schema.items()
        if name not in draft.columns and name != draft.unit
    }
    if others:
        text.append("# Not declared, so no question can use them:")
    for name, column in others.items():
        kind = draft.guesses.get(name, column.kind)
        reading = _reading(draft, schema, name) if kind == column.kind else {"type": _quoted(kind)}
        text.append(f"# {_line(name, {**reading, **_EXAMPLES[kind]})}")
    return "\n".join(text) + "\n"


def _line(name: str, options: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{option} = {value}" for option, value in options.items())
    key = name if _BARE.fullmatch(name) else _quoted(name)
    return f"{key} = {{ {pairs} }}" if pairs else f"{key} = {{}}"


def _reading(draft: Draft, schema: Schema, name: str) -> dict[str, str]:
    """The type of a text column as options: the guess, if its bounds and keys are of its kind."""
    column, options = schema[name], draft.columns.get(name, {})
    if column.typed or "type" in options:
        return {}
    others = {option: value for option, value in options.items() if option not in ("keys", "other")}
    kind = Declared(**read_options(others)).kind
    if kind is not None and kind != column.kind:
        return {"type": _quoted(kind)}
    formats = {"format": _quoted(draft.formats[name])} if name in draft.formats else {}
    return {"type": _quoted("integer" if column.whole else column.kind), **formats}


def _typed(schema: Schema) -> bool:
    return all(column.typed for column in schema.values())


def read_options(options: Mapping[str, str]) -> dict[str, Any]:
    return read_toml("\n".join(f"{option} = {value}" for option, value in options.items()))


def value_of(option: str, text: str, folder: Path) -> str:
    if option == "missing":
        return text if _DECIMAL.fullmatch(text) else _scalar(text)
    if option == "bins":
        return f"[{', '.join(map(_scalar, text.split(',')))}]"
    if option == "bounds":
        lower, colon, upper = text.partition(":")
        if not colon:
            raise InvalidParameter(f"bounds must be lower:upper, such as 0:120, got {quote(text)}")
        return f"[{_scalar(lower)}, {_scalar(upper)}]"
    if option == "other" or text == "discover" or _RANGE.fullmatch(text):
        return _quoted(text)
    if _PUBLIC_FILE.fullmatch(text):
        return _quoted(relative(text, folder))
    return f"[{', '.join(map(_quoted, _listed(text)))}]"


def _listed(text: str) -> list[str]:
    """The keys in a line of CSV.

    >>> _listed('Cardiology, "Ear, Nose & Throat"')
    ['Cardiology', 'Ear, Nose & Throat']
    """
    keys, start, comma = [], 0, ","
    while comma:
        key = _FIELD.match(text, start)
        if key is None:
            raise InvalidParameter(
                f'a key in quotes must end before the next comma, as in A,"B, C", got {quote(text)}'
            )
        keys.append(key[2] if key[1] is None else key[1].replace('""', '"'))
        start, comma = key.end(), key[3]
    return keys


def _scalar(text: str) -> str:
    """A number or a date as TOML; anything else as text, which the policy reads or refuses."""
    text = text.strip()
    return (
        text
        if _DATE.fullmatch(text) or re.fullmatch(r"-?(0|[1-9]\d{0,17})", text, re.ASCII)
        else _quoted(text)
    )


def _column(name: str, schema: Schema) -> str:
    """The column of that name; case is ignored where the name is unambiguous."""
    alike = [column for column in schema if column.lower() == name.lower()]
    if name not in schema and len(alike) != 1:
        hint = f"did you mean {' or '.join(alike)}?" if alike else did_you_mean(name, schema)
        subject = f"{hint} It" if hint else "it"
        raise InvalidParameter(
            f"the data must have the column, got {quote(name)}; {subject} has {', '.join(schema)}"
        )
    return name if name in schema else alike[0]


def count_of(name: str, text: str) -> str:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise InvalidParameter(f"--{name} must be a whole number of at least 1, got {quote(text)}")
    return str(exact_count(name, int(text)))


def epsilon_of(text: str) -> str:
    exact_epsilon(text)
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
