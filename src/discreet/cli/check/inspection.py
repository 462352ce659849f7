"""How study.toml fits the data, for the custodian, before anything is spent: exact counts and
examples of cells.

This is the only module besides the mechanism that reveals exact answers. Its output is not private.
It lives in `cli`, which no server and no study can import; it opens no ledger and writes nothing.

    unreadable   cells that cannot be read as the declared number, date or truth value
    no key       values that are not among the keys, and the keys that they resemble
    outside      values beyond the bounds or bins, and at which end
    missing      cells that are missing in the source, or declared so
    limit        units with more rows than are used, and units whose names differ only by blanks or
                 capitals

Proposals are tried on the data, one option after another, and kept if they read more rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from discreet.ask import expression as row
from discreet.ask.declared import Declared
from discreet.ask.expression import (
    Column,
    Comparison,
    Constant,
    Every,
    Expression,
    Missing,
    Negation,
)
from discreet.ask.keys.column import Keys
from discreet.ask.keys.key import Key
from discreet.ask.policy import Policy, is_select, toml
from discreet.ask.query import Group
from discreet.ask.scope import Scope, check_schema, column_under
from discreet.cli.check.proposals import (
    MARKS,
    MISSING_WORDS,
    TWINS,
    USUAL,
    formats_of,
    nearest,
    undecoded_lines,
)
from discreet.engines.base import Request, Rows
from discreet.engines.choose import engine_under
from discreet.errors import EngineFailed, InvalidParameter
from discreet.release.public_size import public_size

_FREQUENT = 300  # most frequent values that proposals are based on
# most keys for which examples of other values are fetched; more would make a long statement
_MOST_KEYS = 10_000
_MOST_FORMATS = 5
_NOUNS = {"number": "numbers", "date": "dates", "truth": "truth values", "text": "text"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem with some rows of a column."""

    column: str
    problem: str  # unreadable, no key, outside, missing, limit, no unit, spelling
    rows: int
    text: str  # the problem in words, with examples
    proposal: str  # what to write into study.toml, or what happens to these rows now
    examples: Mapping[str, int] = field(default_factory=dict)
    left: int | None = None  # rows that the proposal does not help
    # examples of those rows, as the proposal reads them
    rest: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # the proposed options

    @property
    def is_open(self) -> bool:
        """Whether the custodian has to decide something."""
        return self.problem in ("unreadable", "no key", "spelling", "encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    rows: int
    units: int | None
    findings: tuple[Finding, ...]
    # a likely table, in words, and how many rows it would leave out
    left_out: tuple[str, int] | None
    facts: tuple[str, ...]  # whether the number of rows is public, and why; what filters the rows


def inspect(policy: Policy) -> Inspection:
    try:
        return _Inspector(policy).inspection()
    except EngineFailed as error:
        if (
            not isinstance(policy.source, str)
            or not is_select(policy.source)
            or "TRY_CAST" in error.sentence
        ):
            raise
        words = f"{error.sentence}; use TRY_CAST in the SELECT, which cannot fail on any row"
        raise EngineFailed(words, code=error.code) from None


class _Inspector:
    def __init__(self, policy: Policy) -> None:
        self.policy, self.engine = policy, engine_under(policy)
        self.schema = self.engine.schema()
        check_schema(policy, self.schema)
        [self.rows] = self.counts(None)

    def counts(self, *conditions: Expression | None) -> list[int]:
        """The number of rows that satisfy each condition; None is all rows."""
        fetched = self.engine.fetch(Request(tuple(map(Rows, conditions)))).reveal()
        return [int(column[0]) for column in fetched]

    def frequent(self, of: Expression, where: Expression) -> dict[str, int]:
        values: dict[str, int] = self.engine.frequent(of, where, _FREQUENT).reveal()  # type: ignore[attr-defined]
        return values

    def inspection(self) -> Inspection:
        columns = self.policy.columns.items()
        findings = [
            finding for name, declared in columns for finding in self.column(name, declared)
        ]
        left_out, units = self.left_out(findings), None
        if self.policy.encoding is None and (lines := undecoded_lines(self.policy.source)):
            text = f"{lines:,} lines have cells that are not UTF-8 and are missing"
            proposal = f'encoding = "{USUAL}"'
            findings.insert(0, Finding("source", "encoding", lines, text, proposal))
        if self.policy.unit_column is not None:
            units, of_units = self.units(self.policy.unit_column)
            findings += of_units
        facts = self.facts()
        return Inspection(
            rows=self.rows, units=units, findings=tuple(findings), left_out=left_out, facts=facts
        )

    def facts(self) -> tuple[str, ...]:
        sentences = [public_size(self.policy, self.engine).sentence]
        if self.policy.row_security:
            sentences.append(
                "row_security = true: this study sees only the rows that the policies of the"
                " database show to its role."
            )
        return tuple(sentences)

    def column(self, name: str, declared: Declared) -> Iterator[Finding]:
        if name == self.policy.unit_column:
            return
        column = column_under(name, declared, self.schema[name])
        source = Column(name, self.schema[name].kind)
        unreadable = self.unreadable(name, declared)
        absent, unread = self.counts(Missing(self.cell(name, declared)), unreadable)
        if unread:
            examples = self.frequent(source, unreadable)
            options, note, left, rest = self.readable(name, declared, examples)
            proposal = (
                _lines(options)
                if options
                else "declare another type, or map = { … } for these values"
            )
            text = (
                f"{unread:,} are not {_NOUNS[column.kind]}{_formats(declared)} ({shown(examples)})"
            )
            more: dict[str, Any] = {
                "examples": examples,
                "left": left,
                "rest": rest,
                "options": options,
            }
            yield Finding(name, "unreadable", unread, text, proposal + note, **more)
        yield from self.outside(name, column, declared)
        if declared.keys is not None and declared.bins is None:
            yield from self.no_key(name, column, declared)
        if absent:
            counts_as = (
                "they are left out"
                if declared.missing is None
                else f"they count as {_value(declared.missing)}"
            )
            yield Finding(name, "missing", absent, f"{absent:,} are missing", counts_as)

    def cell(self, name: str, declared: Declared) -> Column:
        """A cell before it is read as its type: missing if the source or a declaration says so."""
        if self.schema[name].kind != "text":
            return Column(name, self.schema[name].kind)
        return Column(
            name,
            "text",
            replace(declared.reading, whole=False, formats=(), decimal=".", thousands=""),
        )

    def unreadable(self, name: str, declared: Declared) -> Expression:
        """Whether a cell is there, but cannot be read as declared."""
        column = column_under(name, declared, self.schema[name])
        return Every((Negation(Missing(self.cell(name, declared))), Missing(column)))

    def unread(self, name: str, candidates: Sequence[Declared]) -> list[int]:
        """The number of cells that each declaration cannot read."""
        return self.counts(*(self.unreadable(name, declared) for declared in candidates))

    def readable(
        self, name: str, declared: Declared, examples: Mapping[str, int]
    ) -> tuple[dict[str, Any], str, int, dict[str, int]]:
        """Options that read more cells, a note, the number of cells that they still cannot read,
        and examples.
        """
        options, note = _missing(declared, examples), ""
        if declared.kind == "date":
            options, note = self.dates(name, declared, options, examples)
        elif declared.kind == "number":
            letters = set("".join(examples))
            choices = [
                {**options, **marks} for marks in MARKS if letters >= set(marks.values()) - {"."}
            ]
            if declared.type == "integer":
                choices += [{**choice, "type": "number"} for choice in choices]
            options = self.best(name, declared, choices)
        options = self.best(name, declared, [options, {**options, "trim": True}])
        candidate = _with(declared, options)
        [left] = self.unread(name, [candidate])
        unreadable = self.unreadable(name, candidate)
        rest = self.frequent(self.cell(name, candidate), unreadable) if left and options else {}
        return options, note, left, rest

    def best(
        self, name: str, declared: Declared, choices: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """The first choice that leaves the fewest cells unread."""
        possible = _possible(declared, choices)
        left = self.unread(name, [candidate for _, candidate in possible])
        return possible[left.index(min(left))][0]

    def dates(
        self, name: str, declared: Declared, options: dict[str, Any], examples: Mapping[str, int]
    ) -> tuple[dict[str, Any], str]:
        """Formats that read more dates, best first, and a note if the other order of day and month
        fits as well.
        """
        formats = list(declared.format or ("%Y-%m-%d",))
        [left] = self.unread(name, [_with(declared, options)])
        note = ""
        others = [other for other in formats_of(examples) if other not in formats]
        while left and others and len(formats) < _MOST_FORMATS:
            candidates = [
                _with(declared, {**options, "format": (*formats, other), "trim": True})
                for other in others
            ]
            unread = self.unread(name, candidates)
            if min(unread) >= left:
                break
            left = min(unread)
            formats.append(others[unread.index(left)])
            twin = TWINS.get(formats[-1])
            if twin in others and unread[others.index(twin)] == left:
                note = f" (or {twin}: all of these dates fit both; ask who wrote them)"
            others.remove(formats[-1])
        if len(formats) == len(declared.format or ("",)):
            return options, note
        return {"format": tuple(formats), **options}, note

    def outside(self, name: str, column: Column, declared: Declared) -> Iterator[Finding]:
        ends = declared.bounds or (declared.bins and (declared.bins[0], declared.bins[-1]))
        if not ends:
            return
        lower, upper = (Constant(end, column.kind) for end in ends)
        below, above = self.counts(Comparison("<", column, lower), Comparison(">", column, upper))
        if not below + above:
            return
        side = (
            "all below"
            if not above
            else "all above"
            if not below
            else f"{below:,} below, {above:,} above"
        )
        shown = [_value(end) for end in ends]
        used = [*shown[: below > 0], *shown[2 - (above > 0) :]]
        happens = f"they count as {' or '.join(used)}"
        if column.kind == "date" or not declared.bounds:
            happens = (
                "groups leave them out"
                if declared.other is None
                else f"groups count them as {declared.other}"
            )
        period = "–".join(shown) if column.kind == "number" else " to ".join(shown)
        text = f"{below + above:,} lie outside {period} ({side})"
        yield Finding(name, "outside", below + above, text, happens)

    def no_key(self, name: str, column: Column, declared: Declared) -> Iterator[Finding]:
        [lost] = self.lost(name, [declared])
        if not lost:
            return
        keys = _keys(declared, column)
        examples: dict[str, int] = {}
        if len(keys) <= _MOST_KEYS:
            listed = row.Membership(column, tuple(Constant(key, column.kind) for key in keys))
            examples = self.frequent(
                row.Cast(column, "text") if column.kind != "text" else column, Negation(listed)
            )
        options, left, rest = (
            self.spelled(name, column, declared) if column.kind == "text" else ({}, lost, {})
        )
        if not options:
            goes = "left out" if declared.other is None else f"counted as {declared.other}"
            text = f"{lost:,} match no key ({shown(examples)})"
            proposal = f"they are {goes}" + (
                '; other = "…" would count them' if declared.other is None else ""
            )
            yield Finding(name, "other", lost, text, proposal, examples=examples)
            return
        similar = {example: rows for example, rows in examples.items() if example not in rest}
        text = f"{lost:,} match no key, but are similar to one ({shown(similar)})"
        more: dict[str, Any] = {
            "examples": examples,
            "left": left,
            "rest": rest,
            "options": options,
        }
        yield Finding(name, "no key", lost, text, _lines(options), **more)

    def lost(self, name: str, candidates: Sequence[Declared]) -> list[int]:
        """The number of values that match no key under each declaration."""
        lost = []
        for declared in candidates:
            column = column_under(name, declared, self.schema[name])
            group = Group(name, column, _keys(declared, column), "\0other")
            [counted] = self.engine.fetch(Request((Rows(),), (group,))).reveal()
            lost.append(int(counted[-1]) - self.counts(Missing(column))[0])
        return lost

    def spelled(
        self, name: str, column: Column, declared: Declared
    ) -> tuple[dict[str, Any], int, dict[str, int]]:
        """Options under which more cells match keys, the number of cells that still match none, and
        examples.
        """
        choices: list[dict[str, Any]] = [
            {},
            {"trim": True},
            {"casefold": True},
            {"trim": True, "casefold": True},
        ]
        possible = _possible(declared, choices)
        left = self.lost(name, [candidate for _, candidate in possible])
        options, candidate = possible[left.index(min(left))]
        listed = [key for key in _keys(declared, column) if isinstance(key, str)]
        respelled = column_under(name, candidate, self.schema[name])
        membership = row.Membership(respelled, tuple(Constant(key, "text") for key in listed))
        others = self.frequent(respelled, Negation(membership)) if min(left) else {}
        missing = _missing(declared, others)
        words = missing.get("missing_values", ())
        pairs = {text: key for text, key in nearest(others, listed).items() if text not in words}
        if not missing and not pairs:
            return options, min(left), others
        options |= missing | ({"map": {**dict(declared.map or ()), **pairs}} if pairs else {})
        remaining = {
            text: count for text, count in others.items() if text not in words and text not in pairs
        }
        return options, self.lost(name, [_with(declared, options)])[0], remaining

    def units(self, unit: str) -> tuple[int, list[Finding]]:
        limit = self.policy.max_rows or 1
        counted = self.engine.rows_of_units(unit, limit).reveal()  # type: ignore[attr-defined]
        named, units, above, beyond, spelled = counted
        findings = []
        if above:
            text = f"{above:,} of {units:,} have more than {limit:,} rows"
            ignored = f"max_rows = {limit} ignores {beyond:,} rows"
            findings.append(Finding(unit, "limit", beyond, text, ignored))
        if named < self.rows:
            without = self.rows - named
            findings.append(
                Finding(
                    unit, "no unit", without, f"{without:,} rows have no value", "they are left out"
                )
            )
        if spelled < units:
            text = (
                f"{units - spelled:,} of {units:,} differ from another only by blanks or capitals"
            )
            advice = "each counts as a separate unit: clean them in a SELECT"
            findings.append(Finding(unit, "spelling", 0, text, advice))
        return units, findings

    def left_out(self, findings: Sequence[Finding]) -> tuple[str, int] | None:
        """The table by the keys and the months that lose most rows, and how many rows are in none
        of its cells.
        """
        lost: dict[str, int] = {}
        for finding in findings:
            if finding.problem in ("unreadable", "no key", "other", "missing"):
                lost[finding.column] = lost.get(finding.column, 0) + finding.rows
        scope, columns, words = Scope(self.policy, self.schema), self.policy.columns, []
        wheres: list[Expression] = []
        groups: list[Group] = []
        keyed = [
            name
            for name in lost
            if (columns[name].keys or columns[name].bins) and columns[name].other is None
        ]
        if keyed:
            name = max(keyed, key=lost.__getitem__)
            groups.append(replace(scope.group(scope.column(name, exact=True)), other=None))
            words.append(name)
        for name in sorted(lost, key=lost.__getitem__, reverse=True):
            match columns[name].bounds:
                case (datetime() as first, datetime() as last):
                    month = row.Truncated("month", scope.column(name, exact=True))
                    ends = [
                        day.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
                        for day in (first, last)
                    ]
                    signs: tuple[row.ComparisonSign, ...] = (">=", "<=")
                    constants = (Constant(end, "date") for end in ends)
                    wheres += [
                        Comparison(sign, month, end)
                        for sign, end in zip(signs, constants, strict=True)
                    ]
                    words.append(f"month of {name}")
                    break
        if not words:
            numbers = [
                name
                for name in lost
                if columns[name].kind == "number" and columns[name].missing is None
            ]
            if not numbers:
                return None
            name = max(numbers, key=lost.__getitem__)
            return f"a mean of {name}", lost[name]
        request = Request((Rows(),), tuple(groups), Every(tuple(wheres)) if wheres else None)
        [counted] = self.engine.fetch(request).reveal()
        return f"a table by {' and '.join(words)}", self.rows - sum(map(int, counted))


def _with(declared: Declared, options: Mapping[str, Any]) -> Declared:
    """The declaration with these options, without what does not affect how cells are read."""
    more: dict[str, Any] = {"parent": None, "missing": "drop", "other": None, **options}
    return replace(declared, **more)


def _possible(
    declared: Declared, choices: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any], Declared]]:
    """The choices that a policy accepts: marks must differ, and no two keys may become equal."""
    possible = []
    for choice in choices:
        with suppress(InvalidParameter):
            possible.append((choice, _with(declared, choice)))
    return possible


