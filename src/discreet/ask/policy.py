"""The promise of a custodian: whose rows they are, which facts are public, and the total ε.

    source      where the data is: files, a folder, a glob, a database, a SELECT, or an object in
                Python
    table       the name of the data in questions; by default the name of the file or table, or
                "data"
    delimiter   the separator of CSV cells; by default it is guessed from the first line
    encoding    of CSV: "utf-8" (the default), "latin-1" or "windows-1252"
    unit        whom we protect: "row", or the column that identifies the unit
    max_rows    the most rows of one unit that count (required if the unit is a column)
    max_groups  the most groups in which one unit counts; by default max_rows
    neighbors   "change-one" (the number of units is public) or "add-remove"
    size        "public": the number of units is public although it depends on their values, as in a
                view
    epsilon     the total for this data, for ever; delta is needed only to discover keys
    version     a name for the state of the data; by default a hash of its content
    time_limit  the most seconds that a question may take at the source; by default 600
    ledger      where ε is counted, a file or postgresql://…, and its anchor; by default beside the
                policy
    study       the name of this study in the ledger; by default the name of the file, if the ledger
                has no other study
    columns     name → bounds, keys, bins, precision, missing, other, type … (see `ask.declared`)

A policy is read from TOML or created in Python, with the same checks; each error names the key and
what to write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, fields
from datetime import datetime
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from discreet import parameters
from discreet.ask.declared import Declared, declaration_hint, errors_at, refuse_tangled
from discreet.ask.keys.key import Key
from discreet.ask.normal import decimal
from discreet.ask.reading import exact_mark
from discreet.errors import InvalidParameter
from discreet.outside import read_toml
from discreet.parameters import Epsilon, Neighbors, Number, did_you_mean, quote

_NEEDED = {
    "source": 'source = "people.parquet"',
    "epsilon": 'epsilon = "1"',
    "columns": "[columns] and under it age = { bounds = [0, 120] }",
}
_COLUMN_KEYS = (
    *("type", "format", "decimal", "thousands", "trim", "casefold", "missing_values", "map"),
    *("bounds", "keys", "parent", "bins", "precision", "missing", "other"),
)

_ENDINGS = (
    ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".orc",
    ".gz", ".zst", ".db", ".sqlite", ".sqlite3", ".duckdb",
)  # fmt: skip

TIME_LIMIT = 600
"""The most seconds that a question may take at the source, unless the policy says otherwise."""

LARGEST_FILE = 10**7
"""The most bytes of a policy; millions of keys belong in a separate file."""


class InMemory:
    """Data of the custodian in memory.

    Its repr shows its type and its number of columns, never a row.
    """

    __slots__ = ("_data",)

    def __init__(self, data: object) -> None:
        # in a closure, so that neither `inspect` nor a debugger's list of attributes prints it
        self._data: Callable[[], object] = lambda: data

    def opened(self) -> object:
        return self._data()

    def __repr__(self) -> str:
        data = self._data()
        kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
        try:
            return f"{kind} of {len(data.columns)} columns"  # type: ignore[attr-defined]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # code of the data may raise anything, with words that quote it
            return kind

    def __reduce__(self) -> str:
        raise TypeError(
            "data in memory cannot be copied or stored with its policy; write it to a file and name"
            " that"
        )


@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """The promise of a custodian about data; `load` reads it from a TOML file with the same keys.

    Parameters
    ----------
    source : path, list of paths, address, SELECT or frame
        Where the data is.
    epsilon : number or text
        The total privacy budget for this data, for ever.
    columns : dict
        The public facts about each column: {"age": {"bounds": (0, 120)}, "town": {"keys": ["Ash",
        "Elm"]}}.
    unit : text
        Whom we protect: "row", or the column that identifies the person.
    max_rows : int, optional
        The most rows of one person that count; required if the unit is a column.
    neighbors : {"change-one", "add-remove"}
        Whether the number of people is public ("change-one") or private.
    size : "public", optional
        That the number of people is public, also where it depends on their values: in a view, a
        SELECT, a text file.
    table, delimiter, encoding, max_groups, delta, version, row_security, time_limit
        See docs/studies.md.
    ledger, anchor, study, folder
        See docs/studies.md.

    Examples
    --------
    >>> policy = Policy(source="people.csv", epsilon="1", columns={"age": {"bounds": (0, 120)}})
    >>> policy.epsilon, policy.unit, policy.columns["age"].bounds
    (Fraction(1, 1), 'row', (Fraction(0, 1), Fraction(120, 1)))

    """

    source: str | tuple[str, ...] | InMemory
    table: str
    delimiter: str | None
    encoding: str | None
    unit: str
    max_rows: int | None
    max_groups: int | None
    neighbors: Neighbors
    size: Literal["public"] | None
    """Whether the number of units is promised to be public; None: only if the source says so."""
    epsilon: Fraction
    delta: Fraction | None
    columns: Mapping[str, Declared]
    version: str | None
    row_security: bool | None
    """Whether a PostgreSQL table may be filtered by row level security; None is no."""
    time_limit: Fraction | None
    """The most seconds that a question may take at the source; None is `TIME_LIMIT`."""
    ledger: str | None
    anchor: str | None
    study: str | None
    folder: Path | None
    """The folder of relative paths; None is the working directory."""

    def __init__(
        self,
        *,
        source: object,
        epsilon: Epsilon,
        columns: Mapping[str, Declared | Mapping[str, object]],
        table: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        unit: str = "row",
        max_rows: int | None = None,
        max_groups: int | None = None,
        neighbors: Neighbors = "change-one",
        size: Literal["public"] | None = None,
        delta: Number | None = None,
        version: str | None = None,
        row_security: bool | None = None,
        time_limit: Number | None = None,
        ledger: str | None = None,
        anchor: str | None = None,
        study: str | None = None,
        folder: Path | None = None,
    ) -> None:
        arguments, set_field = locals(), object.__setattr__
        set_field(self, "folder", folder)
        for name, read in _READERS.items():
            with errors_at(name):
                set_field(
                    self,
                    name,
                    (
                        None
                        if arguments[name] is None and name in _OPTIONAL
                        else read(arguments[name])
                    ),
                )
        with errors_at("source"):
            set_field(self, "source", _source(source, folder))
        if table is None:
            set_field(self, "table", table_of(self.source))
        set_field(self, "columns", MappingProxyType(_columns(columns, folder)))
        self._fits()

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a TOML file; its paths are relative to the file."""
        path = Path(path)
        with errors_at(path.name):
            options = toml_in(
                path,
                title="a policy",
                absent="`discreet init` writes one",
                keys=_KEYS,
                needed=_NEEDED,
            )
            return cls(**options, folder=path.parent)

    @cached_property
    def unit_column(self) -> str | None:
        """The column that identifies the unit, or None if each row is a unit."""
        return None if self.unit == "row" else self.unit

    @property
    def promise(self) -> dict[str, object]:
        """What ε protects: it cannot change once ε is spent.

        Bounds, keys and missing belong to each question.
        """
        return {
            name: getattr(self, name)
            for name in ("unit", "max_rows", "max_groups", "neighbors", "size")
        }

    def with_keys(self, discovered: Mapping[str, Iterable[Key]]) -> Policy:
        """The policy with discovered keys, in the columns whose keys are to be discovered."""
        columns = {
            name: (
                declared.with_keys(discovered[name])
                if declared.discover and name in discovered
                else declared
            )
            for name, declared in self.columns.items()
        }
        return self._with("columns", MappingProxyType(columns))

    @property
    def seconds(self) -> float:
        """The most seconds that a question may take at the source."""
        return float(TIME_LIMIT if self.time_limit is None else self.time_limit)

    def with_time_limit(self, time_limit: Number) -> Policy:
        """The policy with another time limit."""
        return self._with("time_limit", parameters.exact_seconds("time_limit", time_limit))

    def with_delta(self, delta: Fraction) -> Policy:
        """The policy with a δ for its discovery."""
        return self._with("delta", delta)

    def _with(self, name: str, value: object) -> Policy:
        policy = copy(self)
        object.__setattr__(policy, name, value)
        return policy

    def __repr__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("source", "ledger"):
            # an address may hold a password
            if isinstance(shown[name], str) and "://" in shown[name]:
                shown[name] = shown[name].partition("://")[0] + "://…"
        given = (f"{name}={value!r}" for name, value in shown.items() if value is not None)
        return f"Policy({', '.join(given)})"

    def to_toml(self) -> str:
        """The policy as TOML that `load` reads."""
        if isinstance(self.source, InMemory):
            raise InvalidParameter(
                "source: only a path or address can be written to a file; name the data by its path"
            )
        pairs: dict[str, object] = {name: getattr(self, name) for name in _KEYS[:-1]}
        pairs["table"] = None if self.table == table_of(self.source) else self.table
        if isinstance(self.source, str):
            pairs["source"] = self._in_folder(self.source)
        else:
            pairs["source"] = tuple(map(self._in_folder, self.source))
        lines = [f"{name} = {toml(value)}" for name, value in pairs.items() if value is not None]
        lines += ["", "[columns]"]
        lines += [
            f"{json.dumps(name)} = {declared_toml(declared)}"
            for name, declared in self.columns.items()
        ]
        return "\n".join(lines) + "\n"

    def _in_folder(self, path: str) -> str:
        """A path as it is written in the file of the policy."""
        is_in = self.folder is not None and Path(path).is_relative_to(self.folder)
        return str(Path(path).relative_to(self.folder)) if is_in and self.folder else path

    def _fits(self) -> None:
        if self.row_security is not None and not str(self.source).startswith(
            ("postgresql://", "postgres://")
        ):
            raise InvalidParameter("row_security: only a source on PostgreSQL has it; leave it out")
        if self.size is not None and self.neighbors != "change-one":
            raise InvalidParameter(
                "size: under add-remove the number of units is private; leave it out, or choose"
                " change-one"
            )
        if self.unit_column is None:
            if self.max_rows in (None, 1) and self.max_groups in (None, 1):
                return
            fault = (
                "max_rows: each row is a unit; leave it out, or write unit = the column that"
                " identifies the unit"
            )
        elif self.max_rows is None:
            example = f"max_rows{' = ' if self.folder else '='}1 or more"
            fault = (
                f"max_rows: it must say how many rows of one {self.unit} may count; write {example}"
            )
        elif self.max_groups is not None and self.max_groups > self.max_rows:
            fault = (
                f"max_groups: it must not exceed max_rows, got {self.max_groups} and"
                f" {self.max_rows}; leave it out"
            )
        elif self.columns.get(self.unit, Declared()) != Declared():
            fault = (
                f"columns.{self.unit}: the column of the unit cannot be asked about; leave it out"
                " of columns"
            )
        else:
            return
        raise InvalidParameter(fault)


