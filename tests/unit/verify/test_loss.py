"""The laws of what one unit can do, against all that it can do on small grids, counted out."""

from fractions import Fraction
from itertools import product

import pytest
from flint import ctx

from discreet.calibrate.ball import ball
from discreet.errors import InvalidParameter
from discreet.verify.loss import Part

RELATIONS = ("change-one", "add-remove")

VECTORS = {
    "rows": lambda _x, _lower, _upper: (1,),
    "sum": lambda x, _lower, _upper: (x,),
    "lone": lambda x, lower, _upper: (x - lower,),
    "pair": lambda x, lower, upper: (x - lower, upper - x),
    "joint": lambda x, lower, upper: (x - lower, (x - lower) * (upper - x)),
    "bernstein": lambda x, lower, upper: (
        (upper - x) ** 2,
        2 * (x - lower) * (upper - x),
        (x - lower) ** 2,
    ),
    "centred": lambda x, lower, upper: (2 * x - lower - upper, 1),
    "squares": lambda x, lower, upper: (
        2 * x - lower - upper,
        8 * (x - lower) * (upper - x) - (upper - lower) ** 2,
        1,
    ),
}
SCALES = {
    1: [(Fraction(7, 3),)],
    2: [(3, 3), (2, 7)],
    3: [(5, 5, 5), (4, 9, 6), (9, 2, 9), (2, 30, 1)],
}


def part_of(law, neighbors, scales, *, lower=0, upper=4, rows=1, cells=1, steps=None):
    facts = {} if law == "rows" else {"lower": Fraction(lower), "upper": Fraction(upper)}
    return Part(
        statistic=law,
        law=law,
        neighbors=neighbors,
        epsilon=Fraction(1),
        facts=facts,
        scales=tuple(map(Fraction, scales)),
        steps=tuple(map(Fraction, steps or [1] * len(scales))),
        rows=rows,
        spread=rows,
        cells=cells,
    )


def contents(law, lower, upper, rows, cells):
    """All totals that one unit can have: for every group, for every coordinate."""
    vector = VECTORS[law]
    each = [
        (group, vector(x, lower, upper)) for group in range(cells) for x in range(lower, upper + 1)
    ]
    always = law in ("lone", "joint")
    width = len(each[0][1])
    for count in range(1 if always else 0, rows + 1):
        for chosen in product(each, repeat=count):
            total = [[0] * width for _ in range(cells)]
            for group, moves in chosen:
                for index, move in enumerate(moves):
                    total[group][index] += move
            yield total


