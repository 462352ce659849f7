"""Numbers that the documentation states are computed anew, from the formulas and not from the code
that releases.

Each test reads the number from its page, so it fails if either the page or the mathematics is
wrong.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

ROOT = Path(__file__).resolve().parents[2]
DEVIATION = math.sqrt(2)
"""The standard deviation of Laplace noise of scale 1."""


def page(name: str) -> str:
    """A page, each run of blanks as one."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text("utf-8"))


def stated(name: str, pattern: str) -> list[float]:
    """The numbers in the groups of a pattern that occurs once on a page."""
    [found] = re.findall(pattern, page(name))
    return [
        float(number.replace(",", "")) for number in ([found] if isinstance(found, str) else found)
    ]


def rows(name: str, title: str) -> list[list[str]]:
    """The cells of the rows of the table whose head begins like this."""
    after = (ROOT / name).read_text("utf-8").split(title, 1)[1].split("\n\n")[0].split("\n")[2:]
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in after]


def kept(epsilon: float, delta: float, units: int) -> float:
    """π(units), the largest chance of any (ε, δ)-private rule: its recursion [DVGM22]."""
    chance = 0.0
    for _ in range(units):
        most = (
            math.exp(epsilon) * chance + delta,
            1 - math.exp(-epsilon) * (1 - chance - delta),
            1.0,
        )
        chance = min(most)
    return chance


def test_the_table_of_discovered_keys_follows_from_the_recursion():
    for row in rows("docs/discover.md", "| ε and δ of one key |"):
        epsilon, power = re.match(r"([\d.]+), 10⁻(.)", row[0]).groups()  # type: ignore[union-attr]
        delta = 10.0 ** -"⁰¹²³⁴⁵⁶⁷⁸⁹".index(power)
        for cell, share in zip(row[1:], (0.5, 0.99, 1 - 1e-12), strict=True):
            units = int(cell)
            assert (
                kept(float(epsilon), delta, units) >= share > kept(float(epsilon), delta, units - 1)
            )


def test_what_a_discovery_of_a_thousandth_reveals():
    people, found = stated("docs/discover.md", r"with ([\d,]+) people and δ = 10⁻³ about (\d+)")
    assert people * kept(1, 1e-3, 1) == pytest.approx(found)


def test_an_attacker_at_a_large_epsilon():
    epsilon, factor, percent = stated(
        "docs/limits.md",
        r"At ε = (\d+) the factor e\^ε is ([\d,]+), and the attacker of the textbook is right"
        r" ([\d.]+) %",
    )
    assert round(math.exp(epsilon), -3) == factor
    assert round(100 / (1 + math.exp(-epsilon)), 3) == percent


def spread_of_mean(position: float, *, dropped: bool) -> float:
    """The error of a mean in R/nε: of one sum, or of a centre and a count with the scales 2R and 2."""
    return DEVIATION * math.hypot(1, 2 * (position - 0.5)) if dropped else DEVIATION


def spread_of_pair(position: float) -> float:
    return DEVIATION * math.hypot(1 - position, position)


def spread_of_variance(position: float, variance: float, *, dropped: bool) -> float:
    """The error of a variance in R²/nε, to first order: of the joint sums, or of these and a count."""
    centre = position - 0.5
    number = 3 * centre**2 + 3 * (1 / 8 - variance) if dropped else 0.0
    return DEVIATION * math.sqrt((9 / 4 * centre) ** 2 + (9 / 16) ** 2 + number**2)


def spread_of_triple(position: float, variance: float) -> float:
    squares = position**2
    parts = squares - variance, squares - variance - position, (1 - position) ** 2 - variance
    return DEVIATION * math.sqrt(sum(part**2 for part in parts))


POSITIONS = np.linspace(0, 1, 401).tolist()
MOMENTS = [(u, share * u * (1 - u)) for u in POSITIONS for share in np.linspace(0, 1, 41).tolist()]