def toml_in(
    path: Path, *, title: str, absent: str, keys: tuple[str, ...], needed: Mapping[str, str]
) -> dict[str, Any]:
    """The table in a TOML file; unknown keys, and missing ones that are needed, are refused."""
    try:
        if path.exists() and not path.is_file():
            raise InvalidParameter(f"{title} must be a plain file")
        if path.stat().st_size > LARGEST_FILE:
            raise InvalidParameter(
                f"{title} must be at most 10 MB; put long lists of keys into a separate file"
            )
        table = read_toml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InvalidParameter(f"there is no such file; {absent}") from None
    except OSError as error:
        raise InvalidParameter(f"the file cannot be read: {error.strerror}") from None
    except UnicodeError as error:
        raise InvalidParameter(f"the file must be TOML: {error}") from None
    refuse_unknown(table, keys, "", title)
    for key, example in needed.items():
        if key not in table:
            raise InvalidParameter(f"{key} is missing; write {example}")
    return table


def refuse_unknown(
    table: Mapping[str, object], keys: tuple[str, ...], within: str, title: str = "a policy"
) -> None:
    for key in table:
        if key not in keys:
            advice = did_you_mean(str(key), keys) or f"the keys are {', '.join(keys)}"
            raise InvalidParameter(f"{within}{str(key)[:60]} is not a key of {title}; {advice}")


