"""A request for integers as one SELECT of integer aggregates, and its rows as the answer.

    source → layers of named values → facts (unit, group keys, one integer per measure) → limit → aggregates

A fact is an integer or missing: a = ⌊clamp(x)·2^(−e) + ½⌋ − lower. Sums of facts are exact. Declared keys come as a
table beside the source and are joined by value; an answer carries the index of its group, never a key.

A unit with more than max_rows rows keeps those with the smallest MD5 of "unit|group|facts|copy", where copy numbers
the rows of the unit that are equal in all of that; of more than max_groups groups, those with the smallest MD5 of
"unit|group", before its rows are counted. Both are functions of the unit's own rows and nothing else, the same on
every engine and in any order. Only units above a limit are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.ask.expression import Kind
from discreet.ask.query import Group
from discreet.engines.base import Cells, Measure, OnGrid, Present, Request, Rows, Schema, Squares, Total, Units
from discreet.engines.translate import Term, Translator, limited, unit_text, unit_value
from discreet.engines.trees import Tree, as_type, call, encodable, present, real, text, when, whole
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

SOURCE, KEYS = "discreet_rows", "discreet_keys"
"""The names that the source and the table of declared keys have in the statement."""

_ARROW: dict[Kind, str] = {"number": "double", "text": "string", "date": "timestamp[us]", "truth": "bool"}
_FEW_BINS = 32
"""Up to here a tree of comparisons finds the bin; beyond, a join with the edges does."""
_SHORT = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDEST_SQUARE = 2**42
"""Squares below 2⁸⁴ leave room for 2⁴² rows in 127 bits."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a SELECT, the table of keys that it joins, and what its rows are.

    A row has its group's `place`, its `level` (the number of the fact whose cells it counts, or `len(cells)`), the
    cell, and one integer `m…` for each measure.
    """

    sql: str
    keys: pa.Table | None
    measures: tuple[Measure, ...]
    facts: tuple[str, ...]
    """For each measure, the name of its fact."""
    cells: tuple[str, ...]
    """The facts that are counted cell by cell."""
    groups: int

    def answer(self, table: pa.Table) -> list[list[Any]]:
        """For each measure, a list over all groups of integers, or of arrays for cells; 0 where there was no row."""
        place, level = (_integers(table.column(name)).astype(np.int64) for name in ("place", "level"))
        answers: list[list[Any]] = []
        for index, (measure, fact) in enumerate(zip(self.measures, self.facts, strict=True)):
            values = _integers(table.column(f"m{index}"))
            if isinstance(measure, Cells):
                cell = table.column(fact)
                chosen = (level == self.cells.index(fact)) & cell.is_valid().to_numpy()
                counts = np.zeros((self.groups, measure.value.grid.width + 1), np.int64)
                counts[place[chosen], _integers(cell)[chosen].astype(np.int64)] = values[chosen]
                answers.append(list(counts))
            else:
                chosen = level == len(self.cells)
                answer = np.zeros(self.groups, values.dtype)
                answer[place[chosen]] = values[chosen]
                answers.append(answer.tolist())
        return answers


def statement(request: Request, schema: Schema) -> Statement:
    """The one statement that fetches what is requested."""
    return _Builder(request, schema).build()


class _Builder:
    def __init__(self, request: Request, schema: Schema) -> None:
        self.request = request
        self.schema = schema
        self.translator = Translator(schema)
        self.facts: dict[str, Tree] = {}
        self.texts: dict[str, str] = {}
        self.keys: dict[int, tuple[str, list[Any], list[int | None]]] = {}
        """For each group that is joined: the Arrow type of its keys, the keys, and their places."""
        self.asof: set[int] = set()

    def build(self) -> Statement:
        request = self.request
        names = [self._fact(measure) for measure in request.measures]
        asked = list(zip(request.measures, names, strict=True))
        cells = list(dict.fromkeys(name for measure, name in asked if isinstance(measure, Cells)))
        aggregates = [exp.alias_(_aggregate(*one, request.unit), f"m{index}") for index, one in enumerate(asked)]
        facts = self._select_facts()
        rows = [*self.facts, *(["unit"] if request.unit is not None else [])]
        if request.unit is not None and not (request.max_rows is None and request.max_groups is None):
            tree = _aggregated(self._limited(facts, self._placed(facts, rows)), ["place"], cells, aggregates)
        elif self.asof or Units() in request.measures:
            tree = _aggregated(self._placed(facts, rows), ["place"], cells, aggregates)
        else:
            # by the key's own value first, then its place: a join of groups instead of rows
            by = [f"k{index}" for index in range(len(request.groups))]
            names_of_sums = [aggregate.alias for aggregate in aggregates]
            found = self._placed(_aggregated(facts, by, cells, aggregates), ["level", *cells, *names_of_sums])
            sums = [exp.alias_(call("sum", exp.column(name)), name) for name in names_of_sums]
            tree = exp.select("place", "level", *cells, *sums).from_(found.subquery("found"))
            tree = tree.group_by("place", "level", *cells)
        return Statement(
            sql=tree.sql("duckdb"),
            keys=self._key_table(),
            measures=request.measures,
            facts=tuple(names),
            cells=tuple(cells),
            groups=math.prod(map(_size, request.groups)),
        )

    def _fact(self, measure: Measure) -> str:
        """The name of the integer that a row has for a measure; equal facts are one."""
        match measure:
            case Units():
                return ""
            case Rows(of):
                if of is None:
                    return ""
                term = self.translator.term(of)
                there = term.tree.copy() if term.kind == "truth" else present(term.tree)
                tree = when([(there, whole(1))])
            case Total(value) | Present(value) | Cells(value) | Squares(value):
                tree = self._on_grid(value)
            case _:
                assert_never(measure)
        name = self.texts.setdefault(tree.sql("duckdb"), f"f{len(self.facts)}")
        self.facts[name] = tree
        return name

    def _on_grid(self, value: OnGrid) -> Tree:
        """a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, or missing; LEAST would skip what is missing."""
        grid = value.grid
        if max(abs(grid.lower), abs(grid.upper)) > 2**52 or abs(grid.exponent) > 1000:
            raise InvalidParameter(f"a grid must have its bounds within 2⁵² steps of 2^±1000, got {grid}")
        column = self.translator.column_of_numbers(value.of)
        if column is not None and column[1] in _SHORT and grid.exponent == 0:
            here = column[0]
            there = present(here)
            steps = _clamped(here, whole(grid.lower), whole(grid.upper))
            lower = whole(grid.lower)
        else:
            # such bounds lie within the limits of numbers and such steps above them: the column itself will do
            if column is not None and column[1] == "DOUBLE" and -300 <= grid.exponent <= 100:
                here = column[0]
                there = exp.not_(call("isnan", here.copy()))
            else:
                here = self.translator.named(self.translator.term(value.of)).tree
                there = present(here)
            # clamped first: DuckDB does that faster, and scaling by a power of two is exact and keeps the order
            ends = (real(math.ldexp(float(end), grid.exponent)) for end in (grid.lower, grid.upper))
            clamped = _clamped(here, *ends)
            scaled = exp.Mul(this=clamped, expression=real(2.0**-grid.exponent)) if grid.exponent else clamped
            steps = call("floor", exp.Add(this=scaled, expression=real(0.5)))
            lower = real(float(grid.lower))
        steps = exp.Paren(this=exp.Sub(this=steps, expression=lower)) if grid.lower else steps
        # a sum of 32-bit integers is the faster one
        tree = when([(there, as_type(steps, "INTEGER" if grid.width < 2**31 else "BIGINT"))])
        return tree if value.missing is None else call("coalesce", tree, whole(value.missing - grid.lower))

    def _select_facts(self) -> exp.Select:
        """One row for each row of the source that WHERE keeps: its unit, the values of its group columns, its facts."""
        request, translator = self.request, self.translator
        keys = {f"k{index}": self._key(index, group) for index, group in enumerate(request.groups)}
        conditions = [translator.term(request.where).tree.copy()] if request.where is not None else []
        columns = {**keys, **self.facts}
        if request.unit is not None:
            columns["unit"], there = unit_value(translator.source(request.unit), self.schema[request.unit])
            conditions.append(there)
        source = exp.select(
            *(exp.alias_(exp.column(name, quoted=True), new) for name, new in translator.columns.items())
        )
        if not translator.columns:
            source = source.select(exp.alias_(whole(1), "nothing"))
        source = source.from_(SOURCE)
        for index, layer in enumerate(translator.layers):
            named = (exp.alias_(tree.copy(), name) for name, tree in layer.items())
            source = exp.select("*", *named).from_(source.subquery(f"layer{index}"))
        columns = columns or {"nothing": whole(1)}
        facts = exp.select(*(exp.alias_(tree.copy(), name) for name, tree in columns.items()))
        return facts.from_(source.subquery("source")).where(*conditions)

    def _key(self, index: int, group: Group) -> Tree:
        """A group column's value, or, for a few bins, the number of the bin."""
        term = self.translator.term(group.of)
        if group.edges is None:
            return self._declared(index, group, term)
        edges = [limited(edge) for edge in group.edges]
        if term.kind != "number" or len(edges) != len(group.keys) + 1 or edges != sorted(edges):
            raise InvalidParameter(f"the bins of {group.name!r} need numbers, and edges in order, one more than labels")
        named = self.translator.named(term).tree
        if len(group.keys) <= _FEW_BINS:
            inside = exp.Between(this=named.copy(), low=real(edges[0]), high=real(edges[-1]))
            return when([(inside, _bin(named, edges, 0, len(group.keys)))])
        # of equal edges the last opens a bin; what lies above the last edge is in none
        bins: dict[float, int | None] = {edge: position for position, edge in enumerate(edges[:-1])}
        bins[math.nextafter(edges[-1], math.inf)] = None
        self.keys[index] = "double", list(bins), list(bins.values())
        self.asof.add(index)
        return named

    def _declared(self, index: int, group: Group, term: Term) -> Tree:
        keys = [_key_value(key, term.kind, group.name) for key in group.keys]
        if len(set(keys)) < len(keys):
            raise InvalidParameter(f"the keys of {group.name!r} must differ from each other")
        column = self.translator.column_of_numbers(group.of)
        short = column is not None and column[1] in _SHORT and all(abs(key) < 2**53 for key in keys)
        if column is not None and short:  # integers are joined as such, and no fraction is one of them
            keys = [int(key) if key == int(key) else None for key in keys]
        self.keys[index] = "int64" if short else _ARROW[term.kind], keys, list(range(len(keys)))
        return column[0] if column is not None and short else term.tree

    def _placed(self, facts: exp.Select, names: Iterable[str]) -> exp.Select:
        """The facts, each with the place of its group among all groups; rows of undeclared groups go where declared."""
        place: Tree = whole(0)
        tree = exp.select(*names).from_(facts.subquery("facts"))
        for index, group in enumerate(self.request.groups):
            position: Tree = exp.column(f"k{index}", table="facts")
            if index in self.keys:
                tree = tree.join(self._join(index, group))
                position = exp.column(f"p{index}", table=f"t{index}")
            if group.other is None:
                tree = tree.where(present(position))
            else:
                position = call("coalesce", position, whole(len(group.keys)))
            place = exp.Add(
                this=exp.Mul(this=exp.Paren(this=place), expression=whole(_size(group))), expression=position
            )
        return tree.select(exp.alias_(as_type(place, "BIGINT"), "place"))

    def _join(self, index: int, group: Group) -> exp.Join:
        key, position = exp.column(f"k{index}"), exp.column(f"p{index}")
        table = exp.select(key, position).from_(KEYS).where(present(key)).subquery(f"t{index}")
        sign = exp.GTE if index in self.asof else exp.EQ
        on = sign(this=exp.column(f"k{index}", table="facts"), expression=exp.column(f"k{index}", table=f"t{index}"))
        method = {"method": "ASOF"} if index in self.asof else {}
        return exp.Join(this=table, side="LEFT" if group.other is not None else None, on=on, **method)

    def _limited(self, unplaced: exp.Select, facts: exp.Select) -> exp.Select:
        """The facts of which each unit has at most max_rows, in at most max_groups groups."""
        request = self.request
        names = ["unit", "place", *self.facts]
        several = exp.NEQ(this=call("min", exp.column("place")), expression=call("max", exp.column("place")))
        over: list[Tree] = []
        if request.max_rows is not None:
            over.append(exp.GT(this=exp.Count(this=exp.Star()), expression=whole(request.max_rows)))
        if request.max_groups is not None:
            many = exp.GT(this=exp.Count(this=exp.Star()), expression=whole(request.max_groups))
            over.append(exp.and_(many, several))
        # without max_groups the groups can wait: who has few rows in all groups has few in the declared ones
        rows = unplaced.subquery("unplaced") if request.max_groups is None else "facts"
        heavy = exp.select("unit").from_(rows).group_by("unit").having(exp.or_(*over))
        light = exp.select(*names).from_("facts").join("heavy", join_type="anti", using=["unit"])
        chosen = exp.select(*names).from_("facts").join("heavy", join_type="semi", using=["unit"])
        unit = unit_text(exp.column("unit"), self.schema[request.unit or ""])
        place = as_type(exp.column("place"), "VARCHAR")
        if request.max_groups is not None:
            rank = _over(call("dense_rank"), ["unit"], call("md5", _joined([unit, place])), exp.column("place"))
            ranked = exp.select(*names, exp.alias_(rank, "rank")).from_(chosen.subquery("heavy_rows"))
            limit = exp.LTE(this=exp.column("rank"), expression=whole(request.max_groups))
            chosen = exp.select(*names).from_(ranked.subquery("ranked")).where(limit)
        if request.max_rows is not None:
            copy = exp.alias_(_over(call("row_number"), names), "copy")
            copies = exp.select(*names, copy).from_(chosen.subquery("chosen"))
            facts_text = [call("coalesce", as_type(exp.column(name), "VARCHAR"), text("")) for name in self.facts]
            parts = [unit, place, *facts_text, as_type(exp.column("copy"), "VARCHAR")]
            rank = _over(call("row_number"), ["unit"], call("md5", _joined(parts)))
            ranked = exp.select(*names, exp.alias_(rank, "rank")).from_(copies.subquery("copies"))
            limit = exp.LTE(this=exp.column("rank"), expression=whole(request.max_rows))
            chosen = exp.select(*names).from_(ranked.subquery("ranked")).where(limit)
        both = exp.union(light, chosen, distinct=False)
        tree = exp.select("*").from_(both.subquery("kept"))
        return tree.with_("facts", as_=facts, materialized=False).with_("heavy", as_=heavy)

    def _key_table(self) -> pa.Table | None:
        """Declared keys side by side, each column with the places of its keys."""
        if not self.keys:
            return None
        import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

        longest = max(len(keys) for _, keys, _ in self.keys.values())
        columns = {}
        for index, (kind, keys, places) in self.keys.items():
            padding = [None] * (longest - len(keys))
            columns[f"k{index}"] = pa.array([*keys, *padding], pa.type_for_alias(kind))
            columns[f"p{index}"] = pa.array([*places, *padding], pa.int32())
        return pa.table(columns)


