"""Law: no unit moves the nodes of a tree by more than ε, each node measured in the scale of its
noise.

    sup over neighbours x, x′ of Σ over nodes |node(x) − node(x′)| / scale = ε

which is all that exact and independent DLap(scale) noise needs. All tables of at most 3 people in
up to 7 cells, all neighbours, both relations, heights 1 to 3 and ragged shapes; then the designed
trees, where the sums are linear, with every single person and all pairs of cells. The law is
reached, so the noise is not too large either. Controls: the scale of the other relation, or of a
tree one level lower, must break it.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet.draw import vector
from discreet.release.statistics import tree as module
from discreet.release.statistics.tree import Tree, tree_design
from terms import terms_of

RELATIONS = ["change-one", "add-remove"]
EPSILONS = [Fraction(1, 7), Fraction(1), Fraction(5, 2)]


@pytest.fixture(autouse=True)
def _no_noise(monkeypatch):
    monkeypatch.setattr(vector, "fill", lambda out, *_, **__: out.fill(0))


def shaped(cells: int, height: int, relation: str, scale: Fraction) -> Tree:
    branching = module._root_up(cells, height)
    return Tree(cells=cells, neighbors=relation, height=height, branching=branching, scale=scale)


def tables(people: int, cells: int) -> Iterator[tuple[int, ...]]:
    for where in combinations_with_replacement(range(cells), people):
        yield tuple(np.bincount(np.array(where, np.int64), minlength=cells).tolist())


def neighbours(table: tuple[int, ...], relation: str) -> Iterator[tuple[int, ...]]:
    for source, count in enumerate(table):
        if count == 0:
            continue
        without = [other - (cell == source) for cell, other in enumerate(table)]
        if relation == "add-remove":
            yield tuple(without)
        else:
            for target in range(len(table)):
                yield tuple(other + (cell == target) for cell, other in enumerate(without))


def worst_loss(tree: Tree, relation: str) -> Fraction:
    @cache
    def nodes(table: tuple[int, ...]) -> np.ndarray:
        return np.concatenate(tree.noisy(np.array(table, np.int64)))

    moved = [
        int(np.abs(nodes(table) - nodes(other)).sum())
        for people in (1, 2, 3)
        for table in tables(people, tree.cells)
        for other in neighbours(table, relation)
    ]
    return max(moved) / tree.scale


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("height", [1, 2, 3])
def test_small_trees_lose_no_more_than_epsilon_and_all_of_it(height, relation):
    for cells in range(2, 8):
        tree = shaped(
            cells, height, relation, Fraction(2 * height if relation == "change-one" else height)
        )
        top = tree.sizes[0]
        assert worst_loss(tree, relation) <= 1
        if top > 1 or relation == "add-remove":
            assert worst_loss(tree, relation) == 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("cells", [2, 3, 16, 17, 64, 65, 130])
def test_designed_trees_lose_exactly_epsilon(cells, epsilon, relation):
    tree = tree_design(cells, terms_of(relation), epsilon)
    single = np.array([np.concatenate(tree.noisy(unit)) for unit in np.eye(cells, dtype=np.int64)])
    if relation == "add-remove":
        moved = single.sum(axis=1)
        assert moved.min() == moved.max()
    else:
        moved = np.abs(single[:, np.newaxis, :] - single).sum(axis=2)
    assert int(moved.max()) / tree.scale == epsilon


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("cells", [1024, 1025, 8192, 8193])
def test_large_designed_trees_lose_exactly_epsilon_between_far_cells(cells, relation):
    tree = tree_design(cells, terms_of(relation), Fraction(1, 3))

    def nodes(cell: int) -> np.ndarray:
        return np.concatenate(tree.noisy(np.eye(1, cells, cell, dtype=np.int64)[0]))

    places = [0, 1, tree.branching - 1, tree.branching, cells // 2, cells - 2, cells - 1]
    losses = []
    for place in places:
        others = (
            [nodes(other) for other in places]
            if relation == "change-one"
            else [np.zeros_like(nodes(0))]
        )
        losses += [int(np.abs(nodes(place) - other).sum()) / tree.scale for other in others]
    assert max(losses) == Fraction(1, 3)


@pytest.mark.parametrize(
    ("scale", "relation"),
    [
        (Fraction(3), "change-one"),  # the scale of add-remove
        (Fraction(4), "change-one"),  # one level forgotten
        (Fraction(2), "add-remove"),  # one level forgotten
        (Fraction(599, 100), "change-one"),
        (Fraction(299, 100), "add-remove"),
    ],
)
def test_too_small_a_scale_is_caught(scale, relation):
    assert worst_loss(shaped(6, 3, relation, scale), relation) > 1