def _columns(columns: object, folder: Path | None) -> dict[str, Declared]:
    if not isinstance(columns, Mapping) or not columns:
        example = _NEEDED["columns"] if folder else 'columns={"age": {"bounds": (0, 120)}}'
        raise InvalidParameter(f"columns: it must name at least one column; write {example}")
    declared = {}
    for name, options in columns.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidParameter(f"columns: a name must be a text, got {quote(name)}")
        if not isinstance(options, Declared | Mapping):
            raise InvalidParameter(
                f"columns.{name}: {declaration_hint(name, options, folder)}, got {quote(options)}"
            )
        if isinstance(options, Mapping):
            refuse_unknown(options, _COLUMN_KEYS, f"columns.{name}.")
            try:
                options = Declared(**options, name=name, folder=folder)  # noqa: PLW2901 - as read
            except InvalidParameter as error:
                words = str(error)
                if folder:  # TOML
                    words = words.replace("(lower, upper)", "[lower, upper]").replace(
                        "(0, 120)", "[0, 120]"
                    )
                raise InvalidParameter(f"columns.{name}.{words}") from None
        declared[name] = options
    refuse_tangled(declared)
    return declared


def _source(source: object, folder: Path | None) -> str | tuple[str, ...] | InMemory:
    """The source; a relative path becomes relative to the working directory.

    A list is read once.
    """
    kind = type(source)  # `isinstance` would run code of the data
    if source is None or issubclass(kind, bool | int | float | Mapping):
        raise InvalidParameter(f'it must be a path such as "people.parquet", got {quote(source)}')
    for listing in (list, tuple):
        if issubclass(kind, listing):
            return _files(tuple(listing.__iter__(source)), folder)  # type: ignore[arg-type]
    if not issubclass(kind, str | Path):
        return source if kind is InMemory else InMemory(source)  # type: ignore[return-value] # it is an InMemory
    text = exact_text(_NEEDED["source"], _path_text(source))
    return text if folder is None or is_no_path(text) else str(folder / text)


