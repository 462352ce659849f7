"""The parts of a release as they will be drawn: of a plan, of a statistic of an array, of Algorithm 1.

Scales and steps come from the code that releases (its designs, its rounding of large totals, run on zeros); the laws,
and who may do what, come from the policy and the question alone, so that a wrong scale cannot excuse itself. No data is
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.ask.policy import Policy
from discreet.ask.query import Count, CountUnits
from discreet.calibrate.bounds import exact_bounds, exact_chance, exact_count, exact_neighbors
from discreet.calibrate.epsilon import exact_epsilon, exact_sensitivity, quote
from discreet.calibrate.grid import ValueGrid, grid_of, value_grid
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.release import estimators, moments, quantile
from discreet.release.design import CountDesign, KnownCount, MomentDesign, Terms
from discreet.release.mechanism import noisy_columns
from discreet.release.plan import Plan
from discreet.release.ranks import ExtremeDesign, QuantileDesign, rank_rate
from discreet.release.shares import Share
from discreet.release.tree import tree_design
from discreet.verify.loss import Part

STATISTICS = (
    "count",
    "sum",
    "mean",
    "proportion",
    "variance",
    "std",
    "mean and std",
    "median",
    "quantile",
    "min",
    "max",
    "histogram",
    "cdf",
    "randomized_response",
    "laplace_mechanism",
)


def parts_of_plan(plan: Plan) -> list[Part]:
    """All parts of a plan."""
    return [part for parts in parts_by_share(plan) for part in parts]


def parts_by_share(plan: Plan) -> list[list[Part]]:
    """For each design of a plan its parts."""
    titles = plan.titles()
    return [_parts_of_share(share, plan.study.policy, plan, titles) for share in plan.shares]


def _parts_of_share(share: Share, policy: Policy, plan: Plan, titles: dict[str, str]) -> list[Part]:
    design, terms, epsilon = share.design, share.terms, share.epsilon
    rows = 1 if policy.unit_column is None else policy.max_rows or 1
    about: dict[str, Any] = {
        "statistic": ", ".join(titles[name] for name in design.names),
        "neighbors": policy.neighbors,
        "epsilon": epsilon,
        "rows": rows,
        "spread": min(rows, policy.max_groups or rows),
        "cells": plan.cells,
    }
    everybody = policy.neighbors == "change-one" and plan.query.where is None and not plan.query.groups
    each = policy.unit_column is None
    match design:
        case KnownCount():
            _require(everybody and (each or isinstance(design.of, CountUnits)) and _of_all(design.of), about)
            return [Part(**about, law="public", facts={})]
        case CountDesign():
            law = "units" if isinstance(design.of, CountUnits) else "rows"
            moved = terms.touched if law == "units" else terms.steps  # what the design divides by ε
            return [_noisy(about, law, {}, [moved / epsilon], terms.touched)]
        case MomentDesign():
            _require(not terms.public or (everybody and each and design.of.missing is not None), about)
            law = _moment_law(design, terms)
            return [_noisy(about, law, _ends(design.grid), design.scales(terms, epsilon), terms.touched)]
        case QuantileDesign():
            return _quantile_parts(about, design, terms, titles)
        case ExtremeDesign():
            return [_extreme(about, design.of.side, epsilon / terms.steps)]
    raise InvalidParameter(f"a certificate knows no law for a {type(design).__name__}")


def _of_all(of: Count | CountUnits) -> bool:
    return isinstance(of, CountUnits) or of.of is None


def _require(holds: bool, about: dict[str, Any]) -> None:
    if not holds:
        raise InvalidParameter(f"{about['statistic']} takes a number of rows as public that is private here")


def _moment_law(design: MomentDesign, terms: Terms) -> str:
    if terms.public:
        return "joint" if design.squares else "lone"
    if design.squares:
        return "bernstein"
    return "sum" if design.alone else "pair"


def _quantile_parts(about: dict[str, Any], design: QuantileDesign, terms: Terms, titles: dict[str, str]) -> list[Part]:
    """A choice for the value, and two for its bracket, of each quantile."""
    each = about["epsilon"] / len(design.names)
    found = []
    for name, share in zip(design.names, design.of.shares, strict=True):
        rate = rank_rate(share, terms, each * quantile.VALUE_PART)
        found += _rank_choices({**about, "statistic": titles[name], "epsilon": each}, share, rate, bracket=True)
    return found


def _rank_choices(about: dict[str, Any], share: Fraction, rate: Fraction, *, bracket: bool) -> list[Part]:
    def choice(what: str, at: Fraction, part: Fraction) -> Part:
        named = {**about, "statistic": f"{about['statistic']}{what}", "epsilon": about["epsilon"] * part}
        return Part(**named, law="choice", facts={"share": share, "over": at, "under": at})

    if not bracket:
        return [choice("", rate, Fraction(1))]
    end = (1 - quantile.VALUE_PART) / 2
    ends = [choice(f", {side} end", rate * quantile.END_RATE, end) for side in ("lower", "upper")]
    return [choice("", rate, quantile.VALUE_PART), *ends]


def _extreme(about: dict[str, Any], side: str, epsilon: Fraction) -> Part:
    far, near = quantile._OVER * epsilon, quantile._UNDER * epsilon
    over, under, share = (far, near, Fraction(1)) if side == "max" else (near, far, Fraction(0))
    return Part(**about, law="choice", facts={"share": share, "over": over, "under": under})


def _noisy(
    about: dict[str, Any], law: str, facts: dict[str, Fraction], scales: Sequence[Fraction], changes: int = 1
) -> Part:
    """A part with the steps and scales that the mechanism draws with."""
    columns = noisy_columns(Exact([[0]] * len(scales)), list(scales), about["epsilon"], changes)
    steps = tuple(Fraction(column.step) for column in columns)
    return Part(**about, law=law, facts=facts, scales=tuple(column.scale for column in columns), steps=steps)


def _ends(grid: ValueGrid) -> dict[str, Fraction]:
    return {"lower": Fraction(grid.lower), "upper": Fraction(grid.upper)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A statistic of an array by its public parameters."""

    statistic: str
    epsilon: Fraction
    neighbors: str
    bounds: tuple[Fraction, Fraction]
    whole: bool
    share: Fraction
    bracket: bool
    cells: int

    def grid(self, bits: int) -> ValueGrid:
        """The grid of the values."""
        return value_grid(self.bounds, bits=bits, whole=self.whole)


