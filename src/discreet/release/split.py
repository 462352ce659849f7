"""How ε is split: the aggregates of a question are joined into designs, each with its exact share.

Counts of rows, sums, means and variances with a private number of rows form one joint design.
Quantiles, extremes, counts of units and statistics that use a public number of rows have separate
shares. `statistics.weights` chooses the shares; they are Fractions and add up to ε. `plan_within`
finds the least ε for a wanted error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.ask.policy import Policy
from discreet.ask.query import Count, CountUnits, Extreme, Moment, Named, Quantiles, Query
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.errors import InvalidParameter
from discreet.parameters import LARGEST, UNIT, exact, quote
from discreet.release.design import Design, Line
from discreet.release.mechanism import public_count
from discreet.release.public_size import PublicSize, public_size
from discreet.release.statistics.counts import CountDesign, KnownCount
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign, refuse_rank_overflow
from discreet.release.statistics.weights import parted

if TYPE_CHECKING:
    from discreet.release.plan import Plan
    from discreet.release.study import Study

_GUESSES = 8
"""Guesses of the least ε that may be wasted."""

_FEW, _STEPS = 8, 16
"""With more numbers, at most so many steps: usually a few find the least ε to all digits."""

_HEAVIEST = Fraction(10**6)  # a larger weight leaves nothing for the other columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A design with its share of ε."""

    design: Design
    epsilon: Fraction
    terms: UnitLimits

    @property
    def text(self) -> str:
        """The ε, and the ε of each family if families share it, for the canonical text."""
        families = self.design.families if isinstance(self.design, JointDesign) else ()
        parts = (
            f"{'*'.join(map(str, attributes)) or 'rows'} {part * self.epsilon}"
            for attributes, part in families
        )
        return " ".join([str(self.epsilon), *(f"({part})" for part in parts)])


def keeps_every_unit(query: Query) -> bool:
    """Whether a unit that is replaced by another stays in the only group."""
    return query.where is None and not query.groups


def _designs(
    query: Query, terms: UnitLimits, size: PublicSize, row_is_unit: bool
) -> tuple[list[tuple[Design, bool]], JointDesign | None]:
    """The designs, each with whether its number of rows is public, and the joint one, if any."""
    whole = size.value and keeps_every_unit(query)
    designs: list[tuple[Design, bool]] = []
    counts: list[tuple[str, Count]] = []
    moments: dict[Moment, list[tuple[str, str]]] = {}
    for name, aggregate in query.aggregates:
        match aggregate:
            case Count(of=None) if whole and row_is_unit:
                designs.append((KnownCount(name=name, of=aggregate), True))
            case CountUnits() if whole:
                designs.append((KnownCount(name=name, of=aggregate), True))
            case CountUnits() if not row_is_unit:
                designs.append((CountDesign(name=name, of=aggregate), False))
            case Count() | CountUnits():
                counts.append((name, aggregate if isinstance(aggregate, Count) else Count()))
            case Moment():
                statistic = aggregate.statistic + ("+" if aggregate.sample else "")
                moments.setdefault(subject(aggregate), []).append((name, statistic))
            case Quantiles():
                count = len(aggregate.shares)
                names = (
                    (name,) if count == 1 else tuple(f"{name}.{number}" for number in range(count))
                )
                designs.append(
                    (QuantileDesign(names=names, of=aggregate, cells=terms.cells), False)
                )
            case Extreme():
                designs.append((ExtremeDesign(name=name, of=aggregate), False))
    columns = [MomentDesign(wanted=tuple(statistics), of=of) for of, statistics in moments.items()]

    def joins(design: MomentDesign) -> bool:
        """If rows are replaced, only columns without dropped values share the number of rows."""
        return not terms.same_group or (
            design.of.missing is not None and not (whole and row_is_unit)
        )

    joint = JointDesign(
        counts=tuple(
            (name, count) for name, count in counts if not terms.same_group or count.of is None
        ),
        columns=tuple(design for design in columns if joins(design)),
        families=(),
    )
    if len(joint.columns) + len(joint.counts) < 2:
        joint = replace(joint, counts=(), columns=())
    single = [
        (CountDesign(name=name, of=count), False)
        for name, count in counts
        if name not in joint.names
    ]
    lone = [
        (design, whole and row_is_unit and design.of.missing is not None)
        for design in columns
        if design not in joint.columns
    ]
    return [*designs, *single, *lone], joint if joint.names else None


