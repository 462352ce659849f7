"""Permute-and-flip in runs: floats and balls make the same choice from the same bits, and its law
is the textbook's.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, pairwise
from unittest import mock

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells import one_by_one, spread_out
from discreet.draw import choice
from discreet.draw.choice import Runs, below_each, choose, common_unit
from discreet.errors import EngineFailed, InvalidParameter
from scripted import Scripted

WORD = 2**64
FAR = 2**62
DIGITS = 110


def one_row(exponents: list[int], sizes: list[int]) -> Runs:
    """Runs whose cells follow each other."""
    return many_rows([(exponents, sizes)])


def many_rows(rows: list[tuple[list[int], list[int]]]) -> Runs:
    sizes = np.array([size for _, some in rows for size in some], np.int64)
    starts = np.cumsum([0, *(len(some) for some, _ in rows)])[:-1]
    firsts = np.concatenate([np.cumsum([0, *some[:-1]]) for _, some in rows])
    exponents = np.array([exponent for some, _ in rows for exponent in some], np.int64)
    return Runs(
        exponents=exponents,
        sizes=sizes,
        rows=starts,
        cell=lambda runs, numbers: firsts[runs] + numbers,
    )


def real(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def log_time(x: Fraction, size: int, uniform: Fraction) -> mpmath.mpf:
    """ln T of the run for W = uniform, from the docstring of the module."""
    if uniform in (0, 1):
        return mpmath.mpf("-inf") if uniform == 0 else real(x)
    return real(x) + mpmath.log(-mpmath.expm1(mpmath.log1p(-real(uniform)) / size))


def uniform_at(time: mpmath.mpf, x: Fraction, size: int) -> mpmath.mpf:
    """The W at which the run has this time: 1 − (1 − e^(−x)·t)^m."""
    return -mpmath.expm1(size * mpmath.log1p(-time * mpmath.exp(-real(x))))


def chosen_run(
    exponents: list[int],
    sizes: list[int],
    unit: Fraction,
    words: list[int],
    extra: Iterable[int] = (),
):
    """The chosen run of a row, and how many more words were asked for."""
    scripted = Scripted([*words, 0], extra)
    cell = int(choose(one_row(exponents, sizes), unit, entropy=scripted)[0])
    return int(np.searchsorted(np.cumsum(sizes), cell, "right")), scripted.asked


UNITS = [Fraction(text) for text in ("1/1000000007", "1/20", "1/3", "1", "22/7", "40")]
MULTIPLES = [0, 1, 3, 44, 1000, FAR]
SIZES = [(1, 1), (1, 63), (63, 1), (7681, 40), (2**18, 2**18), (1, 2**40)]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_run_comes_before_the_best_exactly_up_to_an_independent_threshold(unit, sizes):
    generator = np.random.default_rng(sum(sizes))
    tried, expected = [], []
    for exponent in MULTIPLES:
        x = unit * exponent
        for best in (
            *generator.integers(0, WORD, 2, np.uint64).tolist(),
            2**33,
            WORD - 2**45,
            5,
            WORD - 3,
        ):
            with mpmath.workdps(DIGITS):
                # of a best run with the first word `best`, and the W of the other run with the same
                # time
                times = [
                    mpmath.exp(log_time(Fraction(0), sizes[0], Fraction(best + more, WORD)))
                    for more in (0, 1)
                ]
                low, high = (
                    min(int(uniform_at(time, x, sizes[1]) * WORD), WORD - 1) for time in times
                )
            # where they touch, the intervals of neighbouring words have an end in common
            touching = exponent == 0 and sizes[0] == sizes[1]
            words = dict.fromkeys(
                (low - 1 - touching, low - 2, low - 1000, low - 2**20, low - 2**33), 1
            )
            words |= dict.fromkeys(
                (high + 1 + touching, high + 2, high + 1000, high + 2**20, high + 2**33), 0
            )
            tried += [(exponent, best, word) for word in words if 0 <= word < WORD]
            expected += [run for word, run in words.items() if 0 <= word < WORD]
    assert {*expected} == {0, 1}
    rows = many_rows([([0, exponent], [*sizes]) for exponent, _, _ in tried])
    entropy = Scripted([word for _, *both in tried for word in both] + [0] * len(tried))
    # the cells of the best run come first
    runs = (choose(rows, unit, entropy=entropy) >= sizes[0]).tolist()
    assert [
        row for row, run, right in zip(tried, runs, expected, strict=True) if run != right
    ] == []
    assert entropy.asked == 0


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_tie_of_first_words_is_decided_by_the_words_that_follow(unit, sizes):
    generator = np.random.default_rng(sum(sizes) + 1)
    for exponent in [1, 3, 44, 1000]:
        x = unit * exponent
        for best in generator.integers(0, WORD, 4, np.uint64).tolist():
            later = int(generator.integers(0, WORD, dtype=np.uint64))
            ends = [Fraction(best * WORD + later + more, WORD**2) for more in (0, 1)]
            with mpmath.workdps(DIGITS):
                times = [mpmath.exp(log_time(Fraction(0), sizes[0], end)) for end in ends]
                low, high = (
                    min(int(uniform_at(time, x, sizes[1]) * WORD**2), WORD**2 - 1) for time in times
                )
            for bits, expected in ((low - 1, 1), (high + 1, 0)):
                if not 0 <= bits < WORD**2:
                    continue
                first, second = divmod(bits, WORD)
                found, asked = chosen_run(
                    [0, exponent], sizes, unit, [best, first], [later, second]
                )
                assert found == expected
                # 0 if the first words tell, as they do where the threshold lies between words
                assert asked in (0, 2)


def test_a_cell_that_survives_once_in_more_than_two_to_the_64_needs_further_zeros():
    half = 2**63  # T = ½ and more of the best cell
    with mpmath.workdps(DIGITS):
        second = int(mpmath.floor(uniform_at(mpmath.mpf(1) / 2, Fraction(60), 1) * WORD**2))
    assert second < WORD
    assert chosen_run([0, 60], [1, 1], Fraction(1), [half, 0], [0, second - 1]) == (1, 2)
    assert chosen_run([0, 60], [1, 1], Fraction(1), [half, 0], [WORD - 1, 3 * second]) == (0, 2)
    assert chosen_run([0, 60], [1, 1], Fraction(1), [half, 1]) == (0, 0)
    far = chosen_run([0, FAR], [1, 2**40], Fraction(10) ** 50, [half, 0], [0, 0, 0, 0, 0, 1])
    assert far == (0, 6)


@pytest.mark.parametrize(
    "words", [[5, 2**33, 2**60], [WORD - 1, WORD - 9, 0], [2**63, 2**62, 2**61]]
)
def test_cells_that_are_alike_are_chosen_by_their_words_alone(words):
    for smallest in (0, 5, -(2**63), 2**63 - 1):
        for unit in (Fraction(1, 10**400), Fraction(1), Fraction(10) ** 400):
            runs = one_by_one(np.full((1, 3), smallest))
            assert choose(runs, unit, entropy=Scripted([*words, 0])).tolist() == [
                words.index(min(words))
            ]


def test_only_distances_from_the_smallest_count_over_the_whole_of_int64():
    # the distance of the ends, so x = 1
    ends, unit, half = [-(2**63), 2**63 - 1], Fraction(1, WORD - 1), 2**63
    with mpmath.workdps(DIGITS):
        first, second = divmod(
            int(mpmath.floor(uniform_at(mpmath.mpf(1) / 2, Fraction(1), 1) * WORD**2)), WORD
        )
    for word, extra, expected in (
        (first - 1, [], (1, 0)),
        (first + 1, [], (0, 0)),
        (first, [0, second - 1], (1, 2)),
        (first, [0, second + 2], (0, 2)),
    ):
        assert chosen_run(ends, [1, 1], unit, [half, word], extra) == expected


def choose_reference(runs: Runs, unit: Fraction, *, entropy: Scripted) -> list[int]:
    """The same choices run by run in 110 digits, without floats: the slow twin."""
    words = np.empty(runs.sizes.size, np.int64)
    entropy.fill(words)
    ends = [*runs.rows[1:].tolist(), runs.sizes.size]
    winners = []
    for first, last in zip(runs.rows.tolist(), ends, strict=True):
        exponents = runs.exponents[first:last].tolist()
        facts = [
            (unit * (exponent - min(exponents)), size)
            for exponent, size in zip(exponents, runs.sizes[first:last].tolist(), strict=True)
        ]
        bits = words.view(np.uint64)[first:last].tolist()
        width = 64
        rivals = list(range(last - first))
        while len(rivals) > 1:
            with mpmath.workdps(DIGITS + width // 3):
                lows = {
                    rival: log_time(*facts[rival], Fraction(bits[rival], 2**width))
                    for rival in rivals
                }
                earliest = mpmath.inf  # of the latest times; those that begin after it need none
                for rival in sorted(rivals, key=lows.__getitem__):
                    if lows[rival] > earliest:
                        break
                    earliest = min(
                        earliest, log_time(*facts[rival], Fraction(bits[rival] + 1, 2**width))
                    )
                rivals = [rival for rival in rivals if lows[rival] <= earliest]
            if len(rivals) > 1:
                bits = [
                    bits[rival] << 64 | entropy.more() if rival in rivals else 0
                    for rival in range(last - first)
                ]
                width += 64
        winners.append(first + rivals[0])
    picks = np.empty(len(winners), np.int64)
    entropy.fill(picks)
    numbers = [
        word % size
        for word, size in zip(
            picks.view(np.uint64).tolist(), runs.sizes[winners].tolist(), strict=True
        )
    ]
    return runs.cell(np.array(winners), np.array(numbers, np.int64)).tolist()


def words_near_ties(
    exponents: list[int], sizes: list[int], unit: Fraction, generator: np.random.Generator
) -> list[int]:
    """Words of times that lie around one time, most of them where floats are in doubt or just
    outside.
    """
    words, smallest = [], min(exponents)
    with mpmath.workdps(DIGITS):
        for exponent, size in zip(exponents, sizes, strict=True):
            x = unit * (exponent - smallest)
            uniform = uniform_at(mpmath.mpf(3) / 10 / max(sizes), x, size)
            near = int(
                uniform
                * WORD
                * (
                    1
                    + mpmath.mpf(int(generator.integers(-9, 10)))
                    * 2.0 ** -generator.integers(1, 60)
                )
            )
            words.append(min(max(near + int(generator.integers(-3, 4)), 0), WORD - 1))
    return words


@pytest.mark.parametrize("unit", [*UNITS, Fraction(1, 2**70), Fraction(2) ** 70])
def test_the_twins_choose_alike_from_bits_around_every_tie(unit):
    generator = np.random.default_rng(11)
    for _ in range(12):
        exponents = [
            0,
            *generator.integers(0, 60, 8).tolist(),
            *(2 ** generator.integers(0, 63, 4)).tolist(),
        ]
        sizes = (2 ** generator.integers(0, generator.integers(1, 30), len(exponents))).tolist()
        words = [
            *words_near_ties(exponents, sizes, unit, generator),
            int(generator.integers(0, WORD, dtype=np.uint64)),
        ]
        extra = generator.integers(0, WORD, 200, np.uint64).tolist()
        runs = one_row([exponent - 3 for exponent in exponents], sizes)
        fast, slow = Scripted(words, extra), Scripted(words, extra)
        assert choose(runs, unit, entropy=fast).tolist() == choose_reference(
            runs, unit, entropy=slow
        )
        assert fast.asked == slow.asked


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**45)), min_size=1, max_size=8
    ),
    st.fractions(Fraction(1, 10**30), 10**30),
    st.integers(0, 2**32),
)
def test_the_twins_choose_alike_on_any_int64(facts, unit, seed):
    generator = np.random.default_rng(seed)
    words = [
        word >> seed % 64
        for word in generator.integers(0, WORD, len(facts) + 1, np.uint64).tolist()
    ]
    extra = generator.integers(0, WORD, 60, np.uint64).tolist()
    runs = one_row(*map(list, zip(*facts, strict=True)))
    fast = choose(runs, unit, entropy=Scripted(words, extra)).tolist()
    assert fast == choose_reference(runs, unit, entropy=Scripted(words, extra))


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(22, 7)])
def test_many_rows_choose_as_each_of_them_alone(unit):
    """The twins read the same bits: first those of all runs, row after row, then those of ties,
    then the picks.
    """
    generator = np.random.default_rng(13)
    for rows, width in ((1, 1), (7, 1), (1, 40), (20, 13), (3, 200)):
        facts = []
        for row in range(rows):
            exponents = np.abs(int(generator.integers(0, width)) - np.arange(width)) - 2**40 * row
            facts.append((exponents.tolist(), generator.integers(1, 100, width).tolist()))
        runs = many_rows(facts)
        words = generator.integers(0, WORD, rows * width + rows, np.uint64).tolist()
        # ties of far runs
        words[:: max(1, rows * width // 5)] = [0] * len(words[:: max(1, rows * width // 5)])
        extra = generator.integers(0, WORD, 1000, np.uint64).tolist()
        fast, slow = Scripted(words, extra), Scripted(words, extra)
        assert choose(runs, unit, entropy=fast).tolist() == choose_reference(
            runs, unit, entropy=slow
        )
        assert fast.asked == slow.asked


def test_floats_decide_outside_their_bound_and_only_there():
    with mpmath.workdps(DIGITS):
        # of the time of the best at W = 1/10
        middle = int(uniform_at(mpmath.mpf(1) / 10, Fraction(1), 1) * WORD)
    for share, in_doubt in (
        (2.0**-27, False),
        (2.0**-29, True),
        (0.0, True),
        (-(2.0**-29), True),
        (-(2.0**-27), False),
    ):
        with mock.patch.object(choice, "_earliest", side_effect=choice._earliest) as exact:
            chosen_run(
                [0, 1], [1, 1], Fraction(1), [WORD // 10, int(middle * (1 + share))], [2**63] * 9
            )
        assert exact.called == in_doubt
    for word, other, sizes, in_doubt in (
        (2**31, 6 * 2**32, [1, 8], True),  # too close to 0: floats would take the first word as 2³²
        (2**32, 16 * 2**32, [1, 8], False),
        (WORD - 2**44 - 1, WORD // 10 * 9, [8, 1], False),
        (WORD - 2**44, WORD // 10 * 9, [8, 1], True),  # too close to 1
    ):
        with mock.patch.object(choice, "_earliest", side_effect=choice._earliest) as exact:
            assert chosen_run([0, 0], sizes, Fraction(1), [word, other]) == (0, 0)
        assert exact.called == in_doubt


def test_the_floats_are_well_within_their_bounds():
    """Relative errors below 2⁻³⁰, against _DOUBT of 2⁻²⁸, on 1,000 random runs, measured in 50
    digits.
    """
    generator = np.random.default_rng(3)
    for _ in range(1000):
        word = (
            int(2.0 ** generator.uniform(32, 64))
            if generator.random() < 0.5
            else WORD - int(2.0 ** generator.uniform(44, 64))
        )
        word = min(max(word, 2**32), WORD - 2**44 - 1)
        size, gap = int(2.0 ** generator.uniform(0, 40)), int(2.0 ** generator.uniform(0, 62))
        unit = Fraction(2.0 ** generator.uniform(-9, 6) / gap) + Fraction(1, 3 * 2**120)  # no float
        arrays = np.array([word], np.uint64), np.array([size]), np.array([gap], np.uint64)
        time = choice._times(*arrays, float(unit))[0]
        bound = choice._lower_times(*arrays, float(unit))[0]
        with mpmath.workdps(50):
            low, high = (
                mpmath.exp(log_time(unit * gap, size, Fraction(word + more, WORD)))
                for more in (0, 1)
            )
            assert low * (1 - 2.0**-30) < mpmath.mpf(float(time)) < high * (1 + 2.0**-30)
            assert mpmath.mpf(float(bound)) <= low * (1 + 2.0**-40)


@pytest.mark.parametrize("word", [0, 1, 2**32 - 1, WORD - 2**44, WORD - 1])
def test_beyond_the_words_that_floats_decide_they_give_a_time_that_is_not_too_small(word):
    for size in (1, 2, 63, 2**40):
        arrays = np.array([word], np.uint64), np.array([size]), np.array([3], np.uint64)
        time = choice._times(*arrays, 0.5)[0]
        with mpmath.workdps(50):
            latest = mpmath.exp(log_time(Fraction(3, 2), size, Fraction(word + 1, WORD)))
            assert latest <= mpmath.mpf(float(time)) * (1 + 2.0**-30)


def test_integers_below_limits_are_those_of_single_draws():
    limits = np.array([1, 2, 3, 10, 2**18 + 1, 2**62 + 1])
    last = [WORD - WORD % int(limit) for limit in limits]  # the first word that is rejected
    words = [WORD - 1, WORD - 1, last[2], last[3] - 1, last[4], last[5] - 1]
    assert below_each(limits, Scripted(words, [7, last[4] + 1, 12])).tolist() == [
        0,
        1,
        1,
        9,
        12,
        2**62,
    ]


def textbook_law(chances: list[Fraction]) -> list[Fraction]:
    """Permute-and-flip as published: go through a random order, stop at the first coin that shows
    heads.
    """
    number, law = len(chances), [Fraction(0)] * len(chances)
    for shown in range(number):
        # these came first, in whatever order, and showed tails
        for tails in combinations(range(number), shown):
            reached = math.prod(
                (1 - chances[cell] for cell in tails), start=Fraction(1, math.comb(number, shown))
            )
            for cell in {*range(number)} - {*tails}:
                law[cell] += reached * chances[cell] / (number - shown)
    return law


def law_of_runs(chances: list[Fraction], sizes: list[int]) -> list[Fraction]:
    """P that the earliest time is that of a run: ∫₀¹ of m·p·(1 − p·t)^(m−1)·Π of the others' (1 −
    p·t)^m dt.
    """
    law = []
    for run, (chance, size) in enumerate(zip(chances, sizes, strict=True)):
        polynomial = [chance * size]
        for other, (p, m) in enumerate(zip(chances, sizes, strict=True)):
            for _ in range(m - (other == run)):
                polynomial = [
                    (polynomial[i] if i < len(polynomial) else 0)
                    - (p * polynomial[i - 1] if i else 0)
                    for i in range(len(polynomial) + 1)
                ]
        law.append(
            sum((factor / (power + 1) for power, factor in enumerate(polynomial)), Fraction(0))
        )
    return law


@pytest.mark.parametrize(
    "sizes",
    [[1], [3], [1, 1], [1, 5], [5, 1], [2, 2, 2], [1, 4, 1], [3, 1, 2, 1], [1, 1, 1, 1, 1, 1, 1]],
)
def test_the_earliest_survivor_has_the_law_of_permute_and_flip_in_fractions(sizes):
    generator = np.random.default_rng(len(sizes))
    for _ in range(2):
        chances = [Fraction(int(generator.integers(0, 12)), 11) for _ in sizes]
        chances[int(generator.integers(len(sizes)))] = Fraction(1)  # a best cell
        textbook = textbook_law(
            [chance for chance, size in zip(chances, sizes, strict=True) for _ in range(size)]
        )
        ends = np.cumsum([0, *sizes])
        together = [sum(textbook[first:last], Fraction(0)) for first, last in pairwise(ends)]
        assert law_of_runs(chances, sizes) == together
        assert all(len(set(textbook[first:last])) == 1 for first, last in pairwise(ends))


def test_a_cell_of_the_earliest_run_is_picked_by_the_last_word():
    runs = one_row([0, 1, 0], [2, 3, 4])
    assert [
        choose(runs, Fraction(1), entropy=Scripted([9, 8, 7, pick]))[0] for pick in range(6)
    ] == [5, 6, 7, 8, 5, 6]


def test_what_is_no_runs_is_refused():
    good = one_row([0, 1], [1, 2])
    for name in ("exponents", "sizes", "rows"):
        for wrong in ([0, 1], np.array([0.0, 1.0]), np.array([[0, 1]]), np.array([0, 1], np.int32)):
            with pytest.raises(InvalidParameter, match="one-dimensional arrays of int64"):
                choose(Runs(**{**fields(good), name: wrong}), Fraction(1))
    nothing = np.array([], np.int64)
    for wrong in (
        {"exponents": nothing, "sizes": nothing},
        {"rows": nothing},
        {"sizes": np.array([1])},
    ):
        with pytest.raises(InvalidParameter, match="at least one cell"):
            choose(Runs(**{**fields(good), **wrong}), Fraction(1))
    for wrong in (
        {"rows": [1]},
        {"rows": [0, 0]},
        {"rows": [0, 2]},
        {"sizes": [1, 0]},
        {"sizes": [-1, 1]},
    ):
        arrays = {name: np.array(value) for name, value in wrong.items()}
        with pytest.raises(
            InvalidParameter, match="at least one run each, and runs at least one cell"
        ):
            choose(Runs(**{**fields(good), **arrays}), Fraction(1))
    for unit in (Fraction(0), Fraction(-1)):
        with pytest.raises(InvalidParameter, match="unit must be positive"):
            choose(good, unit)


def fields(runs: Runs) -> dict[str, object]:
    return {name: getattr(runs, name) for name in ("exponents", "sizes", "rows", "cell")}


def test_strided_and_read_only_cells_are_served_and_left_alone():
    cells = np.arange(20)[::-2]
    cells.flags.writeable = False
    before = cells.tolist()
    sizes = np.ones(20, np.int64)[::2]
    runs = Runs(exponents=cells, sizes=sizes, rows=np.array([0]), cell=lambda runs, _: runs)
    assert 0 <= choose(runs, Fraction(1))[0] < 10
    assert cells.tolist() == before


def test_spread_out_cells_are_those_of_the_runs():
    assert spread_out(many_rows([([4, 2], [1, 3]), ([7], [4])])).tolist() == [
        [4, 2, 2, 2],
        [7, 7, 7, 7],
    ]


@given(st.fractions(0, 100), st.fractions(0, 100))
def test_two_rates_have_a_largest_common_unit(first, second):
    if first == second == 0:
        with pytest.raises(InvalidParameter, match="nor both 0"):
            common_unit(first, second)
        return
    unit, times, other = common_unit(first, second)
    assert (times * unit, other * unit) == (first, second)
    assert math.gcd(times, other) == 1


@pytest.mark.parametrize("name", ["exp", "expm1", "log1p"])
def test_a_machine_with_a_poor_exponential_is_refused(monkeypatch, name):
    true = getattr(np, name)
    choice._check_floats.cache_clear()
    monkeypatch.setattr(choice.np, name, lambda x, *out: true(x, *out) * (1 + 2.0**-48))
    with pytest.raises(EngineFailed, match="too inexact"):
        choose(one_row([0, 1], [1, 1]), Fraction(1))
    choice._check_floats.cache_clear()