def _aggregated(facts: exp.Select, by: list[str], cells: list[str], aggregates: list[Tree]) -> exp.Select:
    """Aggregates for each group, and, where cells are counted, for each cell of a group, in one pass."""
    branches = [
        (exp.EQ(this=exp.Grouping(expressions=[exp.column(cell)]), expression=whole(0)), whole(index))
        for index, cell in enumerate(cells)
    ]
    level = when(branches, whole(len(cells))) if cells else whole(0)
    tree = exp.select(*by, exp.alias_(level, "level"), *cells, *aggregates)
    tree = tree.from_(facts.subquery("facts"))
    if not cells:
        return tree.group_by(*by) if by else tree
    sets = [[*by, cell] for cell in cells] + [by]
    tuples = [exp.Tuple(expressions=[exp.column(name) for name in names]) for names in sets]
    tree.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=tuples)]))
    return tree


def _aggregate(measure: Measure, fact: str, unit: str | None) -> Tree:
    here = exp.column(fact)
    match measure:
        case Units() if unit is not None:
            return exp.Count(this=exp.Distinct(expressions=[exp.column("unit")]))
        case Units() | Rows(None) | Cells():
            return exp.Count(this=exp.Star())
        case Rows() | Present():
            return exp.Count(this=here)
        case Total():
            return exp.Sum(this=here)
        case Squares(value):
            if value.grid.width > _WIDEST_SQUARE:
                raise InvalidParameter(f"squares need a grid of at most 2⁴² steps, got {value.grid.width}")
            wide = as_type(here, "BIGINT" if value.grid.width**2 < 2**63 else "HUGEINT")
            return exp.Sum(this=exp.Mul(this=wide, expression=wide.copy()))
        case _:
            assert_never(measure)