def subject(moment: Moment) -> Moment:
    """The part of a moment that must be equal for moments to be joined."""
    return replace(moment, statistic="mean", sample=False)


def terms_of(policy: Policy, cells: int, *, public: bool = False) -> UnitLimits:
    """The limits of a unit in an answer with so many groups."""
    rows = 1 if policy.unit_column is None or policy.max_rows is None else policy.max_rows
    return UnitLimits(
        rows=rows,
        max_groups=min(rows, policy.max_groups or rows),
        replaced=policy.neighbors == "change-one",
        public=public,
        cells=cells,
    )


def shared(
    policy: Policy,
    query: Query,
    cells: int,
    epsilon: Fraction,
    weights: Mapping[str, Any],
    *,
    size: PublicSize,
) -> tuple[Share, ...]:
    """Each design with its exact share of ε; the shares add up to ε."""
    inner = by_number(query, "weights", weights)
    check_weights(inner.values())
    row_is_unit = policy.unit_column is None
    terms = {public: terms_of(policy, cells, public=public) for public in (False, True)}
    designs, joint = _designs(query, terms[False], size, row_is_unit)
    wishes = tuple(float(inner.get(name, 1)) for name in (joint.names if joint is not None else ()))
    others = tuple(
        design.weight**3
        * max((float(inner[name]) for name in design.names if name in inner), default=1.0)
        for design, _ in designs
        if design.weight
    )
    families, part, parts = (
        parted(joint, terms[False], wishes, others) if others or joint else ((), Fraction(0), ())
    )
    rest = iter(parts)
    shares = [
        Share(
            design=design,
            epsilon=epsilon * next(rest) if design.weight else Fraction(0),
            terms=terms[public],
        )
        for design, public in designs
    ]
    if joint is not None:
        shares.append(
            Share(
                design=replace(joint, families=families), epsilon=epsilon * part, terms=terms[False]
            )
        )
    for share in shares:
        refuse_rank_overflow(share.design, share.terms, share.epsilon)
    return tuple(shares)


def check_weights(weights: Iterable[Fraction]) -> None:
    """Refuse weights so large that others become negligible."""
    if not all(1 / _HEAVIEST <= weight <= _HEAVIEST for weight in weights):
        raise InvalidParameter("a weight must lie between 1/1000000 and 1000000")


def by_number(query: Query, parameter: str, values: Mapping[str, Any]) -> dict[str, Fraction]:
    """A parameter's values for columns of the answer, by the internal names of their numbers."""
    keys = {group.name for group in query.groups}
    names = {
        n: out.name for n, out in query.outputs if isinstance(out, Named) and out.name not in keys
    }
    numbers = by_name(
        parameter, values, names, noun="column", example="people", known="released columns"
    )
    return {names[name]: number for name, number in numbers.items()}


def by_name(
    parameter: str,
    values: Mapping[str, Any],
    names: Collection[str],
    *,
    noun: str,
    example: str,
    known: str,
) -> dict[str, Fraction]:
    """A parameter's exact values for some of these names; the last three are for refusals."""
    if not isinstance(values, Mapping):
        raise InvalidParameter(
            f'{parameter} must be given by {noun}, as in {{"{example}": 2}}, got {quote(values)}'
        )
    for name in values:
        if name not in names:
            raise InvalidParameter(
                f"{parameter} must name {known} ({', '.join(names)}), got {quote(name)}"
            )
    return {name: exact(parameter.removesuffix("s"), value) for name, value in values.items()}


