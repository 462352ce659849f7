from fractions import Fraction

import numpy as np
import pytest

from discreet import InvalidParameter, laplace_mechanism
from discreet.draw import vector

TINY_NOISE = {"sensitivity": 1, "epsilon": 10**6}
"""At ε = 10⁶ the noise of integers is 0 but for a chance of 10⁻⁴⁰⁰⁰⁰⁰, that of floats some 10⁻⁶:
the plumbing shows.
"""

NEAR = 1e-4
"""A hundred times the scale of the float noise at ε = 10⁶: a false alarm has probability e⁻¹⁰⁰ a
number.
"""


def test_numbers_give_numbers():
    assert laplace_mechanism(1234, **TINY_NOISE) == 1234
    assert type(laplace_mechanism(1234, **TINY_NOISE)) is int
    assert type(laplace_mechanism(True, **TINY_NOISE)) is int
    assert type(laplace_mechanism(0.5, **TINY_NOISE)) is float
    assert type(laplace_mechanism(np.int32(7), **TINY_NOISE)) is int
    assert type(laplace_mechanism(np.float32(7), **TINY_NOISE)) is float
    assert laplace_mechanism(10**400, **TINY_NOISE) == 10**400


def test_lists_give_lists():
    assert laplace_mechanism([1, 2, 3], **TINY_NOISE) == [1, 2, 3]
    assert laplace_mechanism((1, 2), **TINY_NOISE) == [1, 2]
    assert laplace_mechanism([[1, 2], [3, 4]], **TINY_NOISE) == [[1, 2], [3, 4]]
    assert laplace_mechanism([2**63, -1, 2**70], **TINY_NOISE) == [2**63, -1, 2**70]
    assert laplace_mechanism([], **TINY_NOISE) == []
    assert [type(x) for x in laplace_mechanism([1, 2.5], **TINY_NOISE)] == [float, float]


@pytest.mark.parametrize("dtype", "?bhilqBHILQ")
def test_integer_arrays_give_int64(dtype):
    found = laplace_mechanism(np.ones((2, 3), dtype), **TINY_NOISE)
    assert found.dtype == np.int64
    assert np.array_equal(found, np.ones((2, 3)))


@pytest.mark.parametrize("dtype", "efdg")
def test_float_arrays_give_float64_on_the_grid(dtype):
    found = laplace_mechanism(np.full((2, 3), 0.5, dtype), sensitivity=1, epsilon=1, changes=1)
    assert found.dtype == np.float64
    assert np.array_equal(np.rint(found * 2**20), found * 2**20)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64])
def test_an_empty_array_keeps_its_kind(dtype):
    found = laplace_mechanism(np.empty((0, 3), dtype), sensitivity=1, epsilon=1)
    assert found.shape == (0, 3)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.int64)


def test_int64_is_held_at_its_ends_and_never_wraps():
    ends = np.array([2**63 - 1, -(2**63)] * 200)
    found = laplace_mechanism(ends, sensitivity=1, epsilon="0.001")
    assert np.all(found[::2] > 2**62)
    assert np.all(found[1::2] < -(2**62))
    assert laplace_mechanism(np.array([2**64 - 1], np.uint64), **TINY_NOISE)[0] == 2**63 - 1
    assert laplace_mechanism(np.array([2**62 + 3, 5]), **TINY_NOISE).tolist() == [2**62 + 3, 5]


def test_nothing_in_a_float_array_raises():
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e300, -1.7976931348623157e308, 2.0**60])
    found = laplace_mechanism(odd, sensitivity=1, epsilon=10**6, changes=1)
    assert np.all(np.isfinite(found))
    assert abs(found[0]) < NEAR
    assert found[1] == -found[2] == np.finfo(float).max
    assert found[5] == 1e300
    assert found[7] == 2.0**60
    assert abs(found[3]) < NEAR
    for number in odd.tolist():
        assert np.isfinite(laplace_mechanism(number, sensitivity=1, epsilon=1))


def test_a_number_and_an_array_of_one_are_rounded_alike():
    for number in (0.1, 1 / 3, -7.25, 1e-9, 123456.789, 2.0**80):
        results = [
            laplace_mechanism(number, **TINY_NOISE),
            *laplace_mechanism(np.array([number]), **TINY_NOISE).tolist(),
            *laplace_mechanism([number], **TINY_NOISE),
        ]
        assert all(abs(result - number) <= NEAR + abs(number) / 2**52 for result in results)


