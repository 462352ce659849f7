"""Discovery of keys that nobody can declare, with an explicit δ, once per study.

A key with n units is released with probability π(n), the largest that any (ε, δ)-private rule
allows [DVGM22]:

    π(0) = 0,    π(n+1) = min( e^ε·π(n) + δ,  1 − e^(−ε)·(1 − π(n) − δ),  1 )

    π(n) = δ·(e^(nε) − 1)/(e^ε − 1)                                          n ≤ n₁
         = (1 − e^(−mε))·(1 + δ/(e^ε − 1)) + e^(−mε)·π(n₁),   m = n − n₁     n₁ < n ≤ n₂
         = 1                                                                 beyond

    n₁ = 1 + ⌊ln((e^ε+2δ−1)/(δ(e^ε+1)))/ε⌋
    n₂ = n₁ + ⌊ln(1+(e^ε−1)(1−π(n₁))/δ)/ε⌋

The coins are exact (`draw.coin`). For rational ε and δ < 1/2, π(n) is a polynomial in e^ε and
e^(−ε) with rational coefficients: δ itself at n = 1, and irrational at 2 … n₂ (Lindemann); nor is
any logarithm above a multiple of ε.

A unit counts for at most k keys of a column. Adding or removing a unit moves k keys by one, so each
has ε/k and δ/k. Replacing a unit moves up to 2k keys. Several columns share ε and δ equally. The
number of units of a key is not released.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flint import arb

from discreet.ask.expression import Coalesce, Column, Expression
from discreet.ask.kinds import refused
from discreet.ask.normal import text as column_text
from discreet.ask.policy import Policy
from discreet.ask.query import Group
from discreet.ask.scope import Scope
from discreet.calibrate.ball import ball, integer_floor
from discreet.draw.coin import Chance
from discreet.errors import InvalidParameter, QueryRefused, one_line, without_context
from discreet.formats import shown
from discreet.ledger.chain import Entry
from discreet.ledger.grant import Grant
from discreet.ledger.ledger import Ledger
from discreet.ledger.questions import canonical
from discreet.ledger.refusals import RequestTaken, VoidQuestion
from discreet.outside import read_fraction, read_json
from discreet.parameters import exact_epsilon, quote
from discreet.release.account import asking_of, once
from discreet.release.mechanism import kept_keys
from discreet.release.work import MOST_COLUMNS, refuse_more

if TYPE_CHECKING:
    from discreet.release.study import Study

REQUEST = "discreet.discover"
"""The request id of every discovery: the ledger itself refuses a second, different discovery."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Discovered:
    """The discovered keys of each column, sorted, and what they cost together."""

    keys: Mapping[str, tuple[str | int, ...]]
    epsilon: Fraction
    delta: Fraction

    def __getitem__(self, column: str) -> tuple[str | int, ...]:
        """The keys of a column."""
        if column not in self.keys:
            raise InvalidParameter(
                f"the discovery was of {', '.join(self.keys)}, got {quote(column)}"
            )
        return self.keys[column]

    @property
    def cost(self) -> str:
        """The cost as it is displayed."""
        return f"(ε, δ) = ({shown(self.epsilon)}, {shown(self.delta)})"

    def __repr__(self) -> str:
        columns = ", ".join(f"{len(keys):,} keys of {column}" for column, keys in self.keys.items())
        return f"Discovered({one_line(columns)} · {self.cost})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """π(n) for one key, at its own ε and δ."""

    epsilon: Fraction
    delta: Fraction
    bend: int
    """n₁: up to here the first inequality binds, then the second."""
    last: int
    """n₂: the largest number of units with which a key may be left out."""

    def chance(self, units: int) -> Chance:
        """π(units), as a Fraction if it is rational.

        >>> rule = keeping(Fraction(1), Fraction(1, 10**5))
        >>> rule.chance(0), rule.chance(1), rule.chance(23)
        (Fraction(0, 1), Fraction(1, 100000), Fraction(1, 1))
        """
        if units <= 1:
            return units * self.delta
        if units > self.last:
            return Fraction(1)
        if units <= self.bend:
            return lambda: _rising(units, self.epsilon, self.delta)
        return lambda: self._above(units - self.bend)

    def units_for(self, share: float) -> int:
        """The least number of units with which a key is released in about this share of
        discoveries, or more often.

        >>> rule = keeping(Fraction(1), Fraction(1, 10**5))
        >>> rule.units_for(0.5), rule.units_for(0.99), rule.units_for(1)
        (12, 16, 23)
        """

        def probability(units: int) -> float:
            chance = self.chance(units)
            return float(chance if isinstance(chance, Fraction) else chance().mid())

        return bisect_left(range(self.last + 1), share, lo=1, key=probability)

    def _above(self, beyond: int) -> arb:
        """π(n₁ + m)."""
        limit = 1 + ball(self.delta) / ball(self.epsilon).expm1()
        loss = -beyond * self.epsilon
        return (
            _rising(self.bend, self.epsilon, self.delta) * ball(loss).exp()
            - ball(loss).expm1() * limit
        )


def keeping(epsilon: Fraction, delta: Fraction) -> Keeping:
    """The optimal rule for one key, for 0 < δ < 1/2."""

    def bends() -> arb:
        growth, failing = ball(epsilon).exp(), ball(delta)
        return ((growth + 2 * failing - 1) / (failing * (growth + 1))).log() / ball(epsilon)

    bend = 1 + integer_floor(bends)

    def ends() -> arb:
        open_ = 1 - _rising(bend, epsilon, delta)
        return (1 + ball(epsilon).expm1() * open_ / ball(delta)).log() / ball(epsilon)

    return Keeping(epsilon=epsilon, delta=delta, bend=bend, last=bend + integer_floor(ends))


def _rising(units: int, epsilon: Fraction, delta: Fraction) -> arb:
    """π up to n₁: δ·(1 + e^ε + … + e^((n−1)ε))."""
    return ball(delta) * ball(units * epsilon).expm1() / ball(epsilon).expm1()


def rule_of(policy: Policy, columns: int, epsilon: Fraction, delta: Fraction) -> Keeping:
    """The rule for each key of so many columns, which together cost (ε, δ)."""
    moved = keys_of_unit(policy) * (2 if policy.neighbors == "change-one" else 1)
    return keeping(epsilon / (columns * moved), delta / (columns * moved))


def keys_of_unit(policy: Policy) -> int:
    """The number of keys of a column for which a unit counts."""
    return 1 if policy.unit_column is None else policy.max_groups or policy.max_rows or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryPlan:
    """A discovery with its price, after all checks and before anything is spent."""

    columns: list[Column]
    epsilon: Fraction
    delta: Fraction
    rule: Keeping
    text: str
    """The canonical text of the discovery."""
    begun: Entry | None
    """The spend of the study's discovery, if there is one."""
    answered: bool
    """Whether it is the study's earlier discovery, and therefore free."""


