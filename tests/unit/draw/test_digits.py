"""The numbers of noise: every edge, every cell of the tables, and the law they make together,
against mpmath.

The chances here are computed with 120 digits from the law of X and PROOF.md, with no code of
`draw.digits`.
"""

from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise

import mpmath
import numpy as np
import pytest
from flint import ctx

from discreet.draw import digits as module
from discreet.draw import vector
from discreet.draw.digits import digits
from scripted import Scripted

BITS, BITS_OF_FEW = vector._BITS, vector._BITS_OF_FEW
SCALES = [
    Fraction(text)
    for text in (
        "1/40",
        "1/7",
        "1/2",
        "1",
        "7/3",
        "10/3",
        "10",
        "16",
        "50/3",
        "100",
        "12345/67",
        "5000",
    )
]
SCALES += [Fraction(2**20 + 1, 3), Fraction(2**30), Fraction(2**49)]
CASES = [(scale, *bits) for scale in SCALES for bits in (BITS, BITS_OF_FEW, (4, 3), (4, 0))]
WORD = 2**64


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def chances(whole: module.Digits) -> list[mpmath.mpf]:
    """The chance of every number: tops by the law of X, and excesses by that of M < 2^k, P(M = m) =
    q^m/Σq^m.
    """
    return chances_of(whole.scale, whole.lower, whole.low, whole.half)


@cache  # five tests need those of a scale
@mpmath.workdps(120)
def chances_of(scale: Fraction, lower: int, low: int, half: int) -> list[mpmath.mpf]:
    q, size = power(1 / scale), 2**lower
    ends = [q * power(m * size / scale) / (1 + q) for m in range(half - 1, -1, -1)]  # P(X < −m·2^k)
    ends += [1 - power(h * size / scale) / (1 + q) for h in range(1, half + 1)]  # P(X < h·2^k)
    tops = [after - before for before, after in pairwise([0, *ends, 1])]
    total = (1 - power(size / scale)) / (1 - q)
    least = power((size - 1) / scale)
    uniform = size * least / total
    highest = [(high + 1) * 2**low - 1 for high in range(2 ** (lower - low) - 1)]
    excesses = [2**low * (power(m / scale) - least) / total for m in highest]
    if low:
        excesses.append(1 - uniform - mpmath.fsum(excesses))
    return [uniform * top for top in tops] + excesses


def own_cells(whole: module.Digits) -> list[int]:
    own = [after - before for before, after in pairwise([0, *whole.cells])]
    return [0, *own] + [0] * (len(whole.edges) - len(own))


def edges_of(whole: module.Digits) -> list[mpmath.mpf]:
    """Where the numbers meet in the shared cells, each without the cells that it has alone."""
    shared = [
        chance - mpmath.mpf(own) / 2**16
        for chance, own in zip(chances(whole), own_cells(whole), strict=True)
    ]
    return [mpmath.mpf(whole.cells[-1]) / 2**16 + below for below in list(accumulate(shared))[:-1]]