def test_zero_has_one_sign(monkeypatch):
    monkeypatch.setattr(vector, "fill", lambda out, *_, **__: out.fill(0))
    monkeypatch.setattr(vector, "draw_one", lambda _scale: 0)
    for answer in (np.full(3, -0.0), [-0.0, -1e-300], -0.0):
        assert not np.signbit(laplace_mechanism(answer, sensitivity=1, epsilon=1)).any()


def test_out_receives_the_result_in_place():
    answer = np.arange(10**6)
    assert laplace_mechanism(answer, **TINY_NOISE, out=answer) is answer
    assert np.array_equal(answer, np.arange(10**6))
    reals = np.arange(1000) / 4
    out = np.empty(1000)
    laplace_mechanism(reals, sensitivity=1, epsilon=10**6, changes=1, out=out)
    assert np.allclose(out, reals, atol=NEAR)


@pytest.mark.parametrize(
    "out", [np.empty(3), np.empty(2, np.int64), [0, 0, 0], np.empty(3, np.int32)]
)
def test_a_wrong_out_is_refused(out):
    with pytest.raises(InvalidParameter, match="out must be a writeable array of int64"):
        laplace_mechanism(np.array([1, 2, 3]), sensitivity=1, epsilon=1, out=out)


def test_any_layout_is_taken():
    block = np.arange(60).reshape(3, 4, 5)
    for view in (
        block[::2],
        block.T,
        block[:, ::-1, ::2],
        np.asfortranarray(block),
        block[0, 0, 0],
    ):
        assert np.array_equal(laplace_mechanism(view, **TINY_NOISE), view)
        real = np.asarray(view) / 2
        assert np.allclose(
            laplace_mechanism(real, sensitivity=1, epsilon=10**6, changes=1), real, atol=NEAR
        )
    target = np.zeros((4, 6), np.int64)[::2, ::2]
    laplace_mechanism(np.ones((2, 3), np.int64), **TINY_NOISE, out=target)
    assert np.all(target == 1)


def test_a_huge_scale_gives_python_integers():
    found = laplace_mechanism(np.zeros(100, np.int64), sensitivity=2**80, epsilon=1)
    assert found.dtype == object
    assert max(abs(value) for value in found) > 2**70


def test_the_noise_has_the_scale_it_should():
    """Alarm at 7 standard errors: below 10⁻¹¹. Catches a scale 1 % off."""
    n = 10**6
    for epsilon, sensitivity in (("0.1", 2), (1, 1), ("0.5", "3/2")):
        scale = float(Fraction(str(sensitivity)) / Fraction(str(epsilon)))
        whole = laplace_mechanism(np.zeros(n, np.int64), sensitivity=sensitivity, epsilon=epsilon)
        assert abs(np.abs(whole).mean() * np.sinh(1 / scale) - 1) < 7 / np.sqrt(n)
        real = laplace_mechanism(np.zeros(n), sensitivity=sensitivity, epsilon=epsilon, changes=1)
        assert abs(np.abs(real).mean() / scale - 1) < 7 / np.sqrt(n)


def test_many_changes_cost_at_most_a_hundredth_more():
    n = 10**6
    found = laplace_mechanism(np.zeros(n), sensitivity=1, epsilon=1)
    assert abs(np.abs(found).mean() - 1) < 0.01 + 7 / np.sqrt(n)


@pytest.mark.parametrize("changes", [0, -1, 1.5, True, "2"])
def test_changes_must_be_a_whole_number(changes):
    with pytest.raises(InvalidParameter, match="changes must be a whole number"):
        laplace_mechanism(1.0, sensitivity=1, epsilon=1, changes=changes)


@pytest.mark.parametrize(
    "answer", ["12", None, [1, None], [[1, 2], [3]], [1, "a"], {"a": 1}, np.array(["a"]), 1j]
)
def test_what_is_no_number_is_refused(answer):
    with pytest.raises(InvalidParameter, match="answer must be"):
        laplace_mechanism(answer, sensitivity=1, epsilon=1)


def test_extra_memory_is_bounded():
    import tracemalloc

    answer = np.zeros(10**7)
    tracemalloc.start()
    laplace_mechanism(answer, sensitivity=1, epsilon=1, changes=1, out=answer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 32 * 2**20