def discovery_plan(study: Study, columns: Sequence[str], epsilon: Any) -> DiscoveryPlan:
    """Plan a discovery. Nothing is read, nothing is spent."""
    exact, policy = exact_epsilon(epsilon), study.policy
    asked_columns, delta = _checked_columns(study, columns), _delta(policy)
    parameters = {
        "columns": list(map(column_text, asked_columns)),
        "delta": delta,
        "neighbors": policy.neighbors,
        "unit": policy.unit,
        "max_rows": policy.max_rows,
        "max_groups": policy.max_groups,
    }
    ledger, begun = study.budget.known(), study.budget.entry(REQUEST)
    plan = DiscoveryPlan(
        columns=asked_columns,
        epsilon=exact,
        delta=delta,
        rule=rule_of(policy, len(asked_columns), exact, delta),
        text=canonical("discover", parameters),
        begun=begun,
        answered=ledger is not None
        and ledger.answer(study=study.name, request_id=REQUEST) is not None,
    )
    if begun is None and ledger is not None and ledger._has_forgotten(study.name):
        raise refused(
            "the ledger was restored, and what it charged for may have been a discovery, so the"
            " delta of this study counts as spent: declare the keys in the policy"
        )
    if (
        begun is not None
        and plan.answered
        and (begun.query, begun.epsilon) != (plan.text, str(exact))
    ):
        raise _made_another()
    return plan


def meaning(policy: Policy, delta: Fraction) -> str:
    """What the δ of a discovery means, for one unit and for many."""
    return (
        f"For each {policy.unit}, the promise e^ε may fail with probability at most δ ="
        f" {shown(delta)}, as where a key is shown that only this {policy.unit} has. Of n such"
        " keys, up to about n·δ are shown."
    )