def _files(items: tuple[object, ...], folder: Path | None) -> tuple[str, ...]:
    """The paths of a source that is a list; other items may be data, and are not quoted."""
    if not items or not all(issubclass(type(item), str | Path) for item in items):
        raise InvalidParameter(
            'a list must name files, as in ["2023.parquet", "2024.parquet"]; for values, give a'
            " table, such as a frame"
        )
    paths = tuple(_source(item, folder) for item in items)
    if any(is_no_path(path) for path in paths if isinstance(path, str)):
        raise InvalidParameter(
            "a list must name files on this machine, and an address or a SELECT is alone"
        )
    return paths  # type: ignore[return-value] # of texts and paths they are texts


def _path_text(path: object) -> str:
    """The text of a str or Path, without code of a subclass; a Path that fails is refused."""
    try:
        return str.__str__(path if issubclass(type(path), str) else str(path))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: S110 - as in `InMemory`; no `__context__` may hold its error
        pass
    raise InvalidParameter("its path cannot be read: its own code failed; give a text")


def table_of(source: object) -> str:
    """The name of the data in questions: the name of its table or file, or "data" if it has none.

    >>> table_of("survey/people.csv.gz"), table_of("clinic.db#visits"), table_of("SELECT 1 AS x")
    ('people', 'visits', 'data')
    """
    is_spark = isinstance(source, str) and source.startswith("spark:")
    if not isinstance(source, str) or (is_no_path(source) and "://" not in source and not is_spark):
        return "data"
    path, _, table = source.rpartition("#") if not Path(source).exists() else (source, "", "")
    if path and table:
        return table.rpartition(".")[2]
    name = Path(source.removeprefix("spark:")).name
    while Path(name).suffix.lower() in _ENDINGS:
        name = Path(name).stem
    name = name.rpartition(".")[2] if is_spark else name
    return name if name and not set(name) & set("*?[") else "data"


