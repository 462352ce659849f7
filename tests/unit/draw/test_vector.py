"""The proof's assumptions and its bound, measured; and the plumbing of the fast sampler."""

import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import DiscreteLaplace
from discreet.draw import entropy as entropy_module
from discreet.draw import vector
from discreet.draw.vector import BLOCK, _constants, _filter, beyond_int64, draw_one, fill
from discreet.errors import EngineFailed, InvalidParameter
from scripted import Replayed

DENSE = np.random.default_rng(20261115)


def dense_words(count: int) -> np.ndarray:
    """Words with magnitudes spread evenly in the logarithm between 2⁴⁴ and 2⁶³, all low bits random, both signs."""
    size = np.exp2(DENSE.uniform(44.01, 62.9999, count)).astype(np.int64) | DENSE.integers(0, 2**20, count)
    return np.where(DENSE.random(count) < 0.5, size, ~size)


def test_log_is_within_one_ulp_where_the_proof_allows_eight():
    words = np.abs(dense_words(20_000)).astype(np.float64)
    worst = 0.0
    with mpmath.workdps(40):
        for word, measured in zip(words.tolist(), np.log(words).tolist(), strict=True):
            exact = mpmath.log(mpmath.mpf(word))
            worst = max(worst, float(abs(exact - measured)) / float(np.spacing(measured)))
    assert worst <= vector._LOG_ULPS / 8


@pytest.mark.parametrize("scale", ["1/50", "1/2", "1", "7/3", "100", "12345/67", str(2**20), str(2**26), str(2**33)])
def test_the_filter_stays_within_the_proved_error(scale):
    """The fixed-point result differs from sign·(y − 1/2) by at most E, for words all over the range."""
    scale = Fraction(scale)
    constants = _constants(scale)
    shift = int(constants.shift)
    words = dense_words(3_000)
    reals, out = np.empty(words.size), np.empty(words.size, np.int64)
    _filter(constants, words, reals, out)
    error = Fraction(constants.doubt, 2) / 2**shift
    allowed = scale * Fraction(1, 2**42) + Fraction(1, 2**shift)
    assert error >= allowed, "the doubt is never narrower than E"
    worst = 0.0
    with mpmath.workdps(60):
        t = mpmath.mpf(scale.numerator) / scale.denominator
        offset = mpmath.log(2 / (1 + mpmath.exp(-1 / t)))
        for word, whole, fraction in zip(words.tolist(), out.tolist(), reals.view(np.int64).tolist(), strict=True):
            fixed = (
                mpmath.mpf(whole) + mpmath.mpf(fraction) / 2**shift - 0.5 - mpmath.mpf(constants.doubt // 2) / 2**shift
            )
            low = word if word >= 0 else ~word
            for end in (low, low + 1):  # V may lie anywhere in its cell
                exact = t * (offset - mpmath.log(mpmath.mpf(end) / 2**63)) - 0.5
                worst = max(worst, float(abs(fixed - (exact if word >= 0 else -exact))))
    assert worst <= float(allowed)
    assert worst >= float(allowed) / 64, "a bound this loose would hide a broken measurement"


def test_a_draw_alone_uses_the_same_filter():
    for scale in (Fraction(1, 7), Fraction(3), Fraction(10**6), Fraction(2**40)):
        words = DENSE.integers(-(2**63), 2**63 - 1, 300)
        extra = DENSE.integers(0, 2**62, 10**4)
        many = np.empty(words.size, np.int64)
        fill(many, scale, entropy=Replayed(words, extra))
        for word, expected in zip(words.tolist(), many.tolist(), strict=True):
            answers = iter([word & (2**64 - 1), *extra.tolist()[:3]])

            class One:
                more = answers.__next__

            assert draw_one(scale, One()) == expected


def test_blocks_and_threads_cover_every_element():
    for size in (0, 1, 63, 64, 65, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7):
        for threads in (1, 2, 3):
            out = np.full(size, 10**9, np.int64)
            fill(out, Fraction(1000), threads=threads)
            assert np.abs(out).max(initial=0) < 10**9 // 2


def test_two_threads_never_share_noise():
    out = np.empty(8 * BLOCK, np.int64)
    fill(out, Fraction(2**20), threads=2)
    assert not np.array_equal(out[: 4 * BLOCK], out[4 * BLOCK :])
    found: list[np.ndarray] = []
    workers = [threading.Thread(target=lambda: found.append(DiscreteLaplace(2**20).sample(100))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({tuple(draws.tolist()) for draws in found}) == 4


def test_the_exact_path_is_rare(monkeypatch):
    """About 2⁻¹⁹ + 2E of the draws: at scale 2²⁰ some 25 in ten million, so 200 would be a broken filter."""
    calls = []
    monkeypatch.setattr(vector, "from_word", lambda *_: calls.append(1) or 0)
    fill(np.empty(10**7, np.int64), Fraction(2**20), threads=1)
    assert 0 < len(calls) < 200


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


def test_a_machine_with_a_bad_log_is_refused(monkeypatch):
    vector._checked_log.cache_clear()
    real = np.log
    monkeypatch.setattr(vector.np, "log", lambda x: real(x) * (1 + 2.0**-50))
    with pytest.raises(EngineFailed, match="logarithm"):
        vector._checked_log()
    monkeypatch.undo()
    vector._checked_log.cache_clear()
    vector._checked_log()


def test_working_memory_is_bounded():
    """Beyond the output a fill needs two blocks of 1 MiB and the keystream's plaintext."""
    import tracemalloc

    out = np.empty(10**7, np.int64)
    tracemalloc.start()
    fill(out, Fraction(10), threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 16 * 2**20


def test_pool_words_are_used_once():
    stream = entropy_module.Keystream()
    seen = [stream.more() for _ in range(3000)]
    assert len(set(seen)) == 3000
    small = np.empty(5, np.int64)
    stream.fill(small)
    stream.fill(small)
    assert len({*seen, *(small.view(np.uint64).tolist())}) == 3005