def test_the_ranges_of_errors_at_a_glance():
    [dropped_low, dropped_high, pair_low, pair_high] = stated(
        "docs/statistics.md",
        r"√2·R/nε; dropped ([\d.]+) to ([\d.]+) × R/nε; pair ([\d.]+) to ([\d.]+) ×",
    )
    dropped = [spread_of_mean(u, dropped=True) for u in POSITIONS]
    pairs = [spread_of_pair(u) for u in POSITIONS]
    assert [round(x, 2) for x in (min(dropped), max(dropped))] == [dropped_low, dropped_high]
    assert [round(x, 2) for x in (min(pairs), max(pairs))] == [pair_low, pair_high]
    low, high, drop_low, drop_high, triple = stated(
        "docs/statistics.md",
        r"([\d.]+) to ([\d.]+) × R²/nε; dropped ([\d.]+) to ([\d.]+) ×; triple at most ([\d.]+) ×",
    )
    for bounds, drop in (((low, high), False), ((drop_low, drop_high), True)):
        errors = [spread_of_variance(*moments, dropped=drop) for moments in MOMENTS]
        assert (round(min(errors), 2), round(max(errors), 2)) == bounds
    assert round(max(spread_of_triple(*moments) for moments in MOMENTS), 2) == triple


def test_what_it_costs_to_drop_missing_values():
    """The measured table is within a twentieth of the formulas, at n = 1,000 and ε = 1."""
    table = rows("docs/statistics.md", "| statistic | data | n public |")
    assert len(table) == 6
    for statistic, data, *measured in table:
        a, b = map(int, re.findall(r"\d", data))
        u, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
        if statistic == "mean":
            errors = [DEVIATION, spread_of_mean(u, dropped=True), 2 * spread_of_pair(u)]
        else:
            joint = [spread_of_variance(u, variance, dropped=drop) for drop in (False, True)]
            errors = [*joint, 2 * spread_of_triple(u, variance)]
        assert [float(text) * 1000 for text in measured] == pytest.approx(errors, rel=0.05)


def test_how_much_worse_a_split_epsilon_is_for_a_mean():
    low, high = stated(
        "docs/statistics.md", r"as in the textbook, has ([\d.]+) to ([\d.]+) times the error"
    )
    ratios = [2 * DEVIATION * math.hypot(1, u) / spread_of_pair(u) for u in POSITIONS]
    assert (round(min(ratios), 2), round(max(ratios), 2)) == (low, high)


def test_how_much_dropping_costs_at_95_percent():
    """P(|Y₁ + Y₂| > t) = (1 + t/2)·e^(−t) for two equal weights, as for a mean at an end of its
    bounds.
    """
    half_width = optimize.brentq(lambda t: (1 + t / 2) * math.exp(-t) - 0.05, 1, 10)
    [stated_ratio] = stated(
        "docs/limits.md", r"error of a mean is up to ([\d.]+) times as large at 95 %"
    )
    assert round(half_width / -math.log(0.05), 1) == stated_ratio
    mean, variance = stated(
        "docs/studies.md",
        r"up to ([\d.]+) times the error at their ends .*?has up to ([\d.]+) times",
    )
    assert round(spread_of_mean(0, dropped=True) / spread_of_mean(0, dropped=False), 2) == mean
    ratios = [
        spread_of_variance(*moments, dropped=True) / spread_of_variance(*moments, dropped=False)
        for moments in MOMENTS
    ]
    assert round(max(ratios), 2) == variance


def test_the_designs_of_statistics_lose_at_most_epsilon():
    """The loss of one unit on every pair of grid values: the scales that the page gives, at R = 24
    and ε = 1.
    """
    width = 24
    text = page("docs/statistics.md")
    assert "Σa + DLap(9R/8ε) and Σq + DLap(9R²/16ε)" in text
    assert "Σ(2a−R) + DLap(9R/4ε), Σ(8q−R²) + DLap(9R²/2ε), N + DLap(3/ε)" in text
    points = range(width + 1)
    q = {a: a * (width - a) for a in points}
    joint = Fraction(9 * width, 8), Fraction(9 * width**2, 16)
    centred = Fraction(9 * width, 4), Fraction(9 * width**2, 2)
    moved = [
        abs(a - b) / joint[0] + abs(q[a] - q[b]) / joint[1] for a, b in product(points, repeat=2)
    ]
    changed = [
        2 * abs(a - b) / centred[0] + 8 * abs(q[a] - q[b]) / centred[1]
        for a, b in product(points, repeat=2)
    ]
    missing = [
        abs(2 * a - width) / centred[0] + abs(8 * q[a] - width**2) / centred[1] + Fraction(1, 3)
        for a in points
    ]
    # reached: the noise is no larger than it must be
    assert max(moved) == max(changed) == max(missing) == 1
    centre = [Fraction(abs(2 * a - width), 2 * width) + Fraction(1, 2) for a in points]
    assert max(centre) == 1


