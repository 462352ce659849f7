"""A request for integers as one SELECT of integer aggregates, and the answer from its rows.

    source → layers of named values → facts (unit, group keys, one integer per measure)
           → limit → aggregates

Declared keys are a table that is joined with the source by value; the rows of an answer have the
index of their group, never a key.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from discreet.ask.expression import Children, Column, Schema
from discreet.ask.query import Group
from discreet.engines.base import Cells, Measure, Request, Units
from discreet.engines.integers import CellCounts
from discreet.engines.integers import column as column_of
from discreet.engines.sql import trees as sql
from discreet.engines.sql.dialect import SOURCE, Dialect, Word
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.expressions import Translator, limited
from discreet.engines.sql.keys import key_values
from discreet.engines.sql.measures import Facts
from discreet.engines.sql.trees import (
    Tree,
    alias,
    call,
    column,
    present,
    select,
    subquery,
    when,
    whole,
)
from discreet.engines.sql.units import limited_facts, stored_before, unit_value
from discreet.errors import EngineFailed, InvalidParameter
from discreet.records import number_column

_FEW_BINS, _MORE_BINS = 32, 256
"""Up to the first number of bins a tree of comparisons finds the bin, and beyond it the dialect. If
the dialect cannot, a tree does so up to the second number, five times as fast on DuckDB as the join
with the edges that does so beyond."""

_MOST_PLACES = 2**126
"""More combinations of groups, which sets of many group columns have, do not fit into the integers
of every engine, and a row whose index does not fit would fail. They are distinguished by a text
instead."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a SELECT, the table of keys that it joins, and the meaning of its rows.

    A row has the index of its group (`place`) and one integer `m…` for each measure. If cells are
    counted, it also has its `level` (the number of the fact whose cells it counts, or `len(cells)`)
    and the cell.
    """

    sql: str
    keys: pa.Table | None
    measures: tuple[Measure, ...]
    facts: tuple[str, ...]
    """The name of the fact of each measure."""
    cells: tuple[str, ...]
    """The facts that are counted cell by cell."""
    groups: int
    stored: str | None
    """The SELECT whose rows must be stored as STORED before, if the statement cannot do so itself.
    """

    def answer(self, tables: Iterable[pa.Table]) -> list[Any]:
        """For each measure, a list over all groups of integers, or of arrays for cells; 0 for
        groups without rows.

        The rows are read in parts, one at a time.
        """
        answers: list[NDArray[Any]] = [np.zeros(self.groups, np.int64) for _ in self.measures]
        counted: dict[int, list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]] = {}
        for table in tables:
            group = _integers(table.column("place")).astype(np.int64, copy=False)
            level = _integers(table.column("level")) if self.cells else None
            for index, (measure, fact) in enumerate(zip(self.measures, self.facts, strict=True)):
                values = _integers(table.column(f"m{index}"))
                if isinstance(measure, Cells):
                    # NULL for missing values, and on other levels
                    cell = _whole_column(table.column(fact))
                    chosen = (level == self.cells.index(fact)) & _valid(cell)
                    cells = _words(cell)[chosen].astype(np.int64)
                    counted.setdefault(index, []).append(
                        (group[chosen], cells, values[chosen].astype(np.int64))
                    )
                else:
                    if values.dtype == object:
                        answers[index] = answers[index].astype(object)
                    chosen = slice(None) if level is None else level == len(self.cells)
                    np.add.at(answers[index], group[chosen], values[chosen])
        return [
            (
                CellCounts.added(self.groups, measure.value.grid.width + 1, counted.get(index, []))
                if isinstance(measure, Cells)
                else column_of(answers[index])
            )
            for index, measure in enumerate(self.measures)
        ]


def statement(request: Request, schema: Schema, dialect: Dialect = DUCKDB) -> Statement:
    return _Builder(request, schema, dialect).build()


class _Builder:
    def __init__(self, request: Request, schema: Schema, dialect: Dialect) -> None:
        self.request = request
        self.schema = schema
        self.dialect = dialect
        self.translator = Translator(schema, dialect)
        self.limits = request.unit is not None and not (
            request.max_rows is None and request.max_groups is None
        )
        self.facts = Facts(self.translator)
        self.keys: dict[int, tuple[pa.Array, pa.Array]] = {}
        """For each joined group, its keys and their indices."""
        self.asof: set[int] = set()

    def build(self) -> Statement:
        request = self.request
        names = [self.facts.name(measure) for measure in request.measures]
        cells = list(
            dict.fromkeys(
                n for m, n in zip(request.measures, names, strict=True) if isinstance(m, Cells)
            )
        )
        sums = [f"m{index}" for index in range(len(names))]
        aggregates = [self.facts.aggregate(measure, request.unit) for measure in request.measures]
        aliases = [alias(tree, name) for tree, name in zip(aggregates, sums, strict=True)]
        facts = self._select_facts()
        rows = [*self.facts.trees, *(["unit"] if request.unit is not None else [])]
        stored: exp.Select | None = None
        if self.limits:
            stored = self._placed(facts, rows)
            positions = self._positions if request.sets is not None else []
            hashed = list(self.facts.trees)
            within = limited_facts(request, self.schema, self.dialect, hashed, stored, positions)
            tree = _aggregated(within, positions or ["place"], cells, aliases)
        elif self.asof or Units() in request.measures:
            by = ["place"] if request.sets is None else self._positions
            tree = _aggregated(self._placed(facts, rows), by, cells, aliases)
        else:
            # aggregated by the key's value first, then by its index: the join is of groups instead
            # of rows
            by = [f"k{index}" for index in range(len(request.groups))]
            labels = ["level", *cells] if cells else []
            tree = self._placed(_aggregated(facts, by, cells, aliases), [*labels, *sums])
            if request.sets is None and any(
                g.other is not None or _children(g) for g in request.groups
            ):
                # otherwise each key is in one group only, and there is nothing to add up
                by = ["place", *labels]
                tree = select([*by, *_totals(sums)], subquery(tree, "found"), by=by)
        if request.sets is not None:
            tree = self._crossed(tree, request.sets, sums)
        return Statement(
            sql=tree.sql(self.dialect.name, copy=False),
            keys=self._key_table(),
            measures=request.measures,
            facts=tuple(names),
            cells=tuple(cells),
            groups=sum(
                self._cells(chosen) for chosen in request.sets or [range(len(request.groups))]
            ),
            stored=stored_before(stored, self.dialect),
        )

    @property
    def _positions(self) -> list[str]:
        """The names of the columns with the index of each group's key among its keys."""
        return [f"c{index}" for index in range(len(self.request.groups))]

    def _cells(self, chosen: Iterable[int]) -> int:
        return math.prod(self.request.groups[index].size for index in chosen)

    def _crossed(
        self, tree: exp.Select, sets: tuple[tuple[int, ...], ...], sums: list[str]
    ) -> exp.Select:
        """The sums over the groups of each set, from rows of all combinations, set after set."""
        positions = {
            index: self._positions[index]
            for index in sorted({index for chosen in sets for index in chosen})
        }
        flags = [
            exp.Mul(this=call("grouping", column(name)), expression=whole(2**index))
            for index, name in positions.items()
        ]
        bits = sql.joined(exp.Add, [whole(0), *flags])
        rows = select(
            [*positions.values(), alias(bits, "bits"), *_totals(sums)],
            subquery(tree, "combinations"),
        )
        tuples = [
            exp.Tuple(expressions=[column(positions[index]) for index in chosen]) for chosen in sets
        ]
        rows.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=tuples)]))
        branches, first = [], 0
        for chosen in sets:
            missing = sum(2**index for index in positions if index not in chosen)
            start: Tree = self.dialect.cast(whole(first), "long")
            for order, index in enumerate(chosen):
                weight = whole(self._cells(chosen[order + 1 :]))
                start = exp.Add(
                    this=start, expression=exp.Mul(this=column(positions[index]), expression=weight)
                )
            branches.append((exp.EQ(this=column("bits"), expression=whole(missing)), start))
            first += self._cells(chosen)
        return select([alias(when(branches), "place"), *sums], subquery(rows, "crossed"))

    def _select_facts(self) -> exp.Select:
        """For each selected row of the source: its unit, the values of its groups, its facts."""
        request, translator = self.request, self.translator
        columns = {
            f"k{index}": self._key(index, group) for index, group in enumerate(request.groups)
        }
        columns |= self.facts.trees
        conditions = [translator.term(request.where).tree] if request.where is not None else []
        if request.unit is not None:
            source = translator.source(request.unit)
            columns["unit"], is_unit = unit_value(source, self.schema[request.unit], self.dialect)
            conditions.append(is_unit)
        named = [alias(tree, name) for name, tree in (columns or {"nothing": whole(1)}).items()]
        return select(named, subquery(translator.rows(SOURCE), "source"), where=conditions)

    def _key(self, index: int, group: Group) -> Tree:
        """The value of a group column or, for bins, the index of the bin."""
        if group.edges is None:
            return self._declared(index, group)
        term = self.translator.term(group.of)
        edges = [limited(edge) for edge in group.edges]
        if term.kind != "number" or len(edges) != len(group.keys) + 1 or edges != sorted(edges):
            raise InvalidParameter(
                f"the bins of {group.name!r} need numbers, and edges in order, one more than labels"
            )
        named = self.translator.named(term).tree
        # of equal edges the last begins a bin; values above the last edge are in no bin
        bins: dict[float, int | None] = {edge: position for position, edge in enumerate(edges[:-1])}
        bins[math.nextafter(edges[-1], math.inf)] = None
        edge_count = (
            None if len(group.keys) <= _FEW_BINS else self.dialect.edges_below(named, list(bins))
        )
        if edge_count is None and len(group.keys) <= _MORE_BINS:
            inside = sql.between(named, self.dialect.real(edges[0]), self.dialect.real(edges[-1]))
            return when([(inside, self._bin(named, edges, 0, len(group.keys)))])
        if edge_count is not None:
            self.keys[index] = (
                number_column(np.arange(1, len(bins) + 1)),
                pa.array(bins.values(), pa.int32()),
            )
            return self.dialect.cast(edge_count, "long")
        self.keys[index] = pa.array(bins, pa.float64()), pa.array(bins.values(), pa.int32())
        self.asof.add(index)
        return named

    def _bin(self, value: Tree, edges: list[float], first: int, last: int) -> Tree:
        """The index of the bin in [first, last), by binary search."""
        if last - first == 1:
            return whole(first)
        middle = (first + last) // 2
        below = exp.LT(this=value, expression=self.dialect.real(edges[middle]))
        return when(
            [(below, self._bin(value, edges, first, middle))], self._bin(value, edges, middle, last)
        )

    def _declared(self, index: int, group: Group) -> Tree:
        """The value of a group column; for a parent, the value of the child column, whose keys
        belong to its keys.
        """
        of = group.of
        keys = group.keys
        indices = number_column(np.arange(len(group.keys), dtype=np.int32))
        children = _children(group)
        if children is not None:
            of, keys, indices = children.of, children.keys, children.parents.indices(group.keys)
        term = self.translator.term(of)
        tree = term.tree
        if keys.kind != term.kind:
            raise InvalidParameter(
                f"the keys of {group.name!r} must be of kind {term.kind}, got {keys.kind}"
            )
        numbers = self.translator.column_of_numbers(of)
        values = key_values(keys, integers=numbers is not None and numbers[1] in self.dialect.short)
        if values is None:
            raise InvalidParameter(f"the keys of {group.name!r} must differ from each other")
        if numbers is not None and pa.types.is_int64(values.type):
            tree = numbers[0]
        elif term.kind == "text":
            values = self.dialect.text_keys(values)
            tree = tree if isinstance(tree, exp.Collate) else self.dialect.by_bytes(tree)
        self.keys[index] = values, indices
        return tree

    def _placed(self, facts: exp.Select, names: Sequence[str]) -> exp.Select:
        """The facts, each with the index of its group; rows of undeclared groups are dropped or
        counted as `other`.
        """
        if self.keys and len(self.translator.layers) > 1:
            facts = self.dialect.detached(
                facts, [f"k{index}" for index in range(len(self.request.groups))], names
            )
        group_index: Tree | None = None
        joins, conditions = [], []
        positions: list[Tree] = []
        combinations = self._cells(range(len(self.request.groups)))
        word: Word = "long" if combinations < 2**62 else "wide"
        for index, group in enumerate(self.request.groups):
            position: Tree = column(f"k{index}", "facts")
            if index in self.keys:
                joins.append(self._join(index, group))
                position = column(f"p{index}", f"t{index}")
            if group.other is not None:
                position = call("coalesce", position, whole(len(group.keys)))
            elif index not in self.keys or self.keys[index][1].null_count:
                conditions.append(present(position))
            positions.append(alias(self.dialect.cast(position, "long"), f"c{index}"))
            position = self.dialect.cast(position, word)
            if group_index is not None:
                offset = exp.Mul(this=sql.paren(group_index), expression=whole(group.size))
                position = exp.Add(this=offset, expression=position)
            group_index = position
        index_columns = [
            alias(
                self.dialect.cast(whole(0), "long") if group_index is None else group_index, "place"
            )
        ]
        if self.request.sets is not None:
            if combinations >= _MOST_PLACES:
                written = [self.dialect.cast(position.this, "text") for position in positions]
                index_columns = [alias(call("concat_ws", sql.quoted("|"), *written), "place")]
            index_columns = [*positions, *(index_columns if self.limits else [])]
        return select(
            [*names, *index_columns], subquery(facts, "facts"), joins=joins, where=conditions
        )

    def _join(self, index: int, group: Group) -> exp.Join:
        key, position = f"k{index}", f"p{index}"
        source = self.dialect.keys(
            index, list(self.keys).index(index), str(self.keys[index][0].type)
        )
        # NULL equals nothing; with a condition DuckDB expects a fifth of the keys, and copies these
        padding = [present(column(key))] if index in self.asof else []
        table = subquery(select([key, position], source, where=padding), f"t{index}")
        sign = exp.GTE if index in self.asof else exp.EQ
        on = sign(this=column(key, "facts"), expression=column(key, f"t{index}"))
        method = {"method": "ASOF"} if index in self.asof else {}
        return exp.Join(
            this=table, side="LEFT" if group.other is not None else None, on=on, **method
        )

    def _key_table(self) -> pa.Table | None:
        """The keys of all joined groups, each with the column of their indices."""
        if not self.keys:
            return None
        longest = max(len(keys) for keys, _ in self.keys.values())
        columns = {}
        for index, pair in self.keys.items():
            for letter, keys in zip("kp", pair, strict=True):
                padding = pa.nulls(longest - len(keys), keys.type)
                columns[f"{letter}{index}"] = (
                    pa.chunked_array([keys, padding]) if len(padding) else keys
                )
        return pa.table(columns)


