"""The digits of noise: every edge, every cell of the tables, and the law they make together, against mpmath.

The thresholds here are computed with 120 digits from the formulas of PROOF.md, with no code of `draw.digits`.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.draw import digits as module
from discreet.draw import vector
from discreet.draw.digits import digits

BITS = vector._BITS
SCALES = [
    Fraction(text) for text in ("1/40", "1/7", "1/2", "1", "7/3", "10/3", "10", "16", "50/3", "100", "12345/67", "5000")
]
SCALES += [Fraction(2**20 + 1, 3), Fraction(2**30), Fraction(2**49)]
BOTH = [(scale, *bits) for scale in SCALES for bits in ((4, 6), BITS)]
WORD = 2**64


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def top_edges(scale: Fraction, lower: int, half: int) -> list[mpmath.mpf]:
    """P(X < −m·2^k), m = N−1, …, 0, and P(X < h·2^k), h = 1, …, N, by the law of X."""
    q = power(1 / scale)
    below = [q * power(m * 2**lower / scale) / (1 + q) for m in range(half - 1, -1, -1)]
    return below + [1 - power(h * 2**lower / scale) / (1 + q) for h in range(1, half + 1)]


def uniform_part(scale: Fraction, low: int) -> mpmath.mpf:
    """2^s times the smallest chance of U."""
    chances = power((2**low - 1) / scale) * (1 - power(1 / scale)) / (1 - power(2**low / scale))
    return 2**low * chances


def middle_edges(scale: Fraction, low: int, base: int) -> list[mpmath.mpf]:
    r = power(2**low / scale)
    edges = [uniform_part(scale, low) * (1 - r**number) / (1 - r**base) for number in range(1, base + 1)]
    return edges if low else edges[:-1]


def edges_of(whole: module.Digits) -> list[tuple[module.Digit, list[mpmath.mpf]]]:
    found = [(whole.top, top_edges(whole.scale, whole.lower, whole.half))]
    if whole.middle is not None:
        found.append((whole.middle, middle_edges(whole.scale, whole.low, whole.base)))
    return found


def floor(number: mpmath.mpf, bits: int) -> int:
    return int(mpmath.floor(number * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize(("scale", "top_bits", "middle_bits"), BOTH)
def test_every_edge_is_that_of_an_independent_computation(scale, top_bits, middle_bits):
    whole = digits(scale, top_bits, middle_bits)
    assert whole.scale / 2**whole.lower <= 2**top_bits
    with mpmath.workdps(120):
        for digit, expected in edges_of(whole):
            assert digit.edges == [floor(edge, 64) for edge in expected]
            assert digit.edges == sorted(set(digit.edges)), "no two edges share their 64 bits"


def test_edges_that_the_recurrence_leaves_in_doubt_come_from_balls(monkeypatch):
    expected = digits(Fraction(1000), *BITS)
    monkeypatch.setattr(module, "_SLACK", WORD)
    in_balls = digits.__wrapped__(Fraction(1000), *BITS)
    assert in_balls.top.edges == expected.top.edges
    assert in_balls.middle.edges == expected.middle.edges


@pytest.mark.parametrize(("scale", "top_bits", "middle_bits"), BOTH)
def test_the_recurrences_stay_within_their_slack(scale, top_bits, middle_bits, monkeypatch):
    """The fixed-point numbers are never above the exact edge and never 2¹⁷ units below."""
    seen = []
    listed = module._digit
    monkeypatch.setattr(module, "_digit", lambda lows, formula: seen.append(lows) or listed(lows, formula))
    whole = digits.__wrapped__(scale, top_bits, middle_bits)
    with mpmath.workdps(120):
        for lows, (_, edges) in zip(seen, edges_of(whole), strict=True):
            for low, edge in zip(lows, edges, strict=True):
                assert 0 <= edge * mpmath.mpf(2) ** 128 - low <= module._SLACK


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_cell_of_every_table_holds_its_one_value_or_is_open(scale):
    whole = digits(scale, *BITS)
    tables = vector._tables(scale)
    with mpmath.workdps(120):
        for table, (digit, edges) in zip(tables, edges_of(whole), strict=True):
            divided = np.array([floor(edge, 16) for edge in edges])  # the cell that each edge lies in
            numbers = np.searchsorted(divided, np.arange(2**16), "left")  # edges in cells before
            if digit is whole.top:
                expected = [whole_value(int(number) - whole.half, whole.lower) for number in numbers]
            else:
                expected = [int(number) << whole.low for number in numbers]
            open_cells = np.isin(np.arange(2**16), divided)
            if digit is whole.middle and whole.low:
                open_cells |= numbers == whole.base
            assert table.mark == np.iinfo(table.cells.dtype).min
            assert np.array_equal(table.cells == table.mark, open_cells)
            assert np.array_equal(table.cells[~open_cells], np.array(expected)[~open_cells])
            assert open_cells.mean() < 0.01


def whole_value(number: int, lower: int) -> int:
    """The X whose sign and whose bits from `lower` on are those of the top, and whose lower digits are 0."""
    return number * 2**lower if number >= 0 else -1 - (-1 - number) * 2**lower


def excess_law(scale: Fraction, low: int) -> list[mpmath.mpf]:
    """The law of `_excess`, from its own two kinds of coins, as mpmath computes their chances."""
    if low == 0:
        return [mpmath.mpf(1)]
    if low == 1:
        return [mpmath.mpf(1), mpmath.mpf(0)]
    half, q = 2 ** (low - 1), power(1 / scale)
    weights = [q**u - q ** (2 * half - 1) for u in range(2 * half)]
    constant = half * (q ** (half - 1) - q ** (2 * half - 1)) / mpmath.fsum(weights)
    upper = q**half / (1 + q**half)
    rest = excess_law(scale, low - 1)
    lower_half = [constant / half + (1 - constant) * (1 - upper) * chance for chance in rest]
    return lower_half + [(1 - constant) * upper * chance for chance in rest]


@pytest.mark.parametrize(("scale", "low"), [(Fraction(100), 3), (Fraction(7, 3), 2), (Fraction(5000), 6)])
def test_the_coins_of_the_excess_have_its_chances(scale, low):
    with mpmath.workdps(60):
        for bits in range(1, low):
            half, q = 2**bits, power(1 / scale)
            total = mpmath.fsum(q**u - q ** (2 * half - 1) for u in range(2 * half))
            expected = half * (q ** (half - 1) - q ** (2 * half - 1)) / total, q**half / (1 + q**half)
            assert [coin.edge for coin in module._halves(scale, bits)] == [floor(chance, 64) for chance in expected]


LAWS = [(scale, *bits) for scale in SCALES if scale < 10**4 for bits in ((4, 6), BITS, (0, 2), (1, 1))]


@pytest.mark.parametrize(("scale", "top_bits", "middle_bits"), LAWS)
def test_the_digits_together_have_the_law(scale, top_bits, middle_bits):
    """The chance of each X, as the product of those of its digits, is (1−q)/(1+q)·q^|x| to 40 digits."""
    whole = digits(scale, top_bits, middle_bits)
    with mpmath.workdps(60):
        tops = [mpmath.mpf(0), *top_edges(scale, whole.lower, whole.half), mpmath.mpf(1)]
        middles = [mpmath.mpf(0), *middle_edges(scale, whole.low, whole.base)] if whole.middle else [mpmath.mpf(0)]
        if whole.low == 0:
            middles.append(mpmath.mpf(1))
        p = uniform_part(scale, whole.low)
        excess = excess_law(scale, whole.low)
        lows = [p / 2**whole.low + (1 - p) * chance for chance in excess]
        q = power(1 / scale)
        for number in (-whole.half + 1, -2, -1, 0, 1, whole.half - 1):
            if abs(number) >= whole.half:
                continue
            index = number + whole.half
            for digit in {0, 1, whole.base // 3, whole.base - 1} & set(range(whole.base)):
                for low in range(2**whole.low):
                    x = whole.top_value(index) ^ whole.lower_digits(digit, low, None)
                    # of all U the middle's chances are the same: those with a uniform U, divided by its chance
                    middle = (middles[digit + 1] - middles[digit]) / (p if whole.middle else 1)
                    chance = (tops[index + 1] - tops[index]) * middle * lows[low]
                    exact = (1 - q) / (1 + q) * q ** abs(x)
                    assert abs(chance / exact - 1) < mpmath.mpf(10) ** -40


def test_what_digits_make_is_every_integer_once():
    whole = digits(Fraction(30), 1, 3)
    assert (whole.lower, whole.base, whole.low) == (4, 8, 1)
    found = sorted(
        whole.top_value(index) ^ whole.lower_digits(digit, low, None)
        for index in range(1, 2 * whole.half)
        for digit in range(8)
        for low in range(2)
    )
    assert found == list(range(found[0], found[-1] + 1))
    assert (found[0], found[-1]) == (-16 * (whole.half - 1), 16 * whole.half - 1)


@pytest.mark.parametrize(("scale", "top_bits", "middle_bits"), [case for case in BOTH if case[0] < 2**20])
def test_every_edge_flips_exactly_where_it_must(scale, top_bits, middle_bits):
    """Bits just below, at and above each edge: 16 of them, 48 more, and 64 more where these are the edge's own."""
    whole = digits(scale, top_bits, middle_bits)
    with mpmath.workdps(120):
        for digit, edges in edges_of(whole):
            for number, edge in enumerate(edges):
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
                    found = digit.index(cell, answers.__next__)
                    assert (found > number) == (expected > number)
                    if first - 1 not in digit.edges and first + 1 not in digit.edges:
                        assert found == expected
                        assert next(answers, None) is None, "all bits are used, and no more are asked for"


