"""TRUST 10: entropy that fails, is short or constant fails closed; forks and threads never share
noise.
"""

import ctypes
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from discreet import DiscreteLaplace, EngineFailed, laplace_mechanism
from discreet.draw import entropy

LAW = DiscreteLaplace(2**30)


@pytest.fixture
def fresh_streams(monkeypatch):
    """As in a new process: no stream and no memory of a seed."""
    entropy._forget()
    monkeypatch.setattr(entropy, "_last_seed", b"")
    yield
    entropy._forget()


def failing(_count):
    raise OSError("no entropy")


FAULTS = {
    "failing": failing,
    "unsupported": lambda _count: (_ for _ in ()).throw(NotImplementedError()),
    "short": lambda count: bytes(range(count // 2)),
    "empty": lambda _count: b"",
    "zeros": bytes,
    "constant": lambda count: b"\x17" * count,
    "repeated": lambda count: bytes(range(count)),
}


@pytest.mark.usefixtures("fresh_streams")
@pytest.mark.parametrize("fault", FAULTS)
def test_bad_entropy_fails_closed(monkeypatch, fault):
    monkeypatch.setattr(os, "urandom", FAULTS[fault])
    for release in (
        lambda: laplace_mechanism(5, sensitivity=1, epsilon=1),
        lambda: laplace_mechanism(np.arange(1000), sensitivity=1, epsilon=1),
        lambda: LAW.sample(10**6),
    ):
        with pytest.raises(EngineFailed, match="nothing was drawn"):
            release()


@pytest.mark.usefixtures("fresh_streams")
def test_the_same_seed_is_not_taken_twice(monkeypatch):
    """A system that gives good bytes once, and then the same again."""
    pairs = iter([b"a" * 47 + b"b", b"c" * 47 + b"d"] * 2)
    monkeypatch.setattr(os, "urandom", lambda _count: next(pairs))
    entropy.Keystream()
    with pytest.raises(EngineFailed, match="same random bytes twice"):
        entropy.Keystream()


class Awaited(bytes):
    """Bytes whose check ends when two threads are in it, or after a moment."""

    both = threading.Barrier(2)

    def __iter__(self):
        with suppress(threading.BrokenBarrierError):
            self.both.wait(timeout=0.5)
        return super().__iter__()


@pytest.mark.usefixtures("fresh_streams")
def test_of_two_threads_with_one_seed_one_is_refused(monkeypatch):
    """Each compares its seed with the one before, and both would pass before either has noted its
    own.
    """
    turns = threading.local()

    def repeating(_count):
        turns.taken = getattr(turns, "taken", 0) + 1
        return Awaited(b"a" * 47 + b"b") if turns.taken == 1 else b"c" * 47 + b"d"

    monkeypatch.setattr(os, "urandom", repeating)
    monkeypatch.setattr(Awaited, "both", threading.Barrier(2))
    with ThreadPoolExecutor(2) as threads:
        keys = [threads.submit(entropy.Keystream) for _ in range(2)]
        errors = [key.exception() for key in keys]
    assert sorted(type(error).__name__ for error in errors) == ["EngineFailed", "NoneType"]


def in_a_fork(draw, fork=os.fork) -> list[int]:
    """What a forked child draws."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.write(writer, pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        drawn = pickle.loads(answers.read())  # noqa: S301 - our own child
    os.waitpid(child, 0)
    return drawn


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_never_repeats_its_parent():
    LAW.sample(10)  # the parent's stream exists and its pool is half used
    draw = lambda: [LAW.sample() for _ in range(50)] + LAW.sample(1000).tolist()  # noqa: E731
    children = [in_a_fork(draw) for _ in range(3)]
    parent = draw()
    sequences = [*children, parent]
    for index, one in enumerate(sequences):
        for other in sequences[index + 1 :]:
            assert len(set(one) & set(other)) < 10


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_that_python_did_not_see_is_noticed():
    """The stream itself remembers its process, even if the hook for forks could not replace it."""
    stream = entropy.keystream()
    stream.more()
    draw = lambda: [stream.more() for _ in range(20)]  # noqa: E731
    child = in_a_fork(draw)
    assert not set(child) & set(draw())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux clears a page in a forked child")
def test_a_fork_by_c_code_into_another_pid_namespace_is_noticed(monkeypatch):
    """Neither Python's hooks nor the process id tell of it: the ids are equal."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    entropy._forget()
    fork = ctypes.PyDLL(None).fork  # libc's own: it runs no hook of Python
    draw = lambda: [LAW.sample() for _ in range(20)] + LAW.sample(1000).tolist()  # noqa: E731
    LAW.sample(10)
    children = [in_a_fork(draw, fork) for _ in range(2)]
    # a child that drew nothing, and its own child
    children.append(in_a_fork(lambda: in_a_fork(draw, fork), fork))
    sequences = [set(drawn) for drawn in [*children, draw()]]
    entropy._forget()
    for index, one in enumerate(sequences):
        for other in sequences[index + 1 :]:
            assert len(one & other) < 10


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_control_a_numpy_generator_repeats_itself_after_a_fork():
    """The harness sees what it must: a generator made before the fork gives both the same noise."""
    rng = np.random.default_rng()
    draw = lambda: rng.laplace(size=5).tolist()  # noqa: E731
    assert in_a_fork(draw) == draw()


def test_threads_never_share_noise():
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: tuple(LAW.sample(50).tolist()), range(64)))
    flat = [value for draws in drawn for value in draws]
    assert len(set(flat)) > 0.99 * len(flat)


def test_a_key_is_used_for_at_most_its_share(monkeypatch):
    stream = entropy.Keystream()
    keys = []
    real = entropy._system_seed
    monkeypatch.setattr(entropy, "_system_seed", lambda count: keys.append(1) or real(count))
    stream._left = 3 * 8 * 2**17
    out = np.empty(2**17, np.int64)
    for _ in range(3):
        stream.fill(out)
    assert keys == []
    stream.fill(out)
    assert keys == [1]
    assert stream._left == entropy._BYTES_PER_KEY - out.nbytes


def test_a_draw_in_the_middle_of_a_draw_shares_no_bits():
    """A signal handler may draw between any two lines of a draw: all words differ, and none is
    zero.
    """
    stream, words = entropy.Keystream(), []

    def draw(count):
        some = np.zeros(count, np.int64)
        stream.fill(some)
        words.extend([stream.more(), *some.view(np.uint64).tolist()])

    def on_line(_frame, event, _argument):
        if event == "line":  # Python traces nothing in here
            draw(3)
        return on_line

    sys.settrace(
        lambda frame, _event, _argument: (
            on_line if frame.f_code.co_filename == entropy.__file__ else None
        )
    )
    try:
        for _ in range(300):
            draw(5)
    finally:
        sys.settrace(None)
    assert len(words) > 300 * 6 * 4
    assert len(set(words)) == len(words)
    assert 0 not in words
