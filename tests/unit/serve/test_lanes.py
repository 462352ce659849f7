import asyncio
import threading

import pytest

from discreet.serve.lanes import Lane, Standing
from discreet.serve.refusals import Refusal
from waiting import PATIENCE


def asked(lane: Lane, names: str) -> list[str]:
    """The order in which requests of these tokens are worked on, if all come while the only thread
    is busy.
    """
    order, all_wait = [], threading.Event()

    async def all_of_them() -> None:
        first = asyncio.ensure_future(lane.run("first", lambda: all_wait.wait(PATIENCE)))
        await asyncio.sleep(0)
        others = [
            asyncio.ensure_future(lane.run(name, lambda name=name: order.append(name)))
            for name in names
        ]
        while sum(map(len, lane._waiting.values())) < len(names):
            await asyncio.sleep(0)
        all_wait.set()
        await asyncio.gather(first, *others)

    asyncio.run(all_of_them())
    return order


def test_tokens_take_turns_and_not_who_came_first():
    assert asked(Lane(1, 100), "aaaabbc") == list("abcabaa")


def test_a_free_thread_goes_to_the_token_that_has_none():
    lane, order, ends = Lane(3, 100), [], {}

    async def hold(name: str) -> None:
        ends[name] = threading.Event()
        await lane.run(name[0], lambda: (order.append(name), ends[name].wait(PATIENCE)))

    async def scenario() -> None:
        tasks = [asyncio.ensure_future(hold(name)) for name in ("a1", "a2", "a3", "b1", "a4", "c1")]
        for ended, expected in (("", 3), ("a1", 4), ("a2", 5), ("b1", 6)):
            if ended:
                ends[ended].set()
            while len(order) < expected:
                await asyncio.sleep(0.001)
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
    assert (sorted(order[:3]), order[3]) == (
        ["a1", "a2", "b1"],
        "c1",
    )  # two threads of three at most; the third waits for others


def test_one_token_never_has_all_threads():
    lane, begun, end = Lane(4, 100), [], threading.Event()

    def work() -> None:
        begun.append(1)
        end.wait(PATIENCE)

    async def many() -> int:
        tasks = [asyncio.ensure_future(lane.run("a", work)) for _ in range(12)]
        while len(begun) < 3 or sum(map(len, lane._waiting.values())) + len(begun) < len(tasks):
            await asyncio.sleep(0.001)
        together = len(begun)
        end.set()
        await asyncio.gather(*tasks)
        return together

    assert asyncio.run(many()) == 3
    assert len(begun) == 12


def test_who_gives_up_leaves_its_place_and_its_thread():
    lane, end = Lane(1, 100), threading.Event()

    async def scenario() -> list[int]:
        holder = asyncio.ensure_future(lane.run("a", lambda: end.wait(PATIENCE)))
        waiting = [asyncio.ensure_future(lane.run("b", lambda at=at: at)) for at in range(3)]
        while sum(map(len, lane._waiting.values())) < len(waiting):
            await asyncio.sleep(0)
        waiting[0].cancel()
        end.set()
        await holder
        return [await one for one in waiting[1:]]

    assert asyncio.run(scenario()) == [1, 2]
    assert not lane._waiting
    assert not lane._busy


def test_work_that_fails_leaves_its_thread():
    lane = Lane(1, 1)

    async def scenario() -> int:
        with pytest.raises(ZeroDivisionError):
            await lane.run("a", lambda: 1 // 0)
        return await lane.run("a", lambda: 2)

    assert asyncio.run(scenario()) == 2


def test_the_queue_of_a_token_is_bounded_and_of_nobody_else():
    standing = Standing(1)
    places = [standing.of("a") for _ in range(5)]
    for place in places:
        place.__enter__()
    with pytest.raises(Refusal, match="already has 5 requests"), standing.of("a"):
        pass
    with standing.of("b"):
        pass
    places[0].__exit__(None, None, None)
    with standing.of("a"):
        pass
