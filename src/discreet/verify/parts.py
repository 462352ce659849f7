"""The parts of a release as they are drawn: of a plan, a report, a statistic of an array, Algorithm
1.

The release code runs on zeros, and its calls to the samplers are recorded (`recorded`): they give
the scales, steps and rates. All ways to release are run (to a table and to a file, with and without
a ledger, numbers, lists and arrays), and must draw the same. Totals and choices are also tried with
rows (`joint`, `choices`). The laws and the limits of a unit come from the policy and the question
alone, so that a wrong scale cannot change the law that it is checked against. No data is read.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet import arrays
from discreet.ask.policy import Policy
from discreet.ask.query import CountUnits
from discreet.ask.statistics import STATISTICS
from discreet.draw.coin import Logistic
from discreet.engines.base import Cells, Exact, Present, Rows, Squares, Total, Units
from discreet.engines.integers import column
from discreet.errors import InvalidParameter
from discreet.files.answer_file import batches_of, unstreamed
from discreet.parameters import (
    exact_count,
    exact_epsilon,
    exact_neighbors,
    exact_sensitivity,
    quote,
)
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.release.plan import Plan
from discreet.release.profiles.octaves import OctaveDesign
from discreet.release.profiles.plan import LEAST, ProfilePlan
from discreet.release.question import NotedDesign, noting_designs
from discreet.release.reports.plan import ReportPlan
from discreet.release.split import Share
from discreet.release.statistics.counts import CountDesign, HistogramDesign, KnownCount, TreeDesign
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import VALUE_PART, ExtremeDesign, QuantileDesign
from discreet.release.statistics.response import randomized_response
from discreet.release.study import Study
from discreet.verify.choices import require_costs
from discreet.verify.joint import joint_law, report_law, require_report_totals, require_totals
from discreet.verify.loss import Part
from discreet.verify.recorded import Draw, recorded, recording

NAMES = (
    *(row.name for row in STATISTICS.values() if row.examples),
    *("bounds", "randomized_response", "laplace_mechanism"),
)
"""The statistics that have a certificate, by the name of their function."""

About = dict[str, Any]  # the fields that all parts of a release share


def parts_of(plan: Plan | ReportPlan | ProfilePlan) -> list[Part]:
    """All parts of the plan of a question, a report or a profile."""
    if isinstance(plan, Plan):
        return parts_of_plan(plan)
    return _parts_of_report(plan) if isinstance(plan, ReportPlan) else _parts_of_profile(plan)


def parts_of_plan(plan: Plan) -> list[Part]:
    """All parts of a plan, whether it is released to a table or to a file."""
    parts = [part for parts in parts_by_share(plan) for part in parts]
    if unstreamed(plan) is None:
        _require_same_in_file(plan, parts)
    return parts


def _parts_of_report(plan: ReportPlan) -> list[Part]:
    """All measured sets of a report as one part, in which each set is a family."""
    policy, design = plan.study.policy, plan.design
    facts, sizes = report_law(design)
    about = _about(policy, f"{len(plan.layout.tables)} tables", plan.epsilon, max(sizes, default=1))
    shape = [
        attribute.axis.sizes[-1] for attribute in design.attributes if attribute.group is not None
    ]
    cells = sum(math.prod(shape[index] for index in chosen) for chosen in design.sets())
    zeros: list[Any] = [column(np.zeros(cells, np.int64)) for _ in design.measures()]
    with recording() as draws:
        plan.drawn(Exact(zeros), lambda: Exact(0))
    everybody = all_counted(plan.study) and plan.layout.where is None
    _take_public(draws, everybody and policy.unit_column is None, about)
    draw = _next(draws, "sums", about)
    steps = tuple(Fraction(step) for step in draw.terms[: len(sizes)])
    part = Part(**about, law="families", facts=facts, scales=draw.scales_of(sizes), steps=steps)
    _nothing_more(draws, about)
    require_report_totals(design, part, sizes)
    return [part]


def _parts_of_profile(plan: ProfilePlan) -> list[Part]:
    """One part for each column, and one for the rows per unit; a unit is in one bin of each,
    however many its rows.
    """
    parts = []
    for design in plan.designs:
        about = _about(plan.study.policy, design.name, plan.share, design.cells)
        release = partial(plan.drawn, design)
        with recording() as draws:
            release(Exact([[0] * design.cells]))
        row_is_unit = plan.study.policy.unit_column is None
        parts += _parts(design, release, draws, about, {}, everybody=False, row_is_unit=row_is_unit)
        _nothing_more(draws, about)
    return parts


def _about(policy: Policy, statistic: str, epsilon: Fraction, cells: int) -> About:
    """The limits of a unit, from the policy."""
    rows = 1 if policy.unit_column is None else policy.max_rows or 1
    return {
        "statistic": statistic,
        "neighbors": policy.neighbors,
        "epsilon": epsilon,
        "rows": rows,
        "spread": min(rows, policy.max_groups or rows),
        "cells": cells,
    }


def parts_by_share(plan: Plan) -> list[list[Part]]:
    titles = plan.titles()
    return [_parts_of_share(share, plan, titles) for share in plan.shares]


def all_counted(study: Study) -> bool:
    """Whether the number of units is public, decided apart from the code that releases."""
    policy = study.policy
    return policy.neighbors == "change-one" and (policy.size == "public" or not study.engine.chosen)


def _parts_of_share(share: Share, plan: Plan, titles: dict[str, str]) -> list[Part]:
    policy, query = plan.study.policy, plan.query
    about = _about(
        policy, ", ".join(titles[name] for name in share.design.names), share.epsilon, plan.cells
    )
    everybody = all_counted(plan.study) and query.where is None and not query.groups
    if isinstance(share.design, MomentDesign):
        everybody = everybody and share.design.of.missing is not None

    def release(exact: Exact[Any]) -> Any:
        return replace(plan, shares=(share,)).numbers(exact, slice(None))

    with recording() as draws:
        release(Exact(_zero_totals(share, plan)))
    row_is_unit = policy.unit_column is None
    parts = _parts(
        share.design, release, draws, about, titles, everybody=everybody, row_is_unit=row_is_unit
    )
    _nothing_more(draws, about)
    return parts


def _parts(  # noqa: PLR0911 - one for each design
    design: object,
    release: Callable[[Exact[Any]], Any],
    draws: list[Draw],
    about: About,
    titles: Mapping[str, str],
    *,
    everybody: bool,
    row_is_unit: bool,
) -> list[Part]:
    """The parts of a design, from the draws of its release of zeros.

    `everybody`: no row is left out; `row_is_unit`: every row is a unit.
    """
    match design:
        case KnownCount():
            _require(
                everybody
                and (isinstance(design.of, CountUnits) or (row_is_unit and design.of.of is None)),
                about,
            )
            _next(draws, "public", about)
            return [Part(**about, law="public", facts={})]
        case CountDesign():
            if design.measures() != (
                (Units(),) if isinstance(design.of, CountUnits) else (Rows(design.of.of),)
            ):
                raise InvalidParameter(f"{about['statistic']} must be a count")
            return [
                _noisy(draws, about, "units" if isinstance(design.of, CountUnits) else "rows", {})
            ]
        case HistogramDesign():
            [scale], cells = _next(draws, "counts", about).scales(1)
            is_public = _take_public(
                draws, everybody and row_is_unit and design.bins.number == 2 and cells == 1, about
            )
            if not is_public and cells != design.bins.number:
                raise InvalidParameter(f"{about['statistic']} must have noise on each bin")
            return [
                Part(
                    **{**about, "cells": cells},
                    law="rows",
                    facts={},
                    scales=(scale,),
                    steps=(Fraction(1),),
                )
            ]
        case OctaveDesign():
            [scale], cells = _next(draws, "counts", about).scales(1)
            if cells != design.cells:
                raise InvalidParameter(f"{about['statistic']} must have noise on each bin")
            fields = {**about, "spread": 1, "cells": cells}
            return [Part(**fields, law="units", facts={}, scales=(scale,), steps=(Fraction(1),))]
        case MomentDesign():
            _require_measures(
                design, (Present, Total, Squares)[: 3 if design.squares else 2], about
            )
            same_group = about["neighbors"] == "change-one" and about.get("cells", 1) == 1
            is_public = any(draw.kind == "public" for draw in draws[1:2])
            ends = {"lower": Fraction(design.grid.lower), "upper": Fraction(design.grid.upper)}
            part = _noisy(
                draws, about, _moment_law(design, known=is_public, same_group=same_group), ends
            )
            _take_public(draws, everybody and row_is_unit, about)
            require_totals(design, part, known=is_public)
            return [part]
        case JointDesign():
            part = _noisy(
                draws, about, *joint_law(design, about["neighbors"], about.get("cells", 1))
            )
            require_totals(design, part)
            return [part]
        case QuantileDesign() | ExtremeDesign():
            _require_measures(design, (Cells,), about)
            share = about["epsilon"] / len(design.names)
            kinds = 3 if isinstance(design, QuantileDesign) and design.bracketed else 1
            descriptions = [
                {**about, "statistic": titles[name], "epsilon": share} for name in design.names
            ]
            choices = draws[: kinds * len(descriptions)]
            parts = [part for fields in descriptions for part in _choices(draws, fields, kinds)]
            require_costs(release, design.grid.width + 1, choices, parts)
            return parts
        case TreeDesign():
            _require_measures(design, (Cells,), about)
            draw = _next(draws, "tree", about)
            [scale], _ = draw.scales(1)
            _take_public(draws, everybody and row_is_unit, about)
            facts = {"height": Fraction(draw.terms[0].height)}
            return [Part(**about, law="tree", facts=facts, scales=(scale,), steps=(Fraction(1),))]
    raise InvalidParameter(f"a certificate knows no law for a {type(design).__name__}")


def _require_measures(
    design: MomentDesign | QuantileDesign | ExtremeDesign | TreeDesign,
    kinds: tuple[type, ...],
    about: About,
) -> None:
    """Refuse a design whose integers are not those of its law: of one value, on the grid of that
    value.
    """
    measures: tuple[Any, ...] = design.measures()
    values = {measure.value for measure in measures if hasattr(measure, "value")}
    if tuple(map(type, measures)) != kinds or len(values) != 1 or values.pop().grid != design.grid:
        raise InvalidParameter(
            f"{about['statistic']} must be made of integers of one value, on the grid of its bounds"
        )


def _take_public(draws: list[Draw], may: bool, about: About) -> bool:
    """Whether the number of rows is opened next, which is allowed only if it is public."""
    if not draws or draws[0].kind != "public":
        return False
    _require(may, about)
    draws.pop(0)
    return True


def _zero_totals(share: Share, plan: Plan) -> list[Any]:
    zeros = column(np.zeros(plan.cells, np.int64))
    return [
        (
            [np.zeros(measure.value.grid.width + 1, np.int64)] * plan.cells
            if isinstance(measure, Cells)
            else zeros
        )
        for measure in share.design.measures()
    ]


def _require_same_in_file(plan: Plan, parts: list[Part]) -> None:
    """Refuse a plan whose file is not drawn, batch by batch, with the scales and steps of its
    parts, one per share.
    """
    zeros = [totals for share in plan.shares for totals in _zero_totals(share, plan)]
    with recording() as draws:
        sizes = [batch.num_rows for batch in batches_of(plan, Exact(zeros))]
    about: About = {"statistic": "a file"}
    for size in sizes:
        for part in parts:
            draw, columns = _next(draws, "sums", about), len(part.scales)
            if (draw.terms[:columns], *draw.scales(columns)) != (part.steps, part.scales, size):
                raise InvalidParameter(
                    f"{part.statistic} has other noise in a file than in a table"
                )
    _nothing_more(draws, about)


def _require(holds: bool, about: About) -> None:
    if not holds:
        raise InvalidParameter(
            f"{about['statistic']} treats the number of rows as public, but it is private here"
        )


def _nothing_more(draws: list[Draw], about: About) -> None:
    """Refuse a release that draws, or opens, more than its parts."""
    if draws:
        raise InvalidParameter(f"{about['statistic']} draws more than its law covers")


def _next(draws: list[Draw], kind: str, about: About) -> Draw:
    if not draws or draws[0].kind != kind:
        raise InvalidParameter(f"{about['statistic']} does not draw what its law requires")
    return draws.pop(0)


def _moment_law(design: MomentDesign, *, known: bool, same_group: bool) -> str:
    if known:
        return "joint" if design.squares else "lone"
    if design.alone:
        return "sum"
    if same_group:
        return "squares" if design.squares else "centred"
    return "bernstein" if design.squares else "pair"


def _noisy(draws: list[Draw], about: About, law: str, facts: dict[str, Fraction]) -> Part:
    """The part of a design whose totals have independent noise."""
    draw = _next(draws, "sums", about)
    columns = len(draw.terms) // 2
    scales, size = draw.scales(columns)
    if size != about.get("cells", 1):
        raise InvalidParameter(f"{about['statistic']} must have noise on the total of each group")
    steps = tuple(Fraction(step) for step in draw.terms[:columns])
    return Part(**about, law=law, facts=facts, scales=scales, steps=steps)


def _choices(draws: list[Draw], about: About, kinds: int) -> list[Part]:
    """A single choice, or two for a bracket and one for the value within it; the same in every
    group.
    """
    terms = [_next(draws, "choice", about).terms for _ in range(kinds)]
    share = Fraction(1) if kinds == 1 else VALUE_PART
    choices = [*((f", {side} end", (1 - share) / 2) for side in ("lower", "upper")), ("", share)][
        -kinds:
    ]
    parts = []
    for (suffix, part), (rank, _, over, under, *_) in zip(choices, terms, strict=True):
        facts = {"share": rank, "over": over, "under": under}
        fields = {
            **about,
            "statistic": f"{about['statistic']}{suffix}",
            "epsilon": about["epsilon"] * part,
        }
        parts.append(Part(**fields, law="choice", facts=facts))
    return parts


def certified_twin(statistic: str, *, epsilon: Any, **parameters: Any) -> tuple[Any, list[Part]]:
    """A release of zeros by `discreet.mean` and the like, with these parameters and
    `method="best"`, and its parts.
    """
    exact = exact_epsilon(epsilon)
    if statistic not in NAMES:
        raise InvalidParameter(
            f"a statistic must be one of {', '.join(NAMES)}, got {quote(statistic)}"
        )
    if statistic == "laplace_mechanism":
        return _algorithm(exact, **parameters)
    of_arrays = getattr(arrays, statistic, partial(arrays.moment, statistic))
    call = randomized_response if statistic == "randomized_response" else of_arrays
    accepted = set(inspect.signature(call).parameters) - {
        "x",
        "bits",
        "epsilon",
        "account",
        "method",
    }
    if statistic == "bounds":  # fewer are refused
        parameters = {"n": math.ceil(LEAST / exact), **parameters}
    shape = {name: parameters.pop(name) for name in _SHAPE & set(parameters)}
    data = _zeros(**{"whole": statistic == "randomized_response", **shape})
    if statistic == "histogram" and "keys" not in parameters:
        parameters = {"bounds": (0, 1), **parameters}
    if unknown := set(parameters) - accepted:
        names = ", ".join(sorted({*accepted, *_SHAPE}))
        raise InvalidParameter(f"a {statistic} is described by {names}, got {quote(unknown.pop())}")
    if "bounds" in accepted and parameters.get("bounds") is None and "keys" not in parameters:
        raise InvalidParameter(
            f"the certificate of a {statistic} needs bounds=, the declared bounds"
        )
    with noting_designs() as designs:
        release, draws = recorded(lambda: call(data, epsilon=exact, **parameters))
    neighbors = exact_neighbors(parameters.get("neighbors", "change-one"))
    about: About = {"statistic": statistic, "neighbors": neighbors, "epsilon": exact}
    if statistic == "randomized_response":
        parts = [_coin(_next(draws, "loose", about), about)]
    else:
        dropped = parameters.get("missing") is None and (
            isinstance(data, np.ma.MaskedArray) or data.dtype.kind == "f"
        )
        if "keys" in parameters:  # with a group for all other values, nobody is left out
            dropped = parameters.get("other") is None
        parts = list(
            _parts_of_column(
                designs, draws, about, everybody=neighbors == "change-one" and not dropped
            )
        )
    _nothing_more(draws, about)
    return release, parts


def _parts_of_column(
    designs: list[NotedDesign], draws: list[Draw], about: About, *, everybody: bool
) -> Iterator[Part]:
    """The parts of the designs of a call, run with and without a ledger; their ε must add up to the
    call's ε.
    """
    on_ledger, without = designs[: len(designs) // 2], designs[len(designs) // 2 :]
    shares = [epsilon for _, epsilon, _ in on_ledger]
    if (
        shares != [epsilon for _, epsilon, _ in without]
        or sum(shares, Fraction()) != about["epsilon"]
    ):
        raise InvalidParameter(
            f"the designs of {about['statistic']} must add up to its ε, with a ledger and without"
        )
    for design, epsilon, release in on_ledger:
        title = about["statistic"] if len(on_ledger) == 1 else ", ".join(design.names)
        titles = dict.fromkeys(design.names, title)
        fields = {**about, "statistic": title, "epsilon": epsilon}
        yield from _parts(
            design, release, draws, fields, titles, everybody=everybody, row_is_unit=True
        )


# of a column: its length, whether it has integers, whether a value can be missing
_SHAPE = {"n", "whole", "nullable"}


def _zeros(*, n: Any = 1, whole: bool = False, nullable: bool | None = None) -> Any:
    size = exact_count("n", n)
    if not whole and nullable is False:
        raise InvalidParameter(
            "a column of floats can have missing values: give missing=, or whole=True for integers"
        )
    zeros = np.zeros(size, np.int8 if whole else np.float64)
    return np.ma.MaskedArray(zeros) if whole and nullable else zeros


def _coin(draw: Draw, about: About) -> Part:
    chances = {note.parameter for note in draw.notes}
    if len(chances) != 1 or not isinstance(chance := chances.pop(), Logistic):
        raise InvalidParameter("a randomized response must toss one coin, with odds of e^ε")
    return Part(**about, law="coin", facts={"exponent": chance.exponent})


def _algorithm(
    epsilon: Fraction, *, sensitivity: Any, changes: Any = 1, whole: bool = False
) -> tuple[Any, list[Part]]:
    """Algorithm 1 on integers (`whole`) or on floats; one unit changes up to `changes` of them."""
    delta, many = exact_sensitivity(sensitivity), exact_count("changes", changes)
    about: About = {"statistic": "laplace_mechanism", "neighbors": "change-one", "epsilon": epsilon}
    zeros = np.zeros(1, np.int64 if whole else np.float64)
    terms: dict[str, Any] = {"sensitivity": delta, "epsilon": epsilon, "changes": many}
    noises = set()
    for answer in (zeros.tolist()[0], zeros.tolist(), zeros):
        release, draws = recorded(partial(laplace_mechanism, answer, **terms))
        draw = _next(draws, "answer", about)
        noises.add((draw.scales(1)[0], (draw.terms[0].step,)))
        _nothing_more(draws, about)
    if len(noises) > 1:
        raise InvalidParameter("a number, a list and an array must be drawn with the same noise")
    [(scales, steps)] = noises
    facts = {"sensitivity": delta, "changes": Fraction(0 if whole else many)}
    return release, [Part(**about, law="answer", facts=facts, scales=scales, steps=steps)]