def _bin(here: Tree, edges: list[float], first: int, last: int) -> Tree:
    """The number of the bin in [first, last) by halving."""
    if last - first == 1:
        return whole(first)
    middle = (first + last) // 2
    below = exp.LT(this=here.copy(), expression=real(edges[middle]))
    return when([(below, _bin(here, edges, first, middle))], _bin(here, edges, middle, last))


def _key_value(key: object, kind: Kind, name: str) -> Any:
    """A declared key as the value that a row must have."""
    match kind, key:
        case "truth", bool():
            return key
        case "text", str() if encodable(key):
            return key
        case "number", Fraction():
            return limited(key)
        case "number", int() | float() if not isinstance(key, bool) and math.isfinite(key):
            return limited(Fraction(key))
        case "date", datetime():
            return key.astimezone(UTC).replace(tzinfo=None) if key.tzinfo else key
        case "date", date():
            return datetime.combine(key, time())
        case _:
            raise InvalidParameter(f"the keys of {name!r} must be of kind {kind}, got {key!r}")


def _integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column of 64-bit integers or of 128-bit ones (as decimals without a fraction), exactly; 0 where it is NULL."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    array = column.combine_chunks()
    there = array.is_valid().to_numpy(zero_copy_only=False)
    if not pa.types.is_decimal128(array.type):
        return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = np.where(there, words[:, 0], 0), np.where(there, words[:, 1], 0)
    if not high.any() and not (low < 0).any():
        return low
    return np.array([(h << 64) + (w % 2**64) for w, h in zip(low.tolist(), high.tolist(), strict=True)], object)


def _size(group: Group) -> int:
    return len(group.keys) + (group.other is not None)


def _clamped(here: Tree, lower: Tree, upper: Tree) -> Tree:
    return call("least", call("greatest", here.copy(), lower), upper)


def _joined(parts: list[Tree]) -> Tree:
    return call("concat_ws", text("|"), *(part.copy() for part in parts))


def _over(function: Tree, by: list[str], *order: Tree) -> Tree:
    ordered = exp.Order(expressions=[exp.Ordered(this=tree) for tree in order]) if order else None
    return exp.Window(this=function, partition_by=[exp.column(name) for name in by], order=ordered)
