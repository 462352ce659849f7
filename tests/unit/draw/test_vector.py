"""The plumbing of the fast sampler: blocks, threads, types, memory, and which draws its tables
leave open.
"""

import threading
from fractions import Fraction

import numpy as np
import pytest

from discreet import DiscreteLaplace
from discreet.draw import entropy as entropy_module
from discreet.draw import vector
from discreet.draw.digits import Digits
from discreet.draw.vector import BLOCK, PART, beyond_int64, fill
from discreet.errors import InvalidParameter


def test_blocks_and_threads_cover_every_element():
    for size in (
        0,
        1,
        63,
        64,
        65,
        PART - 1,
        PART,
        PART + 1,
        BLOCK - 1,
        BLOCK,
        BLOCK + 1,
        2 * BLOCK + 7,
    ):
        for threads in (1, 2, 3):
            out = np.full(size, 10**9, np.int64)
            fill(out, Fraction(1000), threads=threads)
            assert np.abs(out).max(initial=0) < 10**9 // 2


def test_two_threads_never_share_noise():
    out = np.empty(2 * BLOCK, np.int64)
    fill(out, Fraction(2**20), threads=2)
    assert not np.array_equal(out[:BLOCK], out[BLOCK:])
    found: list[np.ndarray] = []
    workers = [
        threading.Thread(target=lambda: found.append(DiscreteLaplace(2**20).sample(100)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({tuple(draws.tolist()) for draws in found}) == 4


@pytest.mark.parametrize(
    "scale", [Fraction(1, 2), Fraction(65), Fraction(1000), Fraction(2**20), Fraction(2**49)]
)
def test_few_draws_are_in_shared_cells_and_hardly_any_is_made_alone(scale, monkeypatch):
    """Below 2.5 % of the cells, and about 30 draws of 10⁶ at most: 100 has no chance."""
    calls = []
    for name in ("number", "top", "excess"):
        alone = getattr(Digits, name)
        monkeypatch.setattr(
            Digits, name, lambda *given, alone=alone: calls.append(1) or alone(*given)
        )
    fill(np.empty(10**6, np.int64), scale, threads=1)
    assert len(calls) < 100
    assert 2**16 * 0.975 < vector._table(scale, *vector._BITS).shared < 2**16


def test_tables_are_made_once_for_a_scale():
    scale = Fraction(12345, 678)
    before = vector._table.cache_info()
    for size in (1000, 1000, vector._FEW + 1, vector._FEW + 1):
        fill(np.empty(size, np.int64), scale)
    after = vector._table.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (
        2,
        2,
    ), "one for short arrays, one for long ones"


def test_shapes_and_types_of_samples():
    assert isinstance(DiscreteLaplace(3).sample(), int)
    assert DiscreteLaplace(3).sample((2, 3)).shape == (2, 3)
    assert DiscreteLaplace(3).sample(0).dtype == np.int64
    huge = DiscreteLaplace(2**80).sample(5)
    assert huge.dtype == object
    assert all(isinstance(draw, int) for draw in huge)
    assert beyond_int64(Fraction(2**50))
    assert not beyond_int64(Fraction(2**49))


@pytest.mark.parametrize("size", [-1, "a", (2, -3), 1.5])
def test_a_bad_size_is_refused(size):
    with pytest.raises(InvalidParameter, match="size must be a shape"):
        DiscreteLaplace(1).sample(size)


def test_working_memory_is_bounded():
    """Beyond the output a fill needs the random bits of a part, its table, and the shared cells of
    a block.
    """
    import tracemalloc

    out = np.empty(10**7, np.int64)
    tracemalloc.start()
    fill(out, Fraction(10), threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * 2**20


def test_pool_words_are_used_once():
    stream = entropy_module.Keystream()
    seen = [stream.more() for _ in range(3000)]
    assert len(set(seen)) == 3000
    small = np.empty(5, np.int64)
    stream.fill(small)
    stream.fill(small)
    assert len({*seen, *(small.view(np.uint64).tolist())}) == 3005