def test_the_ends_of_a_top_go_on_by_coins():
    whole = digits(Fraction(2), *BITS)
    (going_on,) = whole._coins(0)
    with mpmath.workdps(60):
        assert going_on.edge == floor(power(Fraction(1, 2)), 64)
    heads, tails = 0, WORD - 1
    for count in (0, 1, 5):
        script = [heads] * count + [tails]
        assert whole.end_value(2 * whole.half, iter(script).__next__) == whole.half + count
        assert whole.end_value(0, iter(script).__next__) == -whole.half - count
    # V = 0.000…: below all edges, first by its 16 bits, then by all 64
    assert whole.draw(iter([0, 0, tails]).__next__) == -whole.half
    assert whole.draw(iter([2**16 - 1, WORD - 1, heads, tails]).__next__) == whole.half + 1


def test_an_excess_is_read_from_its_coins():
    whole = digits(Fraction(2**12), 2, 6)
    assert whole.low == 4
    heads, tails = 0, WORD - 1
    assert whole._excess(iter([heads, 13]).__next__) == 13 % 8
    assert whole._excess(iter([tails, heads, heads, 7]).__next__) == 8 | 3
    assert whole._excess(iter([tails, tails, tails, heads, tails, heads]).__next__) == 4 | 2
    assert whole._excess(iter([tails] * 6).__next__) == 0
    middle = whole.middle
    open_digit = middle.index((WORD - 1) >> 48, iter([WORD - 1]).__next__)
    assert open_digit == whole.base
    # the digit is drawn again, until it is one, and U has the law of the excess
    script = iter([WORD - 1, WORD - 1, 0, heads, 13])
    assert whole.lower_digits(open_digit, 9, script.__next__) == 13 % 8


def test_a_draw_reads_its_fields_from_one_word_and_more_where_it_needs_them():
    whole = digits(Fraction(2**12), 2, 6)
    word = 2**15 | (2**14 << 16) | (0b1010 << 32)
    expected = whole.top_value(whole.top.index(2**15, None)) ^ (whole.middle.index(2**14, None) << 4 | 0b1010)
    assert whole.draw(iter([word]).__next__) == expected
    huge = digits(Fraction(2**80), 2, 6)
    assert huge.low == 72
    draw = huge.draw(iter([word, 12345]).__next__)
    assert draw % 2**64 == (12345 if draw >= 0 else 2**64 - 1 - 12345)