def worst(law, neighbors, scales, lower, upper, rows, cells, steps=None):
    """The largest loss over all pairs of units, with totals of others that make rounding worst."""
    steps = steps or [1] * len(scales)
    states = [*{str(one): one for one in contents(law, lower, upper, rows, cells)}.values()]
    nothing = [[0] * len(scales) for _ in range(cells)]
    pairs = product(states, states) if neighbors == "change-one" else product(states, [nothing])
    return max(
        sum(
            max(
                abs((2 * (base + a) + step) // (2 * step) - (2 * (base + b) + step) // (2 * step))
                for base in range(step)
            )
            / scale
            for mine, theirs in zip(one, two, strict=True)
            for a, b, scale, step in zip(mine, theirs, map(Fraction, scales), steps, strict=True)
        )
        for one, two in pairs
    )


CASES = [
    (law, neighbors, scales, bounds, rows, cells)
    for law in VECTORS
    for neighbors in RELATIONS
    for scales in SCALES[len(VECTORS[law](0, 0, 4))]
    for bounds in ((0, 4), (-1, 2), (3, 5))
    for rows, cells in ((1, 1), (2, 1), (1, 2), (2, 2))
    if law not in ("lone", "joint") or (neighbors == "change-one" and rows == cells == 1)
]


@pytest.mark.parametrize("law", VECTORS)
def test_a_law_is_the_largest_loss_of_all_units(law):
    for _, neighbors, scales, (lower, upper), rows, cells in (
        case for case in CASES if case[0] == law
    ):
        if rows * cells * (upper - lower) > 8:
            continue
        part = part_of(law, neighbors, scales, lower=lower, upper=upper, rows=rows, cells=cells)
        true = worst(law, neighbors, scales, lower, upper, rows, cells)
        assert part.loss >= true, (neighbors, scales, lower, upper, rows, cells)
        if law != "bernstein" or len(set(scales)) == 1:
            assert part.loss == true, (neighbors, scales, lower, upper, rows, cells)


@pytest.mark.parametrize("law", ["sum", "pair", "bernstein"])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_rounding_to_a_step_is_paid_for(law, neighbors):
    scales = SCALES[len(VECTORS[law](0, 0, 4))][0]
    for step, cells in product((2, 3), (1, 2)):
        steps = [step] * len(scales)
        part = part_of(law, neighbors, scales, upper=5, cells=cells, steps=steps)
        unpaid = part_of(law, neighbors, [scale * step for scale in scales], upper=5, cells=cells)
        assert unpaid.loss < worst(law, neighbors, scales, 0, 5, 1, cells, steps) <= part.loss


def test_a_row_in_a_tree_is_in_one_node_of_each_level():
    tree = {
        "statistic": "cdf",
        "law": "tree",
        "epsilon": Fraction(1),
        "facts": {"height": Fraction(3)},
    }
    for neighbors, moved in (("change-one", 6), ("add-remove", 3)):
        part = Part(**tree, neighbors=neighbors, scales=(Fraction(moved),), steps=(Fraction(1),))
        assert part.loss == 1
        assert part.sensitivity == moved


def gaps(counts, share, offset, over, under):
    """What each cell costs, from the definition."""
    total, states, before = sum(counts), [], 0
    rank = share * total + offset
    for count in counts:
        states.append(max(over * (before - rank), under * (rank - before - count), Fraction(0)))
        before += count
    return states


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(
    ("share", "over", "under"),
    [("1/2", 1, 1), ("9/10", 1, 1), ("0", "3/10", "7/10"), ("1", "7/10", "3/10"), ("1/3", 2, 1)],
)
def test_a_choice_costs_the_range_of_the_moves_of_its_gaps(neighbors, share, over, under):
    share, over, under = Fraction(share), Fraction(over), Fraction(under)
    facts = {"share": share, "over": over, "under": under}
    part = Part(statistic="q", law="choice", neighbors=neighbors, epsilon=Fraction(9), facts=facts)
    losses = []
    for counts in product(range(3), repeat=4):
        others = []
        for index in range(4):
            if counts[index]:
                fewer = [count - (cell == index) for cell, count in enumerate(counts)]
                others += [
                    [count + (cell == to) for cell, count in enumerate(fewer)] for to in range(4)
                ]
                if neighbors == "add-remove":
                    others = [*others[:-4], fewer]
        for other, offset in product(others, (0, -1, Fraction(3, 2))):
            moves = [
                a - b
                for a, b in zip(
                    *(gaps(c, share, offset, over, under) for c in (counts, other)), strict=True
                )
            ]
            losses.append(max(moves) - min(moves))
    assert max(losses) <= part.loss
    assert max(losses) >= part.loss * Fraction(4, 5)


def test_the_ball_of_the_log_ratio_agrees_with_the_loss():
    with ctx.workprec(192):
        for law, neighbors, scales, (lower, upper), rows, cells in CASES:
            part = part_of(law, neighbors, scales, lower=lower, upper=upper, rows=rows, cells=cells)
            assert part.log_ratio.overlaps(ball(part.loss))
        coin = Part(
            statistic="r",
            law="coin",
            neighbors="change-one",
            epsilon=Fraction(1),
            facts={"exponent": Fraction(1)},
        )
        assert coin.log_ratio.overlaps(ball(Fraction(1)))
        assert coin.loss == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"law": "gauss"},
        {"rows": 0},
        {"scales": (Fraction(0),)},
        {"scales": ()},
        {"facts": {"lower": Fraction(0)}},
        {
            "law": "lone",
            "neighbors": "add-remove",
            "facts": {"lower": Fraction(0), "upper": Fraction(1)},
        },
        {"law": "sum", "facts": {"lower": Fraction(1), "upper": Fraction(1)}},
        {"law": "public", "neighbors": "add-remove", "scales": (), "steps": ()},
    ],
)
def test_a_part_that_cannot_be_is_refused(wrong):
    right = {
        "statistic": "n",
        "law": "rows",
        "neighbors": "change-one",
        "epsilon": Fraction(1),
        "facts": {},
    }
    right |= {"scales": (Fraction(1),), "steps": (Fraction(1),)}
    Part(**right)
    with pytest.raises(InvalidParameter, match="is impossible"):
        Part(**{**right, **wrong})