def _missing(declared: Declared, texts: Iterable[str]) -> dict[str, Any]:
    """The option that declares words for a missing value among these texts; empty if there are
    none.
    """
    words = [text for text in texts if text.strip().lower() in MISSING_WORDS]
    return (
        {"missing_values": tuple(dict.fromkeys([*(declared.missing_values or ()), *words]))}
        if words
        else {}
    )


def _keys(declared: Declared, column: Column) -> Keys:
    if declared.keys is None:
        raise TypeError("only columns with keys can be compared with keys")
    return declared.keys.as_kind(column.kind)


def _lines(options: Mapping[str, Any]) -> str:
    """Options as study.toml writes them."""
    order = ("type", "format", "decimal", "thousands", "trim", "casefold", "missing_values", "map")
    return ", ".join(f"{name} = {toml(options[name])}" for name in order if name in options)


def _formats(declared: Declared) -> str:
    if declared.kind != "date":
        return ""
    return f" in {' or '.join(declared.format or ('%Y-%m-%d',))}"


def shown(examples: Mapping[str, Any]) -> str:
    return ", ".join(
        toml(text if len(text) <= 30 else text[:29] + "…") for text in list(examples)[:3]
    )


def _value(value: Key | None) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return f"{float(value):,g}" if isinstance(value, Fraction) else str(value)