@without_context
def discovery(
    study: Study, columns: Sequence[str], epsilon: Any, analyst: str | None = None
) -> Discovered:
    """Spend ε, from the share of the analyst if one is named, and the study's δ; then read, toss
    coins and record.

    The same discovery asked again, by anybody, returns the recorded keys and is free.
    """
    plan, policy = discovery_plan(study, columns, epsilon), study.policy
    begun = plan.begun
    asking = asking_of(
        study, request_id=REQUEST, query=plan.text, epsilon=plan.epsilon, analyst=analyst
    )
    if begun is not None:
        asking = replace(asking, analyst=begun.analyst)
    if plan.answered:  # it is free, whatever has failed since
        asking = replace(asking, standings=None)
    elif (
        begun is not None
    ):  # paid for but never answered, on the current data: nobody has seen a draw
        query, version = begun.query or "", begun.data_version
        if not query.startswith('["discover",'):  # the request id was used for something else
            raise _made_another()
        asking = replace(
            asking, query=query, epsilon=read_fraction(begun.epsilon or 0), version=lambda: version
        )
    is_asked = (asking.query, asking.epsilon) == (plan.text, plan.epsilon)

    def refuse(_: Grant) -> None:
        if not is_asked:
            raise refused(
                "the delta of this study is spent, for a discovery of"
                f" {', '.join(read_json(asking.query)[1]['columns'])} at epsilon"
                f" {shown(asking.epsilon)} that was interrupted before its answer: ask for exactly"
                " that, under the same policy; it is free"
            )
        study.ledger._refuse_twice(REQUEST, study=study.name)  # its delta would be spent twice

    def work() -> bytes:
        unit, limit = policy.unit_column, keys_of_unit(policy)
        keys = {
            column.name: kept_keys(study.engine.discover(column, unit, limit), plan.rule.chance)
            for column in plan.columns
        }
        record = {"discovered": keys, "epsilon": str(plan.epsilon), "delta": str(plan.delta)}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()

    try:
        content, _ = once(asking, work, refuse)
    except RequestTaken:  # another discovery has begun meanwhile
        raise _made_another() from None
    except VoidQuestion:
        if begun is None:
            raise
        raise refused(
            "the delta of this study is spent, for a discovery that had no answer when the ledger"
            " was restored from a copy, so it cannot be answered any more: declare the keys in the"
            " policy"
        ) from None
    if not is_asked:
        raise _made_another()
    return _read(content)


def _made_another() -> QueryRefused:
    return refused(
        "the delta of this study is spent: a study makes one discovery, of one or several columns,"
        " and this study has made another; its keys stay in use, and the same discovery asked again"
        " is free"
    )


def recorded(ledger: Ledger | None, study: str, policy: Policy) -> Discovered | None:
    """The study's earlier discovery, or None; looked up only if the policy discovers keys."""
    if ledger is None or not any(declared.discover for declared in policy.columns.values()):
        return None
    content = ledger.answer(study=study, request_id=REQUEST)
    return None if content is None or "discovered" not in read_json(content) else _read(content)


def discovery_facts(
    discovered: Discovered | None, groups: Iterable[Group], conditions: Iterable[Expression] = ()
) -> dict[str, Any]:
    """The entry about discovered keys in the record of an answer with these groups, if any.

    `conditions` are the conditions that select cells: they may use such keys, too.
    """
    by = [*(group.of for group in groups if group.edges is None), *conditions]
    # with a label for missing values
    columns_by = [of.parts[0] if isinstance(of, Coalesce) else of for of in by]
    names = dict.fromkeys(of.name for of in columns_by if isinstance(of, Column))
    columns = [] if discovered is None else [name for name in names if name in discovered.keys]
    if discovered is None or not columns:
        return {}
    return {
        "discovered": {
            "columns": columns,
            "epsilon": str(discovered.epsilon),
            "delta": str(discovered.delta),
        }
    }


def policy_with(policy: Policy, discovered: Discovered | None) -> Policy:
    """The policy with the discovered keys as its declared keys."""
    by_column = {} if discovered is None else discovered.keys
    keys = {
        name: [Fraction(key) if isinstance(key, int) else key for key in keys]
        for name, keys in by_column.items()
    }
    return policy.with_keys(keys) if keys else policy


def _checked_columns(study: Study, columns: Sequence[str]) -> list[Column]:
    """The columns to discover, sorted and without repetition."""
    scope = Scope(study.policy, study.schema)
    if not columns or not all(isinstance(column, str) for column in columns):
        raise InvalidParameter(
            'discover takes the names of columns, as in discover("county", epsilon="0.1")'
        )
    refuse_more("a discovery", len(columns), MOST_COLUMNS, "columns")
    by_name = {column.name: column for column in map(scope.column, columns)}
    for name in sorted(by_name):
        if not study.policy.columns[name].discover:
            raise refused(
                f"the policy must leave its keys to a discovery; declare {name} = {{ keys ="
                ' "discover" }'
            )
    return [by_name[name] for name in sorted(by_name)]


def _delta(policy: Policy) -> Fraction:
    if policy.delta is None:
        raise refused(
            'a discovery needs a delta; declare delta = "1e-6", or far less than 1 in the number of'
            " units"
        )
    # a single unit would be released that often, and the closed form of π(n) ends
    if policy.delta >= Fraction(1, 2):
        raise refused(
            f"delta must be below 1/2 for a discovery, got {policy.delta}; correct the policy"
        )
    return policy.delta


def _read(content: bytes) -> Discovered:
    record = read_json(content)
    keys = {column: tuple(values) for column, values in record["discovered"].items()}
    exact = {name: read_fraction(record[name]) for name in ("epsilon", "delta")}
    return Discovered(keys=MappingProxyType(keys), **exact)
