"""How ε is shared: the aggregates of a question joined into designs, each with its exact part.

Mean, sum and std of one expression are one design and cost as much as one of them. Designs share ε in equal parts
(quantiles one each), or by the weights that the caller gives; the parts are Fractions and add up to ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.ask.policy import Policy
from discreet.ask.query import Count, CountUnits, Extreme, Moment, Named, Quantiles, Query
from discreet.calibrate.sensitivity import Terms
from discreet.errors import InvalidParameter
from discreet.parameters import exact, quote
from discreet.release.design import Design
from discreet.release.statistics.counts import CountDesign, KnownCount
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign, refuse_unranked

_HEAVIEST = Fraction(10**6)
"""Beyond that, a weight leaves nothing for the other columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A design with its part of ε."""

    design: Design
    epsilon: Fraction
    terms: Terms


def of_everybody(policy: Policy, query: Query) -> bool:
    """Whether a unit that is replaced stays in the only group that there is."""
    return policy.neighbors == "change-one" and query.where is None and not query.groups


def _designs(policy: Policy, query: Query, cells: int, public_size: bool, each: bool) -> list[tuple[Design, bool]]:
    """The designs of a query, aggregates of one expression joined; each with whether its number of rows is public."""
    whole = public_size and of_everybody(policy, query)
    designs: list[tuple[Design, bool]] = []
    joint: dict[Moment, list[tuple[str, str]]] = {}
    for name, one in query.aggregates:
        match one:
            case Count(of=None) if whole and each:
                designs.append((KnownCount(name=name, of=one), True))
            case CountUnits() if whole:
                designs.append((KnownCount(name=name, of=one), True))
            case Count() | CountUnits():
                designs.append((CountDesign(name=name, of=one), False))
            case Moment():
                statistic = one.statistic + ("+" if one.sample else "")
                joint.setdefault(_subject(one), []).append((name, statistic))
            case Quantiles():
                names = (name,) if len(one.shares) == 1 else tuple(f"{name}.{at}" for at in range(len(one.shares)))
                design = QuantileDesign(names=names, of=one, cells=cells)
                designs.append((design, False))
            case Extreme():
                designs.append((ExtremeDesign(name=name, of=one), False))
    for subject, wanted in joint.items():
        joined = MomentDesign(wanted=tuple(wanted), of=subject)
        designs.append((joined, whole and each and subject.missing is not None))
    return designs


def _subject(one: Moment) -> Moment:
    """What moments must share to be joined."""
    return Moment(
        statistic="mean",
        of=one.of,
        lower=one.lower,
        upper=one.upper,
        whole=one.whole,
        missing=one.missing,
        precision=one.precision,
    )


def shared(
    policy: Policy, query: Query, cells: int, epsilon: Fraction, weights: Mapping[str, Any], *, public_size: bool
) -> tuple[Share, ...]:
    """Each design with its exact share of ε; they add up to ε. `public_size` is that of the engine."""
    inner = _weighed(query, weights)
    each = policy.unit_column is None
    designs = _designs(policy, query, cells, public_size, each)
    parts = []
    for design, _ in designs:
        wished = [inner[name] for name in design.names if name in inner]
        parts.append(design.weight * max(wished, default=Fraction(1)))
    total = sum(parts, Fraction())
    rows = 1 if each or policy.max_rows is None else policy.max_rows
    shares = []
    for (design, public), part in zip(designs, parts, strict=True):
        terms = Terms(
            rows=rows,
            spread=min(rows, policy.max_groups or rows),
            replaced=policy.neighbors == "change-one",
            public=public,
            cells=cells,
        )
        share = Share(design=design, epsilon=epsilon * part / total if part else Fraction(0), terms=terms)
        refuse_unranked(design, terms, share.epsilon)
        shares.append(share)
    return tuple(shares)


def _weighed(query: Query, weights: Mapping[str, Any]) -> dict[str, Fraction]:
    """The weights by private name."""
    if not isinstance(weights, Mapping):
        raise InvalidParameter(f'weights must be given by column, as in {{"people": 2}}, got {quote(weights)}')
    keys = {group.name for group in query.groups}
    known = {n: out.name for n, out in query.outputs if isinstance(out, Named) and out.name not in keys}
    for name in weights:
        if name not in known:
            raise InvalidParameter(f"weights must be of released columns ({', '.join(known)}), got {quote(name)}")
    found = {known[name]: exact("weight", value) for name, value in weights.items()}
    for weight in found.values():
        if not 1 / _HEAVIEST <= weight <= _HEAVIEST:
            raise InvalidParameter("a weight must lie between 1/1000000 and 1000000")
    return found
