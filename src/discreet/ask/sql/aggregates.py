"""From syntax to aggregates and groups."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.ask.declared import edges
from discreet.ask.kinds import refused
from discreet.ask.query import Aggregate, Group, Quantiles
from discreet.ask.sql.functions import AGGREGATES, OTHER_AGGREGATES, QUANTILES, STATISTIC_NAMES
from discreet.ask.sql.rows import Rows, argument
from discreet.ask.sql.syntax import Call, Literal, Name, Node, walk
from discreet.ask.sql.words import QUANTITIES
from discreet.errors import InvalidParameter


class Aggregates(Rows):
    """The reader of aggregates and groups, and of the expressions in them."""

    def aggregate(self, node: Node) -> Aggregate | None:  # noqa: PLR0911 - one case for each aggregate
        """The aggregate of a node, or None if it is not an aggregate."""
        if not isinstance(node, Call):
            return None
        scope, read = self.scope, self.expression
        match node.name:
            case "COUNT":
                return scope.present(read(argument(node))) if node.arguments else scope.count(None)
            case "COUNT DISTINCT":
                return self._units(node)
            case "COUNT_IF" | "COUNTIF":
                return scope.count(self.condition(argument(node)))
            case "HISTOGRAM":
                return None
            case "MIN" | "MAX" if len(node.arguments) > 1:
                raise refused("min and max take one argument; for the smaller of two numbers write LEAST(x, y)")
            case name if name in QUANTILES:
                if len(node.arguments) != 2:
                    raise refused("a quantile needs a share between 0 and 1, as in quantile(age, 0.9)")
                return self.quantiles(node.arguments[0], shares_of(node.arguments[1]))
            case name if name in STATISTIC_NAMES:
                statistic, sample = STATISTIC_NAMES[name]
                return statistic.aggregate_of(scope, read(argument(node)), sample=sample)
            case name if name in OTHER_AGGREGATES:
                raise refused(f"{name} is not supported. {QUANTITIES}")
        return None

    def quantiles(self, subject: Node, shares: Sequence[Fraction]) -> Quantiles:
        return self.scope.quantiles(self.expression(subject), tuple(shares))

    def group(self, node: Node) -> Group:
        match node:
            case Call("BIN", (subject, *limits)):
                return self.bins(subject, limits)
        return self.scope.group(self.expression(node))

    def bins(self, subject: Node, limits: Sequence[Node]) -> Group:
        try:
            return self.scope.group(self.expression(subject), edges([_edge(limit) for limit in limits]))
        except InvalidParameter as error:
            raise refused(f"BIN takes a number and edges, as in bin(age, 0, 18, 65); {error}") from None

    def _units(self, node: Call) -> Aggregate:
        scope, unit = self.scope, self.scope.policy.unit_column
        match node.arguments:
            case (Name(name, exact, table),) if name == unit or (not exact and scope.is_unit(name)):
                self.check_table(table)
                return scope.units()
        hint = f"write count(DISTINCT {unit})" if unit else "use GROUP BY and count(*)"
        raise refused(f"count(DISTINCT …) counts units only; {hint}")


def aggregating(node: Node) -> bool:
    """Whether a node contains an aggregate."""
    return any(isinstance(part, Call) and part.name in AGGREGATES for part, _ in walk(node))


def shares_of(node: Node) -> list[Fraction]:
    """The shares of one or several quantiles, in the given order."""
    match node:
        case Call("[]", parts):
            return [share for part in parts for share in shares_of(part)]
        case Literal(Fraction() as share):
            return [share]
    raise refused("a quantile needs a literal share between 0 and 1, as in quantile(age, 0.9)")


def _edge(node: Node) -> Fraction:
    match node:
        case Literal(Fraction() as edge):
            return edge
    raise refused("BIN takes literal edges, as in bin(age, 0, 18, 65)")