def parts_of_statistic(statistic: str, *, epsilon: Any, **given: Any) -> list[Part]:
    """The parts of a statistic of an array, as `discreet.mean` and the like release it with `method="best"`."""
    exact = exact_epsilon(epsilon)
    if statistic == "laplace_mechanism":
        return [_algorithm(exact, **given)]
    known = {"bounds", "neighbors", "whole", "q", "confidence", "bins", "cells"}
    if unknown := set(given) - known:
        raise InvalidParameter(f"a statistic is described by {', '.join(sorted(known))}, got {quote(unknown.pop())}")
    if statistic not in STATISTICS:
        raise InvalidParameter(f"a statistic must be one of {', '.join(STATISTICS)}, got {quote(statistic)}")
    truths = statistic in ("count", "proportion", "randomized_response")
    if not truths and statistic != "histogram" and given.get("bounds") is None:
        raise InvalidParameter(f"the certificate of a {statistic} needs bounds=, the declared ones")
    asked = Described(
        statistic=statistic,
        epsilon=exact,
        neighbors=exact_neighbors(given.get("neighbors", "change-one")),
        bounds=exact_bounds((0, 1) if truths or statistic == "histogram" else given["bounds"]),
        whole=truths or bool(given.get("whole", False)),
        share=exact_chance("q", given["q"]) if "q" in given else Fraction(1, 2),
        bracket=given.get("confidence", "0.95") is not None,
        cells=exact_count("cells", given.get("bins", given.get("cells", 1024))),
    )
    return _parts_of_array(asked)


def _parts_of_array(asked: Described) -> list[Part]:  # noqa: PLR0911 - one case for each statistic
    epsilon, public = asked.epsilon, asked.neighbors == "change-one"
    about: dict[str, Any] = {"statistic": asked.statistic, "neighbors": asked.neighbors, "epsilon": epsilon}
    one = (Fraction(1),)
    match asked.statistic:
        case "randomized_response":
            return [Part(**about, law="coin", facts={"exponent": epsilon})]
        case "count":
            return [_noisy(about, "rows", {}, [1 / epsilon])]
        case "histogram":
            noised = (
                1 if public and asked.cells == 2 else asked.cells
            )  # of two bins one is noised, the other is the rest
            scale = Fraction(2 if public and asked.cells != 2 else 1) / epsilon
            return [Part(**about, law="rows", facts={}, scales=(scale,), steps=one, cells=noised)]
        case "cdf":
            grid = asked.grid(asked.cells.bit_length() - 1)
            tree = tree_design(grid.width + 1, exact_neighbors(asked.neighbors), epsilon)
            return [Part(**about, law="tree", facts={"height": Fraction(tree.height)}, scales=(tree.scale,), steps=one)]
        case "median" | "quantile":
            value = epsilon * quantile.VALUE_PART if asked.bracket else epsilon
            rate = quantile.rank_rate(asked.share, exact_neighbors(asked.neighbors), value)
            return _rank_choices(about, asked.share, rate, bracket=asked.bracket)
        case "min" | "max":
            return [_extreme(about, asked.statistic, epsilon)]
    return [_moments(asked, about, public)]


def _moments(asked: Described, about: dict[str, Any], public: bool) -> Part:
    epsilon = asked.epsilon
    if asked.statistic in ("variance", "std", "mean and std"):
        grid = asked.grid(estimators.SQUARE_BITS)
        scales = (moments.joint_scales if public else moments.bernstein_scales)(grid.width, epsilon)
        return _noisy(about, "joint" if public else "bernstein", _ends(grid), scales)
    grid = asked.grid(estimators.SUM_BITS)
    if public:
        return _noisy(about, "lone", _ends(grid), [grid.width / epsilon])
    if asked.statistic == "sum":
        return _noisy(about, "sum", _ends(grid), [max(abs(grid.lower), abs(grid.upper)) / epsilon])
    return _noisy(about, "pair", _ends(grid), moments.pair_scales(grid.width, epsilon))


def _algorithm(epsilon: Fraction, *, sensitivity: Any, changes: Any = 1, whole: bool = False) -> Part:
    """Algorithm 1 on integers (`whole`) or on floats, of which one unit changes so many."""
    delta, many = exact_sensitivity(sensitivity), exact_count("changes", changes)
    grid = grid_of(whole, delta, epsilon, many)
    return Part(
        statistic="laplace_mechanism",
        law="answer",
        neighbors="change-one",
        epsilon=epsilon,
        facts={"sensitivity": delta, "changes": Fraction(0 if whole else many)},
        scales=(grid.scale,),
        steps=(grid.step,),
    )
