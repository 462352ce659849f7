"""The tree's shape, sums, least squares, isotonic regression, projection and quantiles, without any
chance in them.

Least squares is checked against a dense solver on whole and ragged trees, isotonic regression
against the max–min formula, the projection against a search over all sets of cells that stay
positive.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.draw import vector
from discreet.draw.laplace import DiscreteLaplace
from discreet.errors import InvalidParameter
from discreet.release.statistics import tree as module
from discreet.release.statistics.tree import (
    Tree,
    isotonic,
    project,
    quantile_interval,
    quantiles_from,
    tree_design,
)
from terms import terms_of

pytestmark = pytest.mark.usefixtures("all_simulations")

RELATIONS = ["change-one", "add-remove"]
EDGES = [1, 2, 3, 16, 17, 63, 64, 65, 100, 1023, 1024, 1025, 8193]


@pytest.fixture
def no_noise(monkeypatch):
    """What was asked of the sampler, which answers with zeros."""
    asked = []

    def zeros(out, scale, **_):
        asked.append((out.size, scale))
        out[:] = 0

    monkeypatch.setattr(vector, "fill", zeros)
    monkeypatch.setattr(module, "fill", zeros)
    return asked


def small_tree(cells: int, height: int, neighbors: str) -> Tree:
    return Tree(
        cells=cells,
        neighbors=neighbors,
        height=height,
        branching=module._root_up(cells, height),
        scale=Fraction(height),
    )


def node_matrix(tree: Tree) -> np.ndarray:
    """Which cells each node covers, straight from the definition."""
    rows = []
    for below in reversed(range(tree.height)):
        width = tree.branching**below
        cells = np.arange(tree.cells)
        rows += [cells // width == node for node in range(-(-tree.cells // width))]
    return np.array(rows, dtype=float)


def dense_prefix_sums(tree: Tree, nodes: np.ndarray, total: int | None) -> np.ndarray:
    """Least squares by a general solver; a known total takes the last cell out of the unknowns."""
    matrix = node_matrix(tree)
    if total is None:
        cells = np.linalg.lstsq(matrix, nodes, rcond=None)[0]
    else:
        free = matrix[:, :-1] - matrix[:, -1:]
        first = np.linalg.lstsq(free, nodes - total * matrix[:, -1], rcond=None)[0]
        cells = np.append(first, total - first.sum())
    return np.cumsum(cells)


def rising_by_formula(values: np.ndarray) -> list[float]:
    size = len(values)
    return [
        max(
            min(np.mean(values[start : end + 1]) for end in range(at, size))
            for start in range(at + 1)
        )
        for at in range(size)
    ]


@pytest.mark.parametrize(
    ("cells", "neighbors", "height", "branching", "scale"),
    [
        (1, "change-one", 1, 1, 2),
        (2, "change-one", 1, 2, 2),
        (64, "change-one", 1, 64, 2),
        (65, "change-one", 2, 9, 4),
        (1024, "change-one", 2, 32, 4),
        (1025, "change-one", 3, 11, 6),
        (8192, "change-one", 3, 21, 6),
        (8193, "change-one", 4, 10, 8),
        (16, "add-remove", 1, 16, 1),
        (17, "add-remove", 2, 5, 2),
        (1025, "add-remove", 3, 11, 3),
        (65536, "add-remove", 4, 16, 4),
        (65537, "add-remove", 4, 17, 4),
    ],
)
def test_the_rule_of_the_shape_and_the_scale(cells, neighbors, height, branching, scale):
    assert tree_design(cells, terms_of(neighbors), Fraction(1, 3)) == Tree(
        cells=cells,
        neighbors=neighbors,
        height=height,
        branching=branching,
        scale=Fraction(3 * scale),
    )


def test_the_root_is_exact_where_floats_are_not():
    for degree in (1, 2, 3, 4):
        for root in (1, 2, 3, 10, 999, 30_000):
            assert module._root_up(root**degree, degree) == root
            assert module._root_up(root**degree + 1, degree) == root + 1
    assert module._root_up(10**18, 3) == 10**6


@pytest.mark.parametrize("cells", EDGES)
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_without_noise_the_tree_is_the_identity(cells, neighbors, no_noise):
    tree = tree_design(cells, terms_of(neighbors), Fraction(7, 10))
    counts = (np.arange(cells, dtype=np.int64) * 7919) % 23
    total = int(counts.sum())
    nodes = tree.noisy(counts)
    assert [level.dtype for level in nodes] == [np.int64] * tree.height
    assert tuple(level.size for level in nodes) == tree.sizes
    assert [int(level.sum()) for level in nodes] == [total] * tree.height
    assert no_noise == [(sum(tree.sizes), tree.scale)]
    cumulative = tree.cumulative(nodes, total if neighbors == "change-one" else None)
    assert cumulative.tolist() == np.cumsum(counts).tolist()


@pytest.mark.parametrize("cells", [1, 5, 17, 65, 100, 200])
def test_nodes_are_the_sums_of_their_cells(cells, no_noise):
    tree = tree_design(cells, terms_of("add-remove"), Fraction(1))
    counts = (np.arange(cells, dtype=np.int64) * 31) % 11
    assert np.concatenate(tree.noisy(counts)).tolist() == (node_matrix(tree) @ counts).tolist()
    assert no_noise


def test_every_node_has_noise_of_its_own():
    """Scale 2·10⁶: two of 73 nodes are equal with a chance below 7·10⁻⁴ for one release, 10⁻⁹ for
    three in a row.
    """
    tree = tree_design(65, terms_of("change-one"), Fraction(2, 10**6))
    for _ in range(3):
        nodes = np.concatenate(tree.noisy(np.zeros(65, np.int64)))
        if np.unique(nodes).size == nodes.size == 73:
            return
    pytest.fail("nodes share their noise")


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_two_passes_are_least_squares_on_whole_and_ragged_trees(height, neighbors):
    generator = np.random.default_rng(2010)
    total = 137 if neighbors == "change-one" else None
    for cells in [*range(1, 34), 64, 65, 81]:
        tree = small_tree(cells, height, neighbors)
        matrix = node_matrix(tree)
        assert len(matrix) == sum(tree.sizes)
        nodes = generator.integers(-20, 60, len(matrix)).astype(float)
        levels = [level[:, np.newaxis] for level in np.split(nodes, np.cumsum(tree.sizes[:-1]))]
        measured = tree._prefix_sums(levels, float(total or 0))[:, 0]
        np.testing.assert_allclose(measured, dense_prefix_sums(tree, nodes, total), atol=1e-9)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_a_batch_is_its_rows(neighbors):
    tree = tree_design(70, terms_of(neighbors), Fraction(1))
    total = 40 if neighbors == "change-one" else None
    rows = [tree.noisy(np.arange(70, dtype=np.int64) % 3) for _ in range(4)]
    batch = [np.array(level) for level in zip(*rows, strict=True)]
    expected = [tree.cumulative(row, total) for row in rows]
    np.testing.assert_allclose(tree.cumulative(batch, total), expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_the_cumulative_counts_rise_between_zero_and_the_total(neighbors):
    tree = tree_design(200, terms_of(neighbors), Fraction(1, 100))
    total = 50 if neighbors == "change-one" else None
    for _ in range(20):
        cumulative = tree.cumulative(tree.noisy(np.ones(200, np.int64)), total)
        assert np.all(np.diff(cumulative) >= 0)
        assert cumulative[0] >= 0
        if total is not None:
            assert cumulative[-1] == total


def test_a_private_total_is_the_least_squares_one_also_after_isotonic_regression():
    tree = tree_design(4, terms_of("add-remove"), Fraction(1))
    assert tree.cumulative([np.array([5, 8, -6, 0])], None).tolist() == [5, 7, 7, 7]
    assert tree.cumulative([np.array([5, -9, 1, 1])], None).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)])
def test_intervals_hold_the_quantile_whenever_the_noise_stays_within_the_band(share):
    """A private total, noise of every size: without the cut at F̂(K−1) some of these intervals
    miss.
    """
    generator = np.random.default_rng(11)
    tree = tree_design(6, terms_of("add-remove"), Fraction(1))
    for _ in range(3000):
        counts = generator.integers(0, 4, 6) * generator.integers(0, 2, 6)
        noise = generator.integers(-6, 7, 6)
        errors, truth = np.cumsum(noise), np.cumsum(counts)
        band = float(np.abs(errors - float(share) * errors[-1]).max())
        correct = int(quantiles_from(truth.astype(float), [share], int(truth[-1]))[0])
        first, last = quantile_interval(tree.cumulative([counts + noise], None), share, None, band)
        assert first <= correct <= last


def test_isotonic_regression_is_the_max_min_formula():
    generator = np.random.default_rng(7)
    for size in [*range(1, 9), 20]:
        for _ in range(20):
            values = generator.integers(-5, 6, size).astype(float)
            np.testing.assert_allclose(isotonic(values), rising_by_formula(values), atol=1e-12)
    assert isotonic(np.array([3.0, 2.0, 1.0])).tolist() == [2, 2, 2]
    assert isotonic(np.array([[1.0, 0.1, 0.2], [0.3, 0.3, 7.0]])).tolist()[1] == [0.3, 0.3, 7.0]


def test_isotonic_regression_never_leaves_a_band_around_a_rising_truth():
    generator = np.random.default_rng(8)
    for _ in range(200):
        truth = np.cumsum(generator.integers(0, 3, 30)).astype(float)
        noise = generator.laplace(size=30)
        assert np.abs(isotonic(truth + noise) - truth).max() <= np.abs(noise).max() + 1e-12


def test_isotonic_regression_is_linear_in_time_at_its_worst():
    values = np.append(np.arange(50_000.0), -1e12)
    assert np.ptp(isotonic(values)) == 0


def brute_projection(counts: np.ndarray, total: float) -> np.ndarray:
    """The best over all sets of cells that may stay above 0: on each, an equal share of the surplus
    goes.
    """
    best, nearest = np.inf, counts
    for size in range(1, counts.size + 1):
        for kept in map(list, combinations(range(counts.size), size)):
            candidate = np.zeros_like(counts)
            candidate[kept] = counts[kept] - (counts[kept].sum() - total) / size
            distance = float(((candidate - counts) ** 2).sum())
            if candidate.min() >= -1e-12 and distance < best:
                best, nearest = distance, candidate
    return nearest


def test_the_projection_is_the_nearest_histogram():
    generator = np.random.default_rng(9)
    for size in range(1, 8):
        for total in (1.0, 5.0, 40.0):
            counts = generator.integers(-9, 12, size).astype(float)
            np.testing.assert_allclose(
                project(counts, total), brute_projection(counts, total), atol=1e-9
            )


def test_the_projection_leaves_a_possible_histogram_alone():
    counts = np.array([0.1, 0.0, 0.2, 1e9, 0.7])
    total = float(np.sum([0.1, 0.2, 0.7])) + 1e9
    assert project(counts, total).tolist() == counts.tolist()
    assert project(np.array([3.0, 0.0, 4.0]), 7).tolist() == [3, 0, 4]
    assert project(np.array([3.0, -1.0]), -2).tolist() == [0, 0]
    assert project(np.array([-3.0, -3.0]), 1).tolist() == [0.5, 0.5]


def test_quantiles_are_the_first_cells_that_reach_their_rank():
    cumulative = np.array([0.0, 0.0, 4.0, 4.0, 7.0, 10.0])
    shares = [Fraction(text) for text in ("0", "1/10", "2/5", "1/2", "7/10", "1")]
    assert quantiles_from(cumulative, shares, 10).tolist() == [0, 2, 2, 4, 4, 5]
    assert quantiles_from(cumulative, shares, None).tolist() == [0, 2, 2, 4, 4, 5]
    assert quantiles_from(cumulative, [Fraction(55, 100)], 100).tolist() == [5]
    assert quantiles_from(np.array([55.0, 100.0]), [Fraction(55, 100)], None).tolist() == [0]


@pytest.mark.parametrize("total", [10, None])
@pytest.mark.parametrize("band", [0.0, 0.5, 1.0, 3.0, 100.0])
def test_quantile_intervals_are_the_set_they_are_defined_by(total, band):
    cumulative = np.array([0.0, 0.0, 4.0, 4.0, 7.0, 10.0])
    before = np.array([0.0, *cumulative[:-1]])
    for share in (Fraction(0), Fraction(2, 5), Fraction(1, 2), Fraction(1)):
        rank = float(10 * share)
        cells = np.flatnonzero((cumulative + band >= rank) & (before - band <= rank))
        assert quantile_interval(cumulative, share, total, band) == (cells[0], cells[-1])


@pytest.mark.parametrize(
    "confidence", [Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(999, 1000)]
)
@pytest.mark.parametrize("nodes", [1, 300, 4368, 70_000])
def test_the_order_taken_bounds_the_quantile_from_above(confidence, nodes):
    from scipy import stats

    simulations, order = module._simulations(nodes, confidence)
    assert order <= simulations
    assert stats.binom.sf(order - 1, simulations, float(confidence)) <= 1e-6 * (1 + 1e-6)
    assert stats.binom.sf(order - 2, simulations, float(confidence)) > 1e-6


def test_the_band_of_a_single_count_is_its_quantile():
    """One cell with a private total: |DLap(1/ε)|.

    The band is 3 % wide of it, ± 0.6 %: false alarms below 2·10⁻⁶.
    """
    tree = tree_design(1, terms_of("add-remove"), Fraction(1, 1000))
    exact = DiscreteLaplace(1000).ppf(Fraction(39, 40))
    band = tree.band(Fraction(19, 20))
    assert exact <= band <= 1.06 * exact
    assert tree.band(Fraction(19, 20)) == band
    assert tree_design(1, terms_of("change-one"), Fraction(1)).band(Fraction(19, 20)) == 0


def test_shares_matter_only_where_the_total_is_private():
    public = tree_design(30, terms_of("change-one"), Fraction(1))
    assert public.band(Fraction(9, 10), [Fraction(1, 2)]) == public.band(Fraction(9, 10))
    private = tree_design(30, terms_of("add-remove"), Fraction(1))
    halves = private.band(Fraction(9, 10), [Fraction(1, 2)])
    # a bridge towards e(K−1)/2 keeps closer than a walk
    assert halves < private.band(Fraction(9, 10))
    both = private.band(Fraction(9, 10), [Fraction(1), Fraction(1, 2), Fraction(0)])
    assert both == private.band(Fraction(9, 10), [Fraction(0), Fraction(1)])
    assert both > halves


@pytest.mark.parametrize(
    ("noise", "widths"),
    [([4, -9, 8], {"0": 5, "1/3": 6, "1": 8}), ([-3, 12, -6], {"0": 9, "1/3": 8, "1": 6})],
)
def test_the_band_of_shares_is_that_of_the_centred_errors(noise, widths, monkeypatch):
    """With every simulation the same, the half-width is the largest |e(v) − q·e(K−1)|."""
    tree = tree_design(3, terms_of("add-remove"), Fraction(1))

    def steps(out, scale):
        assert scale == 1
        out.reshape(3, -1)[:] = np.array(noise)[:, np.newaxis]

    monkeypatch.setattr(module, "fill", steps)
    module._band.cache_clear()
    measured = {share: tree.band(Fraction(1, 2), [Fraction(share)]) for share in widths}
    together = tree.band(Fraction(1, 2), [Fraction(share) for share in widths])
    alone = tree.band(Fraction(1, 2))
    module._band.cache_clear()
    assert measured == pytest.approx(widths, rel=2e-6)
    assert together == pytest.approx(max(widths.values()), rel=2e-6)
    assert alone == pytest.approx(widths["0"], rel=2e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tree_design(0, terms_of("change-one"), Fraction(1)), "cells must be"),
        (lambda: tree_design(4, terms_of("change-one"), Fraction(0)), "epsilon must be"),
        (
            lambda: tree_design(4, terms_of("change-one"), Fraction(1)).noisy(
                np.zeros(5, np.int64)
            ),
            "4 cells",
        ),
        (
            lambda: tree_design(4, terms_of("change-one"), Fraction(1)).cumulative(
                [np.zeros(4)], None
            ),
            "got no total",
        ),
        (
            lambda: tree_design(4, terms_of("add-remove"), Fraction(1)).cumulative(
                [np.zeros(4)], 12345
            ),
            "got a total",
        ),
        (
            lambda: tree_design(4, terms_of("change-one"), Fraction(1)).band(Fraction(1)),
            "at most 999/1000",
        ),
        (lambda: quantiles_from(np.array([1.0]), [Fraction(3, 2)], 1), "between 0 and 1"),
        (lambda: quantile_interval(np.array([1.0]), Fraction(-1, 2), 1, 0.0), "between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_refused(call, words):
    with pytest.raises(InvalidParameter, match=words) as refusal:
        call()
    assert "12345" not in str(refusal.value)