def floor(number: mpmath.mpf, bits: int) -> int:
    return int(mpmath.floor(number * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize(("scale", "top_bits", "high_bits"), CASES)
def test_every_edge_is_that_of_an_independent_computation(scale, top_bits, high_bits):
    whole = digits(scale, top_bits, high_bits)
    assert whole.scale / 2**whole.lower <= 2**top_bits
    with mpmath.workdps(120):
        assert whole.edges == [floor(edge, 64) for edge in edges_of(whole)]
        assert whole.edges == sorted(set(whole.edges)), "no two edges share their 64 bits"
        assert abs(mpmath.fsum(chances(whole)) - 1) < mpmath.mpf(10) ** -100


@pytest.mark.parametrize(("scale", "top_bits", "high_bits"), CASES)
def test_a_top_has_the_cells_that_its_chance_fills_and_the_ends_have_none(
    scale, top_bits, high_bits
):
    whole = digits(scale, top_bits, high_bits)
    with mpmath.workdps(120):
        for number, (chance, own) in enumerate(zip(chances(whole), own_cells(whole), strict=True)):
            assert own >= 0
            assert mpmath.mpf(own) / 2**16 < chance
            if 0 < number < 2 * whole.half:
                assert own in (floor(chance, 16), floor(chance - mpmath.mpf(2) ** -63, 16))


def test_edges_that_the_recurrence_leaves_in_doubt_come_from_balls(monkeypatch):
    expected = digits(Fraction(10**6), *BITS)
    monkeypatch.setattr(module, "_SLACK", WORD)
    in_balls = digits.__wrapped__(Fraction(10**6), *BITS)
    assert expected.low
    assert (in_balls.edges, in_balls.cells) == (expected.edges, expected.cells)


@pytest.mark.parametrize(("scale", "top_bits", "high_bits"), CASES)
def test_the_recurrences_stay_within_their_slack(scale, top_bits, high_bits, monkeypatch):
    """The fixed-point numbers are never above the exact edge and never 2²¹ units below."""
    seen = []
    floors = module._floors
    monkeypatch.setattr(
        module, "_floors", lambda lows, formula: seen.extend(lows.tolist()) or floors(lows, formula)
    )
    whole = digits.__wrapped__(scale, top_bits, high_bits)
    with mpmath.workdps(120):
        for (low, high), edge in zip(seen, list(accumulate(chances(whole)))[:-1], strict=True):
            assert 0 <= edge * mpmath.mpf(2) ** 128 - (high << 64 | low) <= module._SLACK


@pytest.mark.parametrize("bits", [BITS, BITS_OF_FEW])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_cell_and_every_part_holds_its_one_value_or_is_open(scale, bits):
    whole, table = digits(scale, *bits), vector._table(scale, *bits)
    numbers = np.repeat(np.arange(len(whole.edges) + 1), own_cells(whole))
    assert table.shared == numbers.size
    assert 0 < 2**16 - table.shared < (0.025 if bits == BITS else 0.07) * 2**16
    expected = [top_value(int(number) - whole.half, whole.lower) for number in numbers]
    assert table.cells.tolist() == expected + [0] * (2**16 - table.shared)
    with mpmath.workdps(120):
        edges = [
            floor(edge - mpmath.mpf(table.shared) / 2**16, 64 - table.width)
            for edge in edges_of(whole)
        ]
    parts = np.arange((2**16 - table.shared << 48) >> table.width)
    assert 2**15 <= parts.size < 2**16
    divided = np.isin(parts, edges)
    assert np.array_equal(table.parts < 0, divided)
    assert np.array_equal(table.parts[~divided], np.searchsorted(edges, parts, "left")[~divided])
    assert divided.mean() < 0.1
    odd = {0, *range(2 * whole.half, len(whole.edges) + 1)}
    values = [
        0 if number in odd else top_value(number - whole.half, whole.lower)
        for number in range(max(odd) + 1)
    ]
    assert table.values.tolist() == values


def top_value(number: int, lower: int) -> int:
    """The X whose sign and whose bits from `lower` on are those of the top, and whose lower bits
    are those of M = 0.
    """
    return number * 2**lower if number >= 0 else -1 - (-1 - number) * 2**lower


def excess_law(scale: Fraction, low: int) -> list[mpmath.mpf]:
    """The law of `_low_excess`, from its own two kinds of coins, as mpmath computes their chances."""
    if low < 2:
        return [mpmath.mpf(1), mpmath.mpf(0)][: 2**low]
    half, q = 2 ** (low - 1), power(1 / scale)
    weights = [q**u - q ** (2 * half - 1) for u in range(2 * half)]
    constant = half * (q ** (half - 1) - q ** (2 * half - 1)) / mpmath.fsum(weights)
    upper = q**half / (1 + q**half)
    rest = excess_law(scale, low - 1)
    lower_half = [constant / half + (1 - constant) * (1 - upper) * chance for chance in rest]
    return lower_half + [(1 - constant) * upper * chance for chance in rest]


@pytest.mark.parametrize(
    ("scale", "low"), [(Fraction(100), 3), (Fraction(7, 3), 2), (Fraction(5000), 6)]
)
def test_the_coins_of_the_excess_have_its_chances(scale, low):
    with mpmath.workdps(60):
        for bits in range(1, low):
            half, q = 2**bits, power(1 / scale)
            total = mpmath.fsum(q**u - q ** (2 * half - 1) for u in range(2 * half))
            expected = (
                half * (q ** (half - 1) - q ** (2 * half - 1)) / total,
                q**half / (1 + q**half),
            )
            assert [coin.edge for coin in module._halves(scale, bits)] == [
                floor(chance, 64) for chance in expected
            ]


LAWS = [
    (scale, *bits)
    for scale in SCALES
    if scale < 10**4
    for bits in (BITS, BITS_OF_FEW, (4, 3), (4, 0))
]
LAWS += [(scale, *bits) for scale in SCALES if scale < 200 for bits in ((0, 2), (1, 1), (2, 10))]


@pytest.mark.parametrize(("scale", "top_bits", "high_bits"), LAWS)
def test_the_numbers_together_have_the_law(scale, top_bits, high_bits):
    """Over all numbers that lead to an X, the chances of cells, edges and coins add up to
    (1−q)/(1+q)·q^|x|.

    The edges are the formulas of the code itself, in balls: to 40 digits.
    """
    whole = digits(scale, top_bits, high_bits)
    tops, base, low = 2 * whole.half + 1, 2 ** (whole.lower - whole.low), whole.low
    with mpmath.workdps(60), ctx.workdps(60):
        edges = [
            mpmath.mpf(whole.formula(index).mid().str(55, radius=False))
            for index in range(len(whole.edges))
        ]
        meeting = pairwise([mpmath.mpf(whole.cells[-1]) / 2**16, *edges, mpmath.mpf(1)])
        weights = [
            mpmath.mpf(own) / 2**16 + b - a
            for own, (a, b) in zip(own_cells(whole), meeting, strict=True)
        ]
        uniform, excesses = mpmath.fsum(weights[:tops]), weights[tops:]
        lower = [uniform / 2**whole.lower] * 2**whole.lower
        for high in range(base - 1):
            for u in range(2**low):
                lower[high * 2**low + u] += excesses[high] / 2**low
        if low:
            coins = [
                power(2**bit / scale) / (1 + power(2**bit / scale))
                for bit in range(low, whole.lower)
            ]
            for high in range(base):
                bits = [coin if high >> bit & 1 else 1 - coin for bit, coin in enumerate(coins)]
                for u, chance in enumerate(excess_law(scale, low)):
                    lower[high * 2**low + u] += excesses[-1] * mpmath.fprod(bits) * chance
        q = power(1 / scale)
        for number in {1, whole.half - 1, whole.half, whole.half + 1, tops - 2} & set(
            range(1, tops - 1)
        ):
            for m, chance in enumerate(lower):
                x = whole.top(number, None) ^ m
                exact = (1 - q) / (1 + q) * q ** abs(x)
                assert abs(weights[number] / uniform * chance / exact - 1) < mpmath.mpf(10) ** -40


def test_what_numbers_make_is_every_integer_once():
    whole = digits(Fraction(30), 1, 3)
    assert (whole.lower, whole.low) == (4, 1)
    tops = [whole.top(number, None) for number in range(1, 2 * whole.half)]
    draws = sorted(top ^ lower for top in tops for lower in range(16))
    assert draws == list(range(-16 * (whole.half - 1), 16 * whole.half))
    first = 2 * whole.half + 1
    assert [whole.excess(first + high, 0b1101, None) for high in range(7)] == [
        high << 1 | 1 for high in range(7)
    ]


@pytest.mark.parametrize(
    ("scale", "top_bits", "high_bits"), [case for case in CASES if case[0] < 2**20]
)
def test_every_edge_flips_exactly_where_it_must(scale, top_bits, high_bits):
    """Bits just below, at and above each edge: 16 of them, 48 more, and 64 more where these are the
    edge's own.
    """
    whole = digits(scale, top_bits, high_bits)
    edges = set(whole.edges)
    with mpmath.workdps(120):
        for number, edge in enumerate(edges_of(whole)):
            first, after = floor(edge, 64), floor(edge, 128) % WORD
            cell, rest = first >> 48, (first % 2**48) << 16
            for further, expected in (
                ([rest - 2**16], number),
                ([rest + 2**16], number + 1),
                ([rest + 77, after - 1], number),
                ([rest + 77, after + 1], number + 1),
            ):
                if not all(0 <= word < WORD for word in further):
                    continue
                answers = iter(further)
                drawn = whole.number(cell, answers.__next__)
                assert (drawn > number) == (expected > number)
                if first - 1 not in edges and first + 1 not in edges:
                    assert drawn == expected
                    assert next(answers, None) is None, (
                        "all bits are used, and no more are asked for"
                    )


@pytest.mark.parametrize("bits", [BITS, BITS_OF_FEW])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(10), Fraction(5000), Fraction(2**30)])
def test_an_array_finds_the_number_of_a_draw_alone_just_below_at_and_above_each_edge(scale, bits):
    whole = digits(scale, *bits)
    edges = set(whole.edges)
    words = [
        word
        for edge in whole.edges
        for word in (edge - 1, edge, edge + 1)
        if word >> 48 >= whole.cells[-1]
    ]
    after = np.random.default_rng(7).integers(0, WORD - 1, len(words), np.uint64, endpoint=True)
    entropy = Scripted(
        [word % 2**48 << 16 | index for index, word in enumerate(words)], after.tolist()
    )
    numbers, cells = vector._table(scale, *bits)._numbers(
        np.array([word >> 48 for word in words], np.uint16), entropy
    )
    assert cells.tolist() == list(range(len(words))), "the bits that are left"
    assert entropy.asked == len(whole.edges), "only the bits of an edge itself ask for more"
    ties = iter(after.tolist())
    for word, number in zip(words, numbers.tolist(), strict=True):
        script = [word % 2**48 << 16, *([next(ties)] if word in edges else [])]
        assert whole.number(word >> 48, iter(script).__next__) == number


