"""From sqlglot's tree to aggregates and groups: exactly the calls below."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from discreet.ask.declared import edges
from discreet.ask.expression import Expression
from discreet.ask.kinds import kind_of, refused
from discreet.ask.query import Aggregate, Group, Quantiles
from discreet.ask.rows import Rows, called, number
from discreet.ask.scope import Statistic
from discreet.ask.tokens import strict
from discreet.errors import InvalidParameter

_MOMENTS: dict[type[exp.Expression], tuple[Statistic, bool]] = {
    exp.Sum: ("sum", False),
    exp.Avg: ("mean", False),
    exp.Variance: ("variance", True),
    exp.VariancePop: ("variance", False),
    exp.Stddev: ("std", True),
    exp.StddevSamp: ("std", True),
    exp.StddevPop: ("std", False),
}
_NAMED_MOMENTS: dict[str, tuple[Statistic, bool]] = {
    "mean": ("mean", False),
    "var": ("variance", True),
    "std": ("std", True),
}
_CALLED = frozenset({*_NAMED_MOMENTS, "histogram"})
"""Aggregates that sqlglot does not know as such."""

_QUANTILES = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc)


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The reader of aggregates and groups."""

    rows: Rows

    def aggregate(self, node: exp.Expression) -> Aggregate | None:  # noqa: PLR0911 - one case for each node
        """The aggregate that a node asks for, or None if it is something else."""
        scope, read = self.rows.scope, self.rows.expression
        match node:
            case exp.Count():
                return self._count(node)
            case exp.CountIf():
                strict(node, "this")
                return scope.count(self._condition(node.this))
            case exp.Filter():
                return self._filtered(node)
            case exp.Median():
                strict(node, "this")
                return scope.quantiles(read(node.this), (Fraction(1, 2),))
            case exp.Quantile() | exp.PercentileCont() | exp.PercentileDisc() | exp.WithinGroup():
                return self._quantiles(node)
            case exp.Min() | exp.Max():
                strict(node, "this")
                return scope.extreme("min" if isinstance(node, exp.Min) else "max", read(node.this))
            case exp.Anonymous() if (name := str(node.this).lower()) in _NAMED_MOMENTS:
                strict(node, "this", "expressions")
                if len(node.expressions) != 1:
                    raise refused(f"{name.upper()} needs one argument, got {len(node.expressions)}")
                statistic, sample = _NAMED_MOMENTS[name]
                return scope.moment(statistic, read(node.expressions[0]), sample=sample)
        if type(node) in _MOMENTS:
            strict(node, "this")
            statistic, sample = _MOMENTS[type(node)]
            return scope.moment(statistic, read(node.this), sample=sample)
        return None

    def several(self, node: exp.Expression) -> list[Fraction] | None:
        """The shares of quantile(x, [p, q]), in written order; None if it is something else."""
        shares = node.args.get("quantile") or node.args.get("expression") if isinstance(node, _QUANTILES) else None
        return _shares(shares) if isinstance(shares, exp.Array) else None

    def group(self, node: exp.Expression) -> Group:
        """The group column that a node asks for."""
        while isinstance(node, exp.Paren):
            strict(node, "this")
            node = node.this
        scope, read = self.rows.scope, self.rows.expression
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "bin":
            strict(node, "this", "expressions")
            subject, *limits = node.expressions or [exp.Null()]
            try:
                return scope.group(read(subject), edges([_signed(limit) for limit in limits]))
            except InvalidParameter as error:
                raise refused(f"BIN takes a number and edges, as in bin(age, 0, 18, 65); {error}") from None
        return scope.group(read(node))

    def _count(self, node: exp.Count) -> Aggregate:
        strict(node, "this")
        scope, of = self.rows.scope, node.this
        match of:
            case exp.Star():
                strict(of)
                return scope.count(None)
            case None:
                return scope.count(None)
            case exp.Distinct():
                strict(of, "expressions")
                column = of.expressions[0] if len(of.expressions) == 1 else None
                while isinstance(column, exp.Paren):
                    column = column.this
                if not isinstance(column, exp.Column) or not self._is_unit(column):
                    unit = scope.policy.unit_column
                    hint = f"write count(DISTINCT {unit})" if unit else "use GROUP BY and count(*)"
                    raise refused(f"only units can be counted once each; {hint}")
                return scope.units()
        return scope.present(self.rows.expression(of))

    def _is_unit(self, column: exp.Column) -> bool:
        strict(column, "this", "table")
        name, unit = column.name, self.rows.scope.policy.unit_column
        return name == unit or (not column.this.args.get("quoted") and self.rows.scope.is_unit(name))

    def _filtered(self, node: exp.Filter) -> Aggregate:
        strict(node, "this", "expression")
        counted = isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star)
        if not counted or not isinstance(node.expression, exp.Where):
            raise refused("FILTER is in the language with count(*) only; use avg(CASE WHEN … THEN x END)")
        strict(node.this, "this")
        strict(node.expression, "this")
        return self.rows.scope.count(self._condition(node.expression.this))

    def _condition(self, node: exp.Expression) -> Expression:
        found = self.rows.expression(node)
        if kind_of(found) != "truth":
            raise refused("a condition is needed here, such as age >= 65")
        return found

    def _quantiles(self, node: exp.Expression) -> Quantiles:
        scope, read = self.rows.scope, self.rows.expression
        if isinstance(node, exp.WithinGroup):
            strict(node, "this", "expression")
            order = node.expression
            call = node.this
            if not isinstance(call, exp.PercentileCont | exp.PercentileDisc) or not isinstance(order, exp.Order):
                raise refused(
                    "WITHIN GROUP is in the language with percentile_cont(0.5) only; or write quantile(x, 0.5)"
                )
            strict(call, "this")
            strict(order, "expressions")
            if len(order.expressions) != 1:
                raise refused("WITHIN GROUP orders by one number")
            [ordered] = order.expressions
            strict(ordered, "this")
            return scope.quantiles(read(ordered.this), tuple(_shares(call.this)))
        strict(node, "this", "quantile", "expression")
        shares = node.args.get("quantile") or node.args.get("expression")
        if shares is None:
            raise refused("a quantile needs a share between 0 and 1, as in quantile(age, 0.9)")
        return scope.quantiles(read(node.this), tuple(_shares(shares)))


def aggregating(node: exp.Expression) -> bool:
    """Whether there is an aggregate in a node."""
    calls = (str(call.this).lower() for call in node.find_all(exp.Anonymous))
    return node.find(exp.AggFunc) is not None or any(call in _CALLED for call in calls)


def unknown_aggregate(node: exp.Expression) -> Exception:
    """The refusal of an aggregate that is not offered."""
    return refused(
        f"{called(node)} is not offered; ask for count, sum, avg, stddev, variance, median, quantile, min, max"
    )


def _shares(node: exp.Expression) -> list[Fraction]:
    if isinstance(node, exp.Array):
        strict(node, "expressions")
        return [share for each in node.expressions for share in _shares(each)]
    if not isinstance(node, exp.Literal) or node.is_string:
        raise refused("a quantile needs a literal share between 0 and 1, as in quantile(age, 0.9)")
    return [number(node)]


def _signed(node: exp.Expression) -> Fraction:
    if isinstance(node, exp.Neg):
        strict(node, "this")
        return -_signed(node.this)
    if not isinstance(node, exp.Literal) or node.is_string:
        raise refused("BIN takes literal edges, as in bin(age, 0, 18, 65)")
    return number(node)