def is_no_path(source: str) -> bool:
    """Whether a source is an address or a SELECT."""
    return _is_address(source) or is_select(source)


def is_select(source: str) -> bool:
    """Whether a source is a SELECT."""
    words = source.replace("(", " ").split(maxsplit=1)
    return (
        not _is_address(source)
        and len(words) > 1
        and words[0].upper() in ("SELECT", "WITH", "FROM")
    )


def _is_address(source: str) -> bool:
    return "://" in source or source.startswith("spark:")


def exact_text(advice: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InvalidParameter(f"it must be a text, got {quote(value)}; {advice}")
    return value


def _address(advice: str, value: object) -> str:
    """A path or an address, which errors do not quote: it may contain a password."""
    try:
        return exact_text("", value)
    except InvalidParameter:
        raise InvalidParameter(f"it must be a text; {advice}") from None


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"it must be true or false, got {quote(value)}")
    return value


_READERS: dict[str, Callable[[object], object]] = {
    "table": partial(exact_text, 'write table = "people"'),
    "delimiter": partial(exact_mark, marks=(",", ";", "\t", "|")),
    "encoding": partial(exact_mark, marks=("utf-8", "latin-1", "windows-1252")),
    "unit": partial(
        exact_text, 'write unit = "row", or the name of the column that identifies the unit'
    ),
    "max_rows": partial(parameters.exact_count, "max_rows"),
    "max_groups": partial(parameters.exact_count, "max_groups"),
    "neighbors": parameters.exact_neighbors,
    "size": partial(exact_mark, marks=("public",)),
    "epsilon": parameters.exact_epsilon,
    "delta": partial(parameters.exact_chance, "delta"),
    "version": partial(exact_text, 'write version = "2024-06"'),
    "row_security": _truth,
    "time_limit": partial(parameters.exact_seconds, "time_limit"),
    "ledger": partial(_address, 'write ledger = "postgresql://host/database", or a file'),
    "anchor": partial(_address, 'write anchor = "people.anchor"'),
    "study": partial(exact_text, 'write study = "people-2024"'),
}
_KEYS = ("source", *_READERS, "columns")
_OPTIONAL = _READERS.keys() - {"unit", "neighbors", "epsilon"}


def toml(value: object) -> str:
    """A value in TOML; a number that is not an integer is a string, so that it stays exact."""
    match value:
        case bool() | int():
            return str(value).lower()
        case Fraction():
            return str(value) if value.denominator == 1 else f'"{decimal(value)}"'
        case datetime():
            return value.isoformat()
        case tuple():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            pairs = (f"{toml(before)} = {toml(after)}" for before, after in value.items())
            return f"{{ {', '.join(pairs)} }}"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def declared_toml(declared: Declared, **changed: object) -> str:
    """The declaration of a column in TOML, with some options changed."""
    options: dict[str, object] = {name: getattr(declared, name) for name in _COLUMN_KEYS}
    options["keys"] = declared.keys_from or (
        None if declared.keys is None else tuple(declared.keys)
    )
    options["map"] = declared.map_from or (dict(declared.map) if declared.map else None)
    options |= changed
    pairs = [f"{name} = {toml(value)}" for name, value in options.items() if value is not None]
    return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
