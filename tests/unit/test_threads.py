"""Work on all cores."""

import threading
from contextvars import ContextVar

import pytest

from discreet import threads
from discreet.threads import in_turn, on_all_cores

_setting: ContextVar[int] = ContextVar("setting", default=0)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)


def test_two_parts_run_at_the_same_time_and_come_back_in_order():
    both = threading.Barrier(2, timeout=60)  # a single thread would wait here alone
    assert on_all_cores(lambda part: (both.wait() >= 0, part), iter("ab")) == [
        (True, "a"),
        (True, "b"),
    ]


def test_the_context_is_that_of_the_caller_and_what_a_part_changes_there_stays_in_it():
    token = _setting.set(5)

    def work(part):
        before = _setting.get()
        _setting.set(part)
        return before

    assert on_all_cores(work, range(6)) == [5] * 6
    assert _setting.get() == 5
    _setting.reset(token)


def test_a_single_part_stays_in_its_thread():
    assert on_all_cores(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]
    assert on_all_cores(str, []) == []


def test_an_error_of_a_part_is_raised():
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda part: 1 // part, [1, 0, 2])


@pytest.mark.parametrize("number", [1, 2])
def test_results_come_in_turn_and_only_a_few_parts_are_computed_in_advance(monkeypatch, number):
    monkeypatch.setattr(threads, "cores", lambda: number)
    begun = []
    results = in_turn(lambda part: begun.append(part) or part, range(100))
    assert [next(results), next(results)] == [0, 1]
    assert len(begun) <= 2 * number + 2
    assert list(results) == list(range(2, 100))