def test_how_many_records_lie_beyond_an_extreme():
    low, high = stated("docs/statistics.md", r"about (\d)/ε to (\d)/ε records lie beyond")
    assert [round(math.log(cells) / 0.7) for cells in (32, 64)] == [low, high]


def test_the_core_of_a_profile():
    """214 bins of a column of floats, each filled by noise alone with P(X ≥ m) = r^m/(1 + r)."""
    [scales] = stated("docs/statistics.md", r"about (\d+)b people in an octave")
    for b in (10.0, 100.0):
        least = b * math.log(214 / (1e-6 * (1 + math.exp(-1 / b))))
        assert least / b == pytest.approx(scales, abs=0.6)


def test_the_rows_of_what_the_textbook_does_are_those_of_the_tables():
    tables = (ROOT / "docs/performance-tables.md").read_text("utf-8")
    for statistic, relation, *gains, _ in rows(
        "docs/statistics.md", "| statistic | relation | n = 1,000 |"
    ):
        for size, gain in zip(("1,000", "10,000"), gains, strict=True):
            section = tables.split(f"### Errors, n = {size}, ε = 1\n")[1].split("### ")[0]
            [line] = [
                line
                for line in section.splitlines()
                if line.startswith(f"| {statistic} | {relation} |")
            ]
            assert line.split("|")[7].strip() == gain


def test_one_set_of_eight_columns_is_more_than_four_times_as_precise_as_56_tables():
    """By the characters of {0, 1}⁸, each estimated from all tables that have its columns."""
    assert (
        "one set of all eight columns is more than four times as precise as measuring the 56 tables"
        in page("docs/together.md")
    )
    each = 2 * 56.0**2  # the variance of a cell of a table with ε/56
    having = [math.comb(8 - j, 3 - j) for j in range(4)]
    of_tables = sum(math.comb(3, j) * 8 * each / having[j] for j in range(4)) / 64
    of_one_set = 2**5 * 2.0
    assert math.sqrt(of_tables / of_one_set) > 4


def test_the_examples_of_the_readme():
    [average] = stated("README.md", r"The average error of each count above is (\d+)")
    assert round(1 / math.sinh(1 / average)) == average == 2 / 0.1
    [percent, within] = stated(
        "README.md", r"# (\d+) % of the noisy counts are within ± (\d+) of the truth"
    )
    q = math.exp(-1 / average)
    assert 2 * q ** (within + 1) / (1 + q) <= 1 - percent / 100 < 2 * q**within / (1 + q)


def test_the_share_of_draws_that_need_more_than_a_table():
    from discreet.draw.digits import digits
    from discreet.draw.vector import _BITS, _BITS_OF_FEW

    [percent] = stated("docs/how-it-works.md", r"Up to (\d+) % of the draws are in shared cells")
    scales = [
        Fraction(2) ** power * (1 + Fraction(1, 10**6))
        for power in (-3, 0, 3, 4, 5, 6, 7, 10, 20, 40)
    ]
    shares = [
        [1 - Fraction(digits(scale, *bits).cells[-1], 2**16) for scale in scales]
        for bits in (_BITS, _BITS_OF_FEW)
    ]
    assert percent - 0.5 < 100 * max(shares[0]) <= percent
    assert "Up to one draw in fifty (up to one in sixteen of a short array)" in page(
        "docs/limits.md"
    )
    assert max(shares[1]) <= Fraction(1, 16) + Fraction(1, 500)


def test_a_discovery_adds_at_most_its_delta_to_what_an_attacker_gains():
    """Of two (ε, δ)-close chances p and p′ the best guess is right with (1 + p − p′)/2 = (e^ε +
    δ)/(1 + e^ε).
    """
    assert "A discovery of keys adds at most its δ." in page("docs/limits.md")
    for epsilon, delta in product((0.01, 0.5, 1.0, 3.0), (1e-9, 1e-3)):
        for steps in (1, 2):  # two steps from one value to another, under add-remove
            loss = steps * epsilon
            failing = delta * sum(math.exp(step * epsilon) for step in range(steps))
            best = optimize.linprog(
                [-1, 1],  # of p and p′, so that p − p′ is largest
                A_ub=[[1, -math.exp(loss)], [math.exp(loss), -1]],
                b_ub=[failing, math.exp(loss) - 1 + failing],
                bounds=[(0, 1), (0, 1)],
            )
            right = (1 - best.fun) / 2
            assert right <= 1 / (1 + math.exp(-loss)) + delta * (1 + 1e-9)