@pytest.mark.parametrize("scale", [Fraction(1, 40), Fraction(7, 3), Fraction(5000)])
def test_bits_tell_the_number_of_a_cell_that_is_not_shared(scale):
    whole = digits(scale, *BITS)
    numbers = [whole.number(cell, None) for cell in range(whole.cells[-1])]
    assert numbers == np.repeat(np.arange(len(whole.edges) + 1), own_cells(whole)).tolist()


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(2**12)])
def test_the_ends_of_a_top_go_on_by_the_top_of_a_new_number(scale):
    """H has no memory: beyond the end it has the law of H again, whatever the sign of the new top
    is.
    """
    whole = digits(scale, *BITS)
    size, half = 2**whole.lower, whole.half
    for further in (0, 1, 5):
        for new in (further, -1 - further):
            cell = whole.cells[half + new - 2]  # the first cell of the new top
            assert whole.top(2 * half, iter([cell]).__next__) == top_value(
                half + further, whole.lower
            )
            assert whole.top(0, iter([cell]).__next__) == top_value(-half - further, whole.lower)
    # the first of the shared cells, below all edges
    script = [whole.cells[-1], 0, whole.cells[half + 1]]
    assert whole.draw(iter(script).__next__) == top_value(-half - 3, whole.lower)
    if size == 1:  # the last of them, above all edges; at the end again, and then at 0
        script = [2**16 - 1, WORD - 1, 2**16 - 1, WORD - 1, whole.cells[half - 2]]
        assert whole.draw(iter(script).__next__) == 2 * half


