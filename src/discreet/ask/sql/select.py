"""From the syntax of SELECT to a query. HAVING, ORDER BY and LIMIT are post-processing, so they
cost nothing.

SELECT   aggregates, group columns, arithmetic of released numbers, AS names
FROM     one name: the study's data
WHERE    a condition of the row language (`ask.expression`)
GROUP BY columns with keys or bins, bin(age, 0, 18, 65), parts of dates, conditions,
         CASE with literal results
HAVING, ORDER BY, LIMIT   on released numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.ask import query as queries
from discreet.ask.kinds import refused
from discreet.ask.normal import INVERSE, decimal, normal
from discreet.ask.query import (
    Aggregate,
    Combined,
    Group,
    Named,
    Number,
    Output,
    Quantiles,
    Query,
    Test,
    group_text,
)
from discreet.ask.sql.functions import QUANTILES
from discreet.ask.sql.reader import Reader, aggregating, shares_of
from discreet.ask.sql.syntax import Call, Item, Literal, Name, Node, Select
from discreet.ask.sql.words import QUANTITIES, name_in_sql
from discreet.errors import QueryRefused
from discreet.parameters import quote

_LARGEST = Fraction(10**300)
"""Beyond this a product with a released number may overflow."""


@dataclass(slots=True)
class Selection:
    reader: Reader
    select: Select
    aggregates: list[Aggregate] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    outputs: list[tuple[str, Output]] = field(default_factory=list)

    def query(self) -> Query:
        select = self.select
        for node in select.groups:
            self._add_group(self.reader.group(self._resolve(node)))
        for item in select.items:
            self._item(item)
        having = None if select.having is None else self._test(select.having, negated=False)
        order = tuple((self._sort_key(node), descending) for node, descending in select.order)
        if not self.aggregates:
            raise refused("the question has no aggregate; add count(*), or another aggregate")
        condition = None if select.where is None else normal(self.reader.condition(select.where))
        aggregates = tuple(("", aggregate) for aggregate in self.aggregates)
        groups = tuple(self.groups.values())
        return queries.assembled(
            Query(aggregates, tuple(self.outputs), groups, condition, having, order, select.limit)
        )

    def _add_group(self, group: Group) -> Named:
        self.groups[group_text(group)] = group
        return Named(group_text(group))

    def _resolve(self, node: Node) -> Node:
        """The expression of GROUP BY 1, or of GROUP BY an alias of SELECT."""
        items = self.select.items
        match node:
            case Literal(Fraction() as position):
                return items[_index(position, len(items))].node
            case Name(name, _, None) if not self._is_column(node):
                return next((item.node for item in items if item.alias == name), node)
        return node

    def _is_column(self, node: Node) -> bool:
        with suppress(QueryRefused):
            self.reader.expression(node)
            return True
        return False

    def _item(self, item: Item) -> None:
        """Add the columns of the answer for an item of SELECT."""
        match item.node:
            case Call(name, (subject, Call("[]") as several)) if name in QUANTILES:
                shares = shares_of(several)
                quantiles = self.reader.quantiles(subject, shares)
                self.aggregates.append(quantiles)
                base = item.alias or (subject.name if isinstance(subject, Name) else "quantile")
                for share in shares:
                    text = queries.aggregate_text(replace(quantiles, shares=(share,)))
                    self.outputs.append((f"{base}_{decimal(share * 100)}", Named(text)))
            case Call("HISTOGRAM", arguments):
                self._histogram(item, arguments)
            case node:
                output = self._output(node)
                if isinstance(output, Number):
                    raise refused(
                        "a constant needs no data; ask for count(*), or another aggregate"
                    )
                self.outputs.append((item.alias or item.label, output))

    def _histogram(self, item: Item, arguments: Sequence[Node]) -> None:
        """histogram(x) is GROUP BY the bins of x, with count(*)."""
        if not arguments or any(
            aggregating(sibling.node) for sibling in self.select.items if sibling is not item
        ):
            raise refused(
                "a histogram takes a column and must be asked alone, or with group columns:"
                " histogram(age)"
            )
        subject, *limits = arguments
        group = self.reader.bins(subject, limits) if limits else self.reader.group(subject)
        if group.edges is None:
            raise refused(
                "a histogram needs bins; declare bins of the column, or write histogram(age, 0,"
                " 18, 65)"
            )
        label = subject.name if isinstance(subject, Name) else item.label
        self.outputs.append((item.alias or label, self._add_group(group)))
        self.aggregates.append(self.reader.scope.count(None))
        self.outputs.append(("count", Named(queries.aggregate_text(self.aggregates[-1]))))

    def _output(self, node: Node) -> Output:
        """A released number, a group's key, or arithmetic of released numbers."""
        match node:
            case Literal(Fraction() as value):
                if abs(value) > _LARGEST:
                    raise refused("a constant must be at most 1e300 in absolute value")
                return Number(value)
            case Call("+" | "-" | "*" | "/" as sign, (left, right)):
                return Combined(sign, self._number(left), self._number(right))
        aggregate = self.reader.aggregate(node)
        if aggregate is not None:
            if isinstance(aggregate, Quantiles) and len(aggregate.shares) > 1:
                raise refused(
                    "several quantiles at once must be an item of SELECT; give one share here"
                )
            self.aggregates.append(aggregate)
            return Named(queries.aggregate_text(aggregate))
        if aggregating(node):
            name = node.name if isinstance(node, Call) and node.name.isupper() else "an expression"
            raise refused(f"{name} of a released number is not supported; use + - * /")
        return self._key(node)

    def _number(self, node: Node) -> Output:
        output = self._output(node)
        if isinstance(output, Named) and output.name in self.groups:
            raise refused(
                "a group's key is not a released number; select keys with WHERE, and compute with"
                " aggregates"
            )
        return output

    def _key(self, node: Node) -> Output:
        """A group's key, or an earlier column of the answer by its name."""
        earlier = self._earlier(node)
        if earlier is not None and not self._is_column(node):
            return earlier
        if isinstance(node, Name) and not self.groups and earlier is None:
            self.reader.expression(node)  # an undeclared column is refused with another message
            nodes = [item.node for item in self.select.items]
            if any(map(aggregating, nodes)):
                names = dict.fromkeys(
                    name_in_sql(name.name) for name in [*nodes, node] if isinstance(name, Name)
                )
                raise refused(
                    f"{quote(node.name)} is beside an aggregate; add GROUP BY {', '.join(names)}"
                )
            raise refused(f"{quote(node.name)} would release rows. {QUANTITIES}")
        try:
            group = self.reader.group(node)
        except QueryRefused:
            if earlier is None:
                raise
            return earlier
        if group_text(group) in self.groups:
            return Named(group_text(group))
        if earlier is not None:
            return earlier
        shown = quote(node.name if isinstance(node, Name) else group.name)
        raise refused(f"{shown} is not grouped by; aggregate it, or add it to GROUP BY")

    def _earlier(self, node: Node) -> Output | None:
        """The column of the answer with this name."""
        match node:
            case Name(name, _, None):
                return dict(self.outputs).get(name)
        return None

    def _sort_key(self, node: Node) -> Output:
        """The output of ORDER BY: a position, a column of the answer, or another output."""
        if isinstance(node, Literal) and isinstance(node.value, Fraction):
            return self.outputs[_index(node.value, len(self.outputs))][1]
        return self._earlier(node) or self._output(node)

    def _test(self, node: Node, *, negated: bool) -> Test:
        """A condition on released numbers; NOT is moved into the comparisons."""
        match node:
            case Call("not", (part,)):
                return self._test(part, negated=not negated)
            case Call("and" | "or" as sign, parts):
                tests = tuple(self._test(part, negated=negated) for part in parts)
                return Test("and" if (sign == "and") is not negated else "or", tests)
            case Call("between", (part, low, high)):
                comparisons = (Call(">=", (part, low)), Call("<=", (part, high)))
                return self._test(Call("and", comparisons), negated=negated)
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as sign, (left, right)):
                return Test(
                    INVERSE[sign] if negated else sign, (self._number(left), self._number(right))
                )
        raise refused(
            "HAVING compares released numbers, as in HAVING count(*) > 100; for rows use WHERE"
        )


def _index(position: Fraction, count: int) -> int:
    if position.denominator != 1 or not 1 <= position <= count:
        raise refused(
            f"a position must be a whole number from 1 to {count}, got {quote(decimal(position))}"
        )
    return int(position) - 1
