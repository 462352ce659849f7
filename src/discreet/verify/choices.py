"""A check of the law of choices: small tables are released, and the sampler's arguments compared.

With N records in a group, c₍ before a cell and c₎ up to its end, and the rank r = share·N + offset,
the law says, in every group, up to a constant,

    unit·exponent(cell) = max(over·(c₍ − r), under·(r − c₎), 0) + handicap(cell)

The handicap is 0 without points, and the same for all tables with points: it must not depend on
rows. For any two tables that differ by one unit, the moves of the costs of two cells may differ by
no more than the loss of the part, all groups together. All tables give the same choices, so that
brackets, the points that follow, and everything that is shown must be the same. Some tables are
small, others have millions of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.engines.base import Exact
from discreet.engines.integers import CellCounts
from discreet.errors import InvalidParameter
from discreet.release.design import Estimate
from discreet.verify.loss import Part
from discreet.verify.recorded import Draw, Watched, apart, recording

Table: TypeAlias = list[tuple[int, int, int]]  # records as (group, cell, number)
# choices, each with the counts of all groups that it opened
Run: TypeAlias = Sequence[tuple[Draw, Any]]


_CROWD = 2**22
"""Records in a cell of a large table."""


def require_costs(
    release: Callable[[Exact[Any]], Any], width: int, draws: Sequence[Draw], parts: Sequence[Part]
) -> None:
    """Refuse a release of counts if its choices are not those of the parts, or break their law.

    `draws` has the recorded choices on zeros, one for each part.
    """
    about = parts[0]
    groups = sorted({0, 1, about.cells // 2, about.cells - 1} & set(range(about.cells)))
    places = sorted({(width - 1) * quarters // 4 for quarters in range(5)})
    # so many that ranks in the middle lie among the records, and those of brackets
    # and extremes, too
    many = math.ceil(max(abs(draw.terms[1]) for draw in draws)) + 1
    spread, crowd = (
        [
            (group, place, number + index + (most if 0 < index < 4 else 1))
            for number, group in enumerate(groups)
            for index, place in enumerate(places)
        ]
        for most in (many, max(many, _CROWD))
    )
    own = sorted({*places, (width - 1) // 3})  # a value that others have, or that nobody has
    units = [*((groups[0], place) for place in own), *((group, places[-1]) for group in groups[1:])]
    for base, reply in (([], lambda *_: 0), (spread, apart), (crowd, apart)):
        tables: list[Table] = [base, *([*base, (*unit, about.rows)] for unit in units)]
        runs, shown = list[Run](), list[Any]()
        for number, table in enumerate(tables):
            columns, opened = [np.array(column) for column in zip(*table, strict=True)], list[Any]()
            counts = CellCounts.added(
                about.cells, width, [(columns[0], columns[1], columns[2])] if table else []
            )
            # every other table as if a ledger kept the draws: both ways must cost the same
            with recording(on_ledger=number % 2 == 1, reply=reply) as drawn:
                shown.append(_shown(release(Watched([counts], opened))))
            if [draw.terms[:-1] for draw in drawn] != [draw.terms[:-1] for draw in draws] or len(
                opened
            ) != len(draws):
                raise InvalidParameter(f"{about.statistic} must choose the same on all tables")
            runs.append(list(zip(drawn, opened, strict=True)))
        if any(some != shown[0] for some in shown):
            raise InvalidParameter(
                f"{about.statistic} must show the same numbers for the same choices"
            )
        for choices, part in zip(zip(*runs, strict=True), parts, strict=True):
            _require_law(choices, groups, part)


def _shown(released: Mapping[str, Any]) -> dict[str, Any]:
    """A release's numbers and interval ends, as lists; a bracket holds at any low confidence."""
    low = Fraction(1, 100)
    columns = {
        name: (some.values, *some.ends(low)) if isinstance(some, Estimate) else some
        for name, some in released.items()
    }
    return {
        name: [np.asarray(column).tolist() for column in three] for name, three in columns.items()
    }


def _require_law(choices: Run, groups: list[int], part: Part) -> None:
    """Refuse a choice whose costs are not the law's, or move further than the part allows."""
    tables = range(len(choices))
    pairs = list(combinations(tables, 2)) if part.replaced else [(0, table) for table in tables[1:]]
    moved = dict.fromkeys(pairs, Fraction())
    for group in groups:
        handicaps, exponents = [], []
        for draw, opened in choices:
            unit, costs = draw.costs(part.cells, group)
            excess = costs - lawful(
                CellCounts.of(opened)[group], draw.terms, unit, costs.size, part
            )
            handicaps.append(excess - excess.min())
            exponents.append((unit, costs))
        points = [draw.terms[-1] and draw.terms[-1][group] for draw, _ in choices]
        if points[0] is None and any(some.any() for some in handicaps):
            raise InvalidParameter(f"a rank of {part.statistic} does not cost what its law says")
        if any(some != points[0] for some in points) or any(
            (some != handicaps[0]).any() for some in handicaps
        ):
            raise InvalidParameter(f"a handicap of {part.statistic} must not depend on rows")
        for first, second in pairs:
            (unit, mine), (_, theirs) = exponents[first], exponents[second]
            moved[first, second] += int(np.ptp(mine - theirs)) * unit
    if max(moved.values()) > part.loss:
        raise InvalidParameter(
            f"a unit moves the costs of {part.statistic} by more than their law allows"
        )


def lawful(
    counts: NDArray[np.int64], terms: tuple[Any, ...], unit: Fraction, cells: int, part: Part
) -> NDArray[np.int64]:
    """The costs of all cells by the law, in units."""
    share, offset, over, under, beyond, _ = terms
    shared = math.lcm(share.denominator, offset.denominator)
    rank = int((share * int(counts.sum()) + offset) * shared)
    above, below = (rate / shared / unit for rate in (over, under))
    largest = max(above, below) * (shared * int(counts.sum()) + abs(rank))
    if (
        above.denominator * below.denominator != 1
        or largest >= 2**62
        or cells != counts.size + 2 * beyond
    ):
        raise InvalidParameter(f"a rank of {part.statistic} does not cost what its law says")
    ends = np.cumsum(counts) * shared
    starts = ends - counts * shared
    if beyond:  # an empty cell holds all ranks below 0, another one all ranks above N
        starts = np.array([min(rank, 0), *starts, ends[-1]])
        ends = np.array([0, *ends, max(rank, ends[-1])])
    costs: NDArray[np.int64] = np.maximum(int(above) * (starts - rank), int(below) * (rank - ends))
    return np.maximum(costs, 0, out=costs)