def test_an_excess_is_read_from_its_coins():
    whole = digits(Fraction(2**12), 2, 6)
    assert (whole.lower, whole.low) == (10, 4)
    heads, tails = 0, WORD - 1
    assert whole._low_excess(iter([heads, 13]).__next__) == 13 % 8
    assert whole._low_excess(iter([tails, heads, heads, 7]).__next__) == 8 | 3
    assert whole._low_excess(iter([tails, tails, tails, heads, tails, heads]).__next__) == 4 | 2
    assert whole._low_excess(iter([tails] * 6).__next__) == 0
    last = whole.number(2**16 - 1, iter([WORD - 1]).__next__)
    assert last == 2 * whole.half + 64
    # the high bits of a new draw, of either sign, and then the coins of the low bits
    for top in (whole.half, whole.half - 1):
        word = whole.cells[top - 2] | 0b10_0110_1111 << 16
        assert whole.excess(last, 9, iter([word, heads, 13]).__next__) == 0b100110 << 4 | 13 % 8
    assert whole.excess(last - 1, 0b11_1001, None) == 62 << 4 | 0b1001


def test_the_top_of_an_excess_is_drawn_until_it_is_one():
    whole = digits(Fraction(2**12), 2, 6)
    inside = whole.edges[2 * whole.half + 10] + 1  # the high bits are 10
    cell, rest = inside >> 48, inside % 2**48 << 16
    script = iter([cell | 0b11_1101 << 16, rest, 2**16 - 1, WORD - 1, cell, rest, 2**15])
    assert whole.draw(script.__next__) == whole.top(whole.number(2**15, None), None) ^ (
        10 << 4 | 0b1101
    )
    assert next(script, None) is None


def test_a_draw_reads_its_bits_from_one_word_and_more_where_it_needs_them():
    whole = digits(Fraction(2**12), 2, 6)
    word = 2**15 | 0b10_1100_1010 << 16
    assert (
        whole.draw(iter([word]).__next__)
        == whole.top(whole.number(2**15, None), None) ^ 0b10_1100_1010
    )
    huge = digits(Fraction(2**80), 2, 6)
    assert huge.lower == 78
    draw = huge.draw(iter([word, 12345]).__next__)
    assert draw % 2**64 == (12345 if draw >= 0 else 2**64 - 1 - 12345)
