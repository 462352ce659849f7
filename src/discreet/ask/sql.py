"""SELECT … → query: a small language, strictly read; everything else is refused by name, before anything is spent.

    SELECT   aggregates, group columns, arithmetic of released numbers, AS names
    FROM     the name of the study's table
    WHERE    a condition of the row language (`ask.expression`)
    GROUP BY columns with keys or bins, bin(age, 0, 18, 65), parts of dates, conditions, CASE with literal results
    HAVING, ORDER BY, LIMIT   on released numbers only, so they cost nothing

The engine never sees the text: names become declared columns, literals exact values. `ask.tokens` reads, `ask.rows` and
`ask.aggregates` understand, `ask.scope` asks the policy; here the clauses are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeVar

from sqlglot import exp

from discreet.ask.aggregates import Aggregates, aggregating, unknown_aggregate
from discreet.ask.expression import Expression
from discreet.ask.grammar import name_in_sql
from discreet.ask.kinds import kind_of, refuse_alike, refused
from discreet.ask.normal import TRUE, decimal, normal, quoted
from discreet.ask.policy import Policy
from discreet.ask.query import (
    Aggregate,
    Combined,
    Draft,
    Group,
    Named,
    Number,
    Output,
    Quantiles,
    Query,
    Test,
    aggregate_text,
    assembled,
    group_text,
)
from discreet.ask.rows import COMPARISONS, Rows, called, joined, number
from discreet.ask.scope import Scope, Typed
from discreet.ask.tokens import strict, tree_of
from discreet.calibrate.epsilon import quote
from discreet.errors import QueryRefused

Read = TypeVar("Read")

_LARGEST = Fraction(10**300)
"""Beyond, a product with a released number would leave the doubles."""

MOST_ROWS = 10**12
"""A LIMIT above this is no limit."""

_SIGNS: dict[type[exp.Expression], Literal["+", "-", "*", "/"]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_INVERSE: dict[str, Literal["=", "<>", "<", "<=", ">", ">="]] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
_ROWS = "would release rows. Ask for count, sum, avg, stddev, median, quantile, min or max"


def parse(text: str, policy: Policy, schema: Mapping[str, Typed]) -> Query:
    """The query that a SELECT asks; `QueryRefused` names what is not in the language, and what is."""
    try:
        tree = tree_of(text, policy.columns)
        return assembled(_Select(_aggregates(tree, policy, schema), tree).draft())
    except RecursionError:
        raise refused("the question is nested too deeply; write it flatter") from None


def parse_condition(text: str, policy: Policy, schema: Mapping[str, Typed]) -> Expression:
    """The condition on rows that a text such as "age >= 65" writes."""
    tree, reader = _wrapped(text, policy, schema)
    return _condition(reader, tree)


def parse_expression(text: str, policy: Policy, schema: Mapping[str, Typed]) -> Expression:
    """The expression over rows that a text such as "income / 1000" writes."""
    tree, reader = _wrapped(text, policy, schema)
    return _deep(lambda: normal(reader.rows.expression(tree)))


def parse_group(text: str, policy: Policy, schema: Mapping[str, Typed]) -> tuple[str, Group]:
    """The name and the group column that a text such as "county" or "bin(age, 0, 18, 65) AS band" writes."""
    tree, reader = _wrapped(text, policy, schema)
    inner, name = _aliased(tree)
    return name or _label(inner), _deep(lambda: reader.group(inner))


@dataclass(slots=True)
class _Select:
    """One SELECT on its way to a query."""

    reader: Aggregates
    tree: exp.Select
    items: list[tuple[exp.Expression, str | None]] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    outputs: list[tuple[str, Output]] = field(default_factory=list)

    def draft(self) -> Draft:
        """The query, not yet with private names."""
        clauses = self.tree.args
        where = clauses.get("where")
        self.items = [_aliased(node) for node in self.tree.expressions]
        self._group(clauses.get("group"))
        for node, name in self.items:
            self._item(node, name)
        having = None if clauses.get("having") is None else self._test(clauses["having"].this, negated=False)
        order = self._order(clauses.get("order"))
        if not self.aggregates:
            raise refused("nothing is asked of the data; add count(*), or another aggregate")
        refuse_alike([name for name, _ in self.outputs])
        condition = None if where is None else _condition(self.reader, where.this)
        return Draft(
            outputs=self.outputs,
            aggregates=self.aggregates,
            groups=list(self.groups.values()),
            where=None if condition == TRUE else condition,
            having=having,
            order=order,
            limit=_limit(clauses.get("limit")),
        )

    def _group(self, clause: exp.Group | None) -> None:
        if clause is None:
            return
        strict(clause, "expressions")
        for node in clause.expressions:
            self._add_group(self.reader.group(self._referred(node)))

    def _add_group(self, group: Group) -> Named:
        self.groups[group_text(group)] = group
        return Named(group_text(group))

    def _referred(self, node: exp.Expression) -> exp.Expression:
        """What GROUP BY 1, or GROUP BY a name of SELECT, stands for."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self.items[_position(node, len(self.items))][0]
        name = _simple(node)
        if name is not None and not self._is_column(node):
            return next((inner for inner, alias in self.items if alias == name), node)
        return node

    def _is_column(self, node: exp.Expression) -> bool:
        """Whether a name is one of a declared column."""
        try:
            self.reader.rows.expression(node)
        except QueryRefused:
            return False
        return True

    def _item(self, node: exp.Expression, name: str | None) -> None:
        """Adds the columns of the answer that an item of SELECT asks for."""
        shares = self.reader.several(node)
        if shares is not None:
            found = self._aggregate(node)
            base = name or (node.this.name if isinstance(node.this, exp.Column) else "quantile")
            self.outputs += [(f"{base}_{decimal(share * 100)}", _share(found, share)) for share in shares]
        elif isinstance(node, exp.Anonymous) and str(node.this).lower() == "histogram":
            self._histogram(node, name)
        else:
            output = self._output(node)
            if isinstance(output, Number):
                raise refused("a constant needs no data; ask for count(*), or another aggregate")
            self.outputs.append((name or _label(node), output))

    def _histogram(self, node: exp.Anonymous, name: str | None) -> None:
        """histogram(x) is GROUP BY the bins of x, with count(*)."""
        strict(node, "this", "expressions")
        others = [inner for inner, _ in self.items if inner is not node]
        if (
            any(inner.find(exp.AggFunc) or inner.name.lower() == "histogram" for inner in others)
            or not node.expressions
        ):
            raise refused("a histogram takes a column and stands alone, or beside group columns: histogram(age)")
        subject, *limits = node.expressions
        group = self.reader.group(exp.Anonymous(this="bin", expressions=[subject, *limits]) if limits else subject)
        if group.edges is None:
            raise refused("a histogram needs bins; declare bins of the column, or write histogram(age, 0, 18, 65)")
        self.outputs.append((name or _label(subject), self._add_group(group)))
        self.aggregates.append(self.reader.rows.scope.count(None))
        self.outputs.append(("count", Named(aggregate_text(self.aggregates[-1]))))

    def _aggregate(self, node: exp.Expression) -> Aggregate | None:
        found = self.reader.aggregate(node)
        if found is not None:
            self.aggregates.append(found)
        return found

    def _output(self, node: exp.Expression) -> Output:
        """A released number, a group's key, or arithmetic of released numbers."""
        match node:
            case exp.Paren():
                strict(node, "this")
                return self._output(node.this)
            case exp.Star():
                raise refused(f"SELECT * {_ROWS}")
            case exp.Literal() if not node.is_string:
                value = number(node)
                if abs(value) > _LARGEST:
                    raise refused("a number beside released ones must be at most 1e300 in size")
                return Number(value)
            case exp.Neg():
                strict(node, "this")
                part = self._number(node.this)
                return Number(-part.value) if isinstance(part, Number) else Combined("-", Number(Fraction(0)), part)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                strict(node, "this", "expression")
                return Combined(_SIGNS[type(node)], self._number(node.this), self._number(node.expression))
        found = self._aggregate(node)
        if found is not None:
            if isinstance(found, Quantiles) and len(found.shares) > 1:
                raise refused("several quantiles at once stand alone in SELECT; here give one share")
            return Named(aggregate_text(found))
        if node.find(exp.AggFunc):
            if isinstance(node, exp.AggFunc):
                raise unknown_aggregate(node)
            raise refused(f"{called(node)} of a released number is not in the language; it has + - * /")
        return self._key(node)

    def _number(self, node: exp.Expression) -> Output:
        found = self._output(node)
        if isinstance(found, Named) and found.name in self.groups:
            raise refused("a group's key is no released number; choose keys with WHERE, and compute with aggregates")
        return found

    def _key(self, node: exp.Expression) -> Output:
        """A group's key, or an earlier column of the answer by its name."""
        name = _simple(node)
        earlier = None if name is None else dict(self.outputs).get(name)
        if earlier is not None and not self._is_column(node):
            return earlier
        label = quote(_label(node))
        if isinstance(node, exp.Column) and not self.groups and earlier is None:
            self.reader.rows.expression(node)  # an undeclared column has a refusal of its own
            if any(aggregating(inner) for inner, _ in self.items):
                columns = [inner for inner, _ in self.items if isinstance(inner, exp.Column)]
                names = ", ".join(dict.fromkeys(column.sql("duckdb") for column in [*columns, node]))
                raise refused(f"{label} stands beside an aggregate; add GROUP BY {names}")
            raise refused(f"{label} {_ROWS}")
        try:
            text = group_text(self.reader.group(node))
        except QueryRefused:
            if earlier is None:
                raise
            return earlier
        if text in self.groups:
            return Named(text)
        if earlier is not None:
            return earlier
        raise refused(f"{label} is not grouped by; aggregate it, or add it to GROUP BY")

    def _test(self, node: exp.Expression, *, negated: bool) -> Test:
        """A condition on released numbers; NOT goes into the comparisons."""
        match node:
            case exp.Paren():
                strict(node, "this")
                return self._test(node.this, negated=negated)
            case exp.Not():
                strict(node, "this")
                return self._test(node.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = tuple(self._test(part, negated=negated) for part in joined(node))
                return Test("and" if isinstance(node, exp.And) is not negated else "or", parts)
            case exp.Between():
                strict(node, "this", "low", "high")
                low = exp.GTE(this=node.this, expression=node.args["low"])
                high = exp.LTE(this=node.this, expression=node.args["high"])
                parts = (self._test(low, negated=negated), self._test(high, negated=negated))
                return Test("or" if negated else "and", parts)
        if type(node) not in COMPARISONS:
            raise refused("HAVING compares released numbers, as in HAVING count(*) > 100; for rows use WHERE")
        strict(node, "this", "expression")
        sign = _INVERSE[COMPARISONS[type(node)]] if negated else COMPARISONS[type(node)]
        return Test(sign, (self._number(node.this), self._number(node.expression)))

    def _order(self, clause: exp.Order | None) -> list[tuple[Output, bool]]:
        if clause is None:
            return []
        strict(clause, "expressions")
        found = []
        for ordered in clause.expressions:
            strict(ordered, "this", "desc", "nulls_first")
            node = ordered.this
            if isinstance(node, exp.Literal) and not node.is_string:
                output = self.outputs[_position(node, len(self.outputs))][1]
            else:
                output = dict(self.outputs).get(_simple(node) or "") or self._output(node)
            found.append((output, bool(ordered.args.get("desc"))))
        return found


def _aggregates(tree: exp.Select, policy: Policy, schema: Mapping[str, Typed]) -> Aggregates:
    """The reader for a tree whose clauses and table are in the language."""
    strict(tree, "expressions", "from_", "where", "group", "having", "order", "limit")
    origin = tree.args.get("from_")
    table = None if origin is None else origin.this
    if origin is None or not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refused("FROM takes the name of the study's table; the custodian can make a SELECT the study's source")
    strict(origin, "this")
    strict(table, "this", "alias")
    asked, known = table.name, policy.table
    if asked != known and (table.this.args.get("quoted") or asked.lower() != known.lower()):
        raise refused(f"there is no table {quote(asked)}; the study has one: FROM {name_in_sql(known)}")
    names = {table.name}
    alias = table.args.get("alias")
    if alias is not None:
        strict(alias, "this")
        names = {alias.name}
    for clause in ("where", "having"):
        if tree.args.get(clause) is not None:
            strict(tree.args[clause], "this")
    return Aggregates(Rows(Scope(policy, schema), frozenset(names)))


def _wrapped(text: str, policy: Policy, schema: Mapping[str, Typed]) -> tuple[exp.Expression, Aggregates]:
    """The one expression that a text is."""
    if not isinstance(text, str) or not text.strip():
        raise refused(f'an expression must be a text such as "age >= 65", got {quote(text)}')
    tree = tree_of(f"SELECT {text}\nFROM {quoted(policy.table)}", policy.columns)
    reader = _aggregates(tree, policy, schema)
    strict(tree, "expressions", "from_")
    if len(tree.expressions) != 1 or tree.args["from_"].this.args.get("alias") is not None:
        raise refused("one expression is needed here; give several one by one")
    return tree.expressions[0], reader


def _condition(reader: Aggregates, node: exp.Expression) -> Expression:
    found = _deep(lambda: normal(reader.rows.expression(node)))
    if kind_of(found) != "truth":
        raise refused(f"a condition is needed here, such as age >= 65, got a {kind_of(found)}")
    return found


def _deep(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except RecursionError:
        raise refused("the question is nested too deeply; write it flatter") from None


def _aliased(node: exp.Expression) -> tuple[exp.Expression, str | None]:
    if not isinstance(node, exp.Alias):
        return node, None
    strict(node, "this", "alias")
    return node.this, node.alias


def _simple(node: exp.Expression) -> str | None:
    """The name that a node is, without a table before it."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and len(node.parts) == 1:
        return node.name
    return None


def _label(node: exp.Expression) -> str:
    """The name of a column of the answer that has no other."""
    name = (
        node.name if isinstance(node, exp.Column) else node.sql("duckdb", normalize_functions="lower", comments=False)
    )
    return name if len(name) <= 60 else name[:57] + "…"


def _share(found: Aggregate | None, share: Fraction) -> Named:
    if not isinstance(found, Quantiles):
        raise refused("a quantile needs a share between 0 and 1, as in quantile(age, 0.9)")
    return Named(aggregate_text(replace(found, shares=(share,))))


def _position(node: exp.Expression, count: int) -> int:
    place = number(node)
    if place.denominator != 1 or not 1 <= place <= count:
        raise refused(f"a position must be a whole number from 1 to {count}, got {quote(node.this)}")
    return int(place) - 1


def _limit(clause: exp.Expression | None) -> int | None:
    if clause is None:
        return None
    strict(clause, "expression")
    wanted = clause.expression
    if isinstance(clause, exp.Limit) and isinstance(wanted, exp.Literal) and not wanted.is_string:
        rows = number(wanted)
        if rows.denominator == 1 and 1 <= rows <= MOST_ROWS:
            return int(rows)
    raise refused("LIMIT takes a whole number of rows, as in LIMIT 10")