def plan_within(study: Study, query: Query, *, within: Any, **more: Any) -> Plan:
    """The plan with the least ε whose errors are at most `within`, for all columns or those named.

    With more than `_FEW` numbers the search may end before the last digit; the errors are within
    their bounds anyhow.
    """
    from discreet.release.plan import plan_of

    size = more.pop("size")
    common = None if isinstance(within, Mapping) else exact("within", within)
    targets = by_number(query, "within", within) if common is None else {}
    if common is None and not targets:
        raise InvalidParameter("within must name at least one column")

    def aimed(plan: Plan) -> list[Line]:
        return [line for line in plan.lines if common is not None or line.name in targets]

    high = int(LARGEST / UNIT)
    trials = trials_of(query)
    sharpest = plan_of(study, query, epsilon=high * UNIT, size=size, trials=trials, **more)
    for line in aimed(sharpest):
        if line.reach is None and not line.sized:
            title = sharpest.titles()[line.name]
            raise InvalidParameter(
                f"within needs columns with a known error, and {title} has none: give epsilon"
            )
    size = size or _known_size(study, query, {line.name for line in aimed(sharpest)})
    sharpest = replace(sharpest, size=size)
    if any(line.reach is None for line in aimed(sharpest)):
        raise InvalidParameter(
            "within needs size=, the least number of rows with a value in a group, because it is"
            " private here"
        )

    aims = {line.name: _as_float(common or targets[line.name]) for line in aimed(sharpest)}

    def share(units: int) -> float:
        """The largest error, as a share of what it may be."""
        return max(
            (line.reach or 0.0) / aims[line.name] for line in aimed(scaled(sharpest, units * UNIT))
        )

    units = least(share, high, steps=trials)
    if units is None:
        raise InvalidParameter(
            f"within must be larger, got {quote(within)}: no ε gives such a small error here"
        )
    plan = scaled(sharpest, units * UNIT)
    for part in plan.shares:
        refuse_rank_overflow(part.design, part.terms, part.epsilon)
    return plan


def trials_of(query: Query) -> int:
    """At how many ε at most the search for an error computes a plan."""
    return int(LARGEST / UNIT).bit_length() + _GUESSES if len(query.aggregates) <= _FEW else _STEPS


def scaled(plan: Plan, epsilon: Fraction) -> Plan:
    """The same plan at another ε: what is measured and each design's part of ε do not change."""
    shares = tuple(
        replace(share, epsilon=share.epsilon * epsilon / plan.epsilon) for share in plan.shares
    )
    return replace(plan, epsilon=epsilon, shares=shares)


def least(share: Callable[[int], float], most: int, *, steps: int) -> int | None:
    """The least of the units, from 1 on, at which a share is at most 1; None beyond `most`.

    A share falls about as 1/units. After so many steps it is the least that was found.

    Halving would take a step for each bit of `most`. A line in 1/units guesses better, but not
    where shares are in steps: there are at most `_GUESSES` steps more than halving would take.
    """
    above = share(most)
    if above > 1:
        return None
    low, high, below, bits = 0, most, math.inf, most.bit_length()
    for step in range(steps):
        if high - low <= 1:
            break
        guess = (low + high) // 2
        if step - (bits - (high - low).bit_length()) < _GUESSES and above > 0:
            if low and below > above:
                inverse = 1 / high + (1 - above) * (1 / low - 1 / high) / (below - above)
                guess = round(1 / inverse) if inverse > 0 else guess
                guess += -1 if step % 2 else 1  # so that the root comes between two neighbours
            else:
                guess = int(high * above) if step % 2 else int(high * above * 0.99)
            guess = min(max(guess, low + 1), high - 1)
        found = share(guess)
        if found <= 1:
            high, above = guess, found
        else:
            low, below = guess, found
    return high


def _known_size(study: Study, query: Query, names: Collection[str]) -> int | None:
    """The number of units, if it is public and every unit counts in these numbers."""
    dropped = any(
        name in names and isinstance(moment, Moment) and moment.missing is None
        for name, moment in query.aggregates
    )
    if dropped or not (public_size(study.policy, study.engine).value and keeps_every_unit(query)):
        return None
    return max(1, public_count(study.engine.units(study.policy.unit_column)))


def _as_float(target: Fraction) -> float:
    """A wanted error as a float; one that is too large for it is infinite, and any ε will do."""
    try:
        return float(target)
    except OverflowError:
        return math.inf