def _children(group: Group) -> Children | None:
    """The child column of a group column, if it is a parent."""
    return group.of.children if isinstance(group.of, Column) and group.edges is None else None


def _totals(sums: list[str]) -> list[Tree]:
    return [alias(sql.total(column(name)), name) for name in sums]


def _aggregated(facts: Tree, by: list[str], cells: list[str], aggregates: list[Tree]) -> exp.Select:
    """Aggregates for each group and, if cells are counted, each cell of a group, in one pass."""
    branches = [
        (exp.EQ(this=call("grouping", column(cell)), expression=whole(0)), whole(index))
        for index, cell in enumerate(cells)
    ]
    labels: list[Tree | str] = (
        [alias(when(branches, whole(len(cells))), "level"), *cells] if cells else []
    )
    columns = [*by, *labels, *aggregates]
    tree = select(columns, subquery(facts, "facts"), by=() if cells else by)
    if cells:
        sets = [[*by, cell] for cell in cells] + [by]
        tuples = [exp.Tuple(expressions=[column(name) for name in names]) for names in sets]
        tree.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=tuples)]))
    return tree


def _integers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column as exact integers; NULL is refused."""
    if column.null_count:
        raise EngineFailed(
            "the engine returned NULL instead of an integer; nothing is released; try another"
            " version"
        )
    return _words(_whole_column(column))


def _whole_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; Arrow would copy even a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _words(array: pa.Array) -> NDArray[Any]:
    """Integers of up to 64 bits, or of 128 bits as decimals; NULL has an arbitrary value.

    They are read from the buffers, because Arrow's own conversion to numpy would import pandas.
    """
    if not len(array):
        return np.empty(0, np.int64)
    rows, buffer = slice(array.offset, array.offset + len(array)), array.buffers()[1]
    if not pa.types.is_decimal128(array.type):
        return np.frombuffer(buffer, f"i{array.type.bit_width // 8}")[rows].astype(
            np.int64, copy=False
        )
    words = np.frombuffer(buffer, np.int64).reshape(-1, 2)[rows]
    low, high = words[:, 0], words[:, 1]
    if not high.any() and not (low < 0).any():
        return low
    return np.array(
        [(h << 64) + (w % 2**64) for w, h in zip(low.tolist(), high.tolist(), strict=True)], object
    )


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    if not array.null_count:
        return np.ones(len(array), bool)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(bool)
